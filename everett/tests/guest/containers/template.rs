//! Test template (a folder of test commands) in the image of a compose file. The compose file names only the template's
//! folder.

use std::collections::BTreeSet;
use std::path::Path;

use everett_session::world::event::{Event, What};
use everett_streams::Seed;

use super::compose::project_of;
use super::launcher_of;
use super::tools::{text, tools};
use crate::support::{MS, findings, lines, run_to_end};

/// Program of the services and of every command. A service only waits. A command prints its node, folder and user, and
/// two environment variables.
const PROGRAM: &str = r#"
use std::{env, fs, thread, time::Duration};
fn main() {
    let name = env::args().next().unwrap();
    if name == "/program" { loop { thread::park(); } }
    let node = fs::read_to_string("/etc/hostname").unwrap();
    let user = fs::read_to_string("/proc/self/status").unwrap();
    let user = user.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    let user = user.split_whitespace().next().unwrap();
    let var = |name: &str| env::var(name).unwrap_or_default();
    println!("{} {} {user} {} {}", node.trim(), env::current_dir().unwrap().display(), var("OF_IMAGE"), var("OF_FILE"));
    thread::sleep(Duration::from_millis(50));
}
"#;

/// Compose file: services `one` and `two` have the image with the template, `none` has an image without it.
const COMPOSE: &str = "
services:
  one: { image: i, environment: { OF_FILE: here }, user: '7', working_dir: /srv }
  two: { image: i }
  none: { image: j }
x-everett:
  images: { i: 'oci:layout:with', j: 'oci:layout:it' }
  workload: { template: /opt/antithesis/test/v1/main }
";

const COMMANDS: [&str; 5] =
    ["first_setup", "parallel_driver_work", "anytime_look", "eventually_settled", "helper_lib"];

/// Makes the image `with` in the project's OCI layout: a copy of the image `it`, plus the template's commands.
fn add_template(folder: &Path) {
    let umoci = |arguments: &[&str]| tools().run("umoci", arguments);
    let plain = format!("{}/layout:it", text(&folder));
    umoci(&["tag", "--image", &plain, "with"]);
    let image = format!("{}/layout:with", text(&folder));
    for name in COMMANDS {
        let path = format!("/opt/antithesis/test/v1/main/{name}");
        umoci(&["insert", "--image", &image, &format!("{}/program", text(&folder)), &path]);
    }
    umoci(&["config", "--image", &image, "--config.env", "OF_IMAGE=there"]);
}

#[test]
fn commands_of_a_template_in_an_image_run_as_in_its_container() {
    let folder = tempfile::tempdir().unwrap();
    project_of(folder.path(), PROGRAM, COMPOSE);
    add_template(folder.path());
    let launcher = launcher_of(&folder.path().join("compose.yaml"));
    let run = || run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 2_000 * MS).1;
    let events = run();
    assert_eq!(findings(&events), Vec::<&str>::new());
    let ran: BTreeSet<&str> = events.iter().filter_map(started).collect();
    assert_eq!(ran, ["first_setup", "parallel_driver_work", "anytime_look", "eventually_settled"].into());
    // The command runs on each node that has it, with the environment, user and folder of the service.
    let work: BTreeSet<&str> = lines(&events, "parallel_driver_work").into_iter().collect();
    assert_eq!(work, ["one /srv 7 there here", "two / 0 there "].into());
    assert!(run() == events, "a second run differs");
}

/// Returns the name of a command that starts, without the suffix (`#2`, `#3`, …) that tells parallel runs apart.
fn started(event: &Event) -> Option<&str> {
    match &event.what {
        What::Start { unit, .. } => Some(unit.split('#').next().unwrap_or(unit)),
        _ => None,
    }
}
