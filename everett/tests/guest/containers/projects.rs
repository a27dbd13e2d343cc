//! Compose files in `examples/`, unchanged. Each project has a planted defect, which an environment variable can turn
//! off. An exploration finds the defect, and a replay shows it again exactly. The control, an exploration of the
//! project without the defect, has no finding. The examples' own script makes the images, with mmdebstrap and umoci.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use super::tools::{text, tools};
use crate::support::shown;

/// Example with a compose file and a planted defect.
struct Project {
    folder: &'static str,
    /// Names of its images.
    images: &'static [&'static str],
    /// Environment variable, and the value that turns the defect off.
    control: (&'static str, &'static str),
    /// Part of the finding's text.
    finding: &'static str,
    /// Maximum number of branches until the finding.
    branches: u32,
    /// Number of branches that explore the control.
    control_branches: u32,
    /// Minimum number of the control's branches that must have run the checks.
    checked: u64,
    /// Length of each run that `everett verify` compares, in vtime. `None` if the runs would take too long for a test.
    verified: Option<&'static str>,
}

/// Images of the example `compose-networks`.
const NETWORKS: [&str; 2] = ["python", "redis"];

/// Number of runs that this test compares. `docs/compose.md` has figures for longer comparisons.
const RUNS: &str = "3";

#[test]
fn a_shop_that_acknowledges_early_loses_orders() {
    Project {
        folder: "compose-web",
        images: &["python", "redis", "postgres"],
        control: ("ACKNOWLEDGE", "committed"),
        finding: "check orders ended with exit status 1",
        branches: 40,
        control_branches: 8,
        checked: 3,
        verified: None,
    }
    .test();
}

#[test]
fn a_loader_that_tries_again_credits_twice() {
    Project {
        folder: "compose-store",
        images: &["python"],
        control: ("DEDUPLICATE", "yes"),
        finding: "check balances ended with exit status 1",
        branches: 40,
        control_branches: 8,
        checked: 3,
        verified: Some("1s"),
    }
    .test();
}

#[test]
fn a_gateway_between_two_networks_accepts_what_it_drops() {
    Project {
        folder: "compose-networks",
        images: &NETWORKS,
        control: ("WHEN_SLOW", "refuse"),
        finding: "check orders ended with exit status 1",
        branches: 60,
        control_branches: 16,
        checked: 8,
        verified: Some("1s"),
    }
    .test();
}

/// A partition between the customer and the gateway only delays orders. A partition between the gateway and the ledger
/// loses them.
#[test]
fn the_gateway_loses_orders_only_when_the_back_is_cut_off() {
    let folder = examples().join("compose-networks");
    images(&folder, &NETWORKS);
    let plans = tempfile::tempdir().unwrap();
    for (between, is_found) in [("customer", false), ("ledger", true)] {
        let plan = format!(
            "{{\"at\":\"500ms\",\"for\":\"4s\",\"fault\":\"partition\",\
             \"links\":{{\"from\":[\"{between}\"],\"to\":[\"gateway\"]}}}}\n"
        );
        let file = plans.path().join(between);
        fs::write(&file, plan).unwrap();
        let run = everett(
            &folder,
            None,
            &["run", "compose.yaml", "--seed", "1", "--for", "6s", "--faults", text(&file)],
        );
        assert_eq!(run.status.code(), Some(if is_found { 1 } else { 0 }), "{}", shown(&run));
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert_eq!(said.contains("acknowledged orders are lost, the first is"), is_found, "{said}");
        assert_eq!(said.contains("acknowledged orders are there"), !is_found, "{said}");
    }
}

impl Project {
    fn test(&self) {
        let folder = examples().join(self.folder);
        images(&folder, self.images);
        let runs = tempfile::tempdir().unwrap();
        let run = text(&runs.path().join("run")).to_owned();
        let explore: [&str; 4] = ["explore", "compose.yaml", "--seed", "1"];

        let branches = self.branches.to_string();
        let found = everett(
            &folder,
            None,
            &[&explore[..], &["--until-found", "--branches", &branches, "-o", &run]].concat(),
        );
        assert_eq!(found.status.code(), Some(1), "{}", shown(&found));
        assert!(String::from_utf8_lossy(&found.stdout).contains(self.finding), "{}", shown(&found));

        let again = everett(&folder, None, &["replay", &run, "1"]);
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        assert!(said.contains("the finding shows again"), "{}", shown(&again));
        assert!(said.contains(", on its recorded trail at all "), "{}", shown(&again));

        let control = text(&runs.path().join("control")).to_owned();
        let branches = self.control_branches.to_string();
        let clean = everett(
            &folder,
            Some(self.control),
            &[&explore[..], &["--branches", &branches, "-o", &control]].concat(),
        );
        assert!(clean.status.success(), "{}", shown(&clean));
        let said = String::from_utf8_lossy(&clean.stdout).into_owned();
        assert!(said.contains("nothing found"), "{said}");
        let checked =
            said.lines().find_map(|line| line.split_once(&format!(" of {branches} branches had checks")));
        let checked = checked.and_then(|(count, _)| count.parse::<u64>().ok());
        assert!(checked.is_some_and(|checked| checked >= self.checked), "{said}");

        let Some(length) = self.verified else { return };
        let verified = everett(
            &folder,
            None,
            &["verify", "compose.yaml", "--seed", "1", "--for", length, "--runs", RUNS],
        );
        assert!(verified.status.success(), "{}", shown(&verified));
        assert!(
            String::from_utf8_lossy(&verified.stdout).contains("all trails are equal"),
            "{}",
            shown(&verified)
        );
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples")
}

/// Makes images of an example, or does nothing if the current scripts have made them already. An image that several
/// examples have is made once. Only one thread makes images at a time.
fn images(folder: &Path, names: &[&str]) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let web = examples().join("compose-web");
    let mut scripts = blake3::Hasher::new();
    for script in ["images.sh", "postgres-entrypoint.sh"] {
        scripts.update(&fs::read(web.join(script)).unwrap());
    }
    let scripts = scripts.finalize().to_hex().to_string();
    for name in names {
        let made = folder.join(format!("images/{name}-made-by"));
        if fs::read_to_string(&made).is_ok_and(|known| known == scripts) {
            continue;
        }
        let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compose-images").join(&scripts);
        let image = store.join(name);
        if !image.exists() {
            make_image(&web.join("images.sh"), &store, name);
        }
        let images = folder.join("images");
        fs::create_dir_all(&images).unwrap();
        let _ = fs::remove_dir_all(images.join(name));
        let copied = Command::new("cp").arg("-R").arg(&image).arg(&images).status().expect("cp");
        assert!(copied.success(), "{}", image.display());
        fs::write(&made, &scripts).unwrap();
    }
}

/// Makes an image with a script, in a folder that appears when the image is complete.
fn make_image(script: &Path, store: &Path, name: &str) {
    let tools = tools().folder_of(&["mmdebstrap", "umoci"]);
    let path = format!("{}:{}", text(&tools), std::env::var("PATH").unwrap_or_default());
    fs::create_dir_all(store).unwrap();
    let unfinished = tempfile::tempdir_in(store).unwrap();
    let output = Command::new("sh").arg(script).arg(unfinished.path()).arg(name).env("PATH", path).output();
    let output = output.expect("sh");
    assert!(output.status.success(), "{}", shown(&output));
    fs::rename(unfinished.path().join(name), store.join(name)).unwrap();
}

/// Runs the program in a folder, with an environment variable if one is given.
fn everett(folder: &Path, variable: Option<(&str, &str)>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command.current_dir(folder).args(arguments).env_remove("COMPOSE_FILE");
    for name in ["ACKNOWLEDGE", "DEDUPLICATE", "WHEN_SLOW"] {
        command.env_remove(name);
    }
    command.envs(variable).output().expect("the program starts")
}
