//! Probes of a world file: values of a program without instrumentation become properties and state variables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use everett_explorer::coverage::Kind;
use everett_explorer::probe::ProbeState;
use everett_explorer::run::Reading;
use everett_session::inside::fork::Fork;
use everett_session::machines::EngineOptions;
use everett_session::probes::in_fork;
use everett_session::world::event::What;

use super::launcher_of;
use super::userlands::{layout_of_musl, program_of_musl};
use super::world_of_one;
use crate::explore::setting_of;
use crate::support::{everett, shown};

/// Program whose counter `offset` decreases once, at step 7.
const SOURCE: &str = "\
#include <stdio.h>
#include <unistd.h>
unsigned long offset = 1000;
static __attribute__((noinline)) void follow(int n) {
    offset += n == 7 ? -30 : n;
}
static __attribute__((noinline)) void unused(int n) {
    printf(\"unused %d\\n\", n);
}
int main(int count, char **arguments) {
    setlinebuf(stdout);
    for (int n = 0; n >= 0; n++) {
        usleep(50000);
        follow(n);
        if (count > 1)
            unused(n);
        printf(\"step %d\\n\", n);
    }
    return 0;
}
";

const EXPLORE: &str = "segment = \"600ms\"\nhorizon = \"1200ms\"\nin_flight = 4\nstrategy = \"uniform\"";

const PROBES: &str = r#"
[[probe]]
name = "offset"
at = "program:follow"
value = "offset"
never_decreases = "process"
violated = "the offset decreased"
[[probe]]
name = "third"
at = "program:program.c:5"
value = "n % 3"
state = "exact"
[[probe]]
name = "few steps"
at = "program:follow"
if = "n > 2"
always = "n < 10"
[[probe]]
name = "used"
at = "program:unused"
sometimes = true
[[probe]]
name = "followed"
at = "program:follow"
sometimes = true
[[probe]]
name = "not reached"
at = "program:unused"
never = true
[[probe]]
name = "not judged"
at = "program:unused"
always = "n"
[[probe]]
name = "unreadable"
at = "program:follow"
value = "*(u64 *)16"
never_decreases = "process"
always = "*(u32 *)8 == 1"
"#;

/// Returns the trails of a run by path.
fn trails(run: &Path) -> BTreeMap<String, String> {
    let (reading, _) = Reading::open_merged(run).unwrap();
    let all = (0..reading.len()).map(|number| reading.get(number).unwrap().unwrap());
    all.map(|record| (record.path.to_string(), record.trail)).collect()
}

#[test]
fn probes_are_properties_and_state_variables_and_change_no_trail() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    layout_of_musl(folder, &program_of_musl(folder, SOURCE));
    let path = |name: &str| folder.join(name).display().to_string();
    let world = world_of_one(EXPLORE);
    fs::write(folder.join("plain.toml"), &world).unwrap();
    fs::write(folder.join("probed.toml"), world + PROBES).unwrap();
    let explore = |world: &str, branches: &str, run: &str| {
        let (world, run) = (path(world), path(run));
        everett(&["explore", &world, "--branches", branches, "-o", &run, "--record", "0s", "--jobs", "2"])
    };
    let plain = explore("plain.toml", "6", "plain");
    assert_eq!(plain.status.code(), Some(0), "{}", shown(&plain));
    let probed = explore("probed.toml", "5", "probed");
    assert_eq!(probed.status.code(), Some(1), "{}", shown(&probed));
    let printed = String::from_utf8_lossy(&probed.stdout).into_owned();
    let told = |name: &str| {
        let begins = format!("probe {name}: ");
        let line = printed.lines().find_map(|line| line.strip_prefix(&begins));
        line.unwrap_or_else(|| panic!("{name}: {printed}")).to_owned()
    };
    assert!(printed.contains(": the offset decreased: program:follow decreased"), "{printed}");
    assert_eq!(told("used"), "0 hits");
    let hits = told("offset");
    let count = hits.split(' ').next().unwrap();
    assert_eq!(told("unreadable"), format!("{count} hits, {count} with a value that cannot be read"));

    // An exploration that continues has the same findings, and all trails are those without probes.
    let probed = explore("probed.toml", "6", "probed");
    assert_eq!(probed.status.code(), Some(1), "{}", shown(&probed));
    assert_eq!(trails(&folder.join("plain")), trails(&folder.join("probed")));
    let (_, merged) = Reading::open_merged(&folder.join("probed")).unwrap();
    let findings: BTreeMap<&str, &str> =
        merged.findings().iter().map(|one| (&*one.hit.property, &*one.hit.text)).collect();
    assert_eq!(findings.keys().copied().collect::<Vec<_>>(), ["few steps", "offset"]);
    let text = findings["offset"];
    assert!(text.starts_with("program:follow decreased from 1021 to 991: offset=991 (program "), "{text}");
    let text = findings["few steps"];
    assert!(text.starts_with("program:follow n < 10 is 0: n < 10=0 (program "), "{text}");
    let finding = merged.findings().iter().find(|one| one.hit.property == "offset").unwrap();
    let stack = finding.hit.evidence.lines.iter().find(|line| line.contains("offset: stack: ")).unwrap();
    assert!(stack.contains("stack: follow") && stack.contains(" < main"), "{stack}");
    let before = finding.hit.evidence.lines.iter().position(|line| line.ends_with("step 7"));
    assert!(before.is_some(), "{:?}", finding.hit.evidence.lines);

    // The state variable has three values, and each of them is a state of the world.
    let observed = |kind| merged.coverage().incidence(kind).observed;
    assert_eq!(observed(Kind::Value), 3);
    assert!(observed(Kind::State) >= 3);

    let report = everett(&["report", &path("probed"), "--data"]);
    let data = String::from_utf8_lossy(&report.stdout).into_owned();
    let properties = serde_json::from_str::<serde_json::Value>(&data).unwrap()["properties"].clone();
    let state = |name: &str| {
        let of = properties.as_array().unwrap().iter().find(|one| one["name"] == name);
        of.map(|one| one["state"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
    };
    assert_eq!((&*state("offset"), &*state("unreadable")), ("failed", "never_reached"));
    assert_eq!((&*state("used"), &*state("followed")), ("never_reached", "passed"));
    assert_eq!((&*state("not reached"), &*state("not judged")), ("passed", "never_reached"));

    // The finding shows again, and probes of the command line stand among the lines.
    let id = finding.id.to_string();
    let replayed = everett(&[
        "replay",
        &path("probed"),
        &id,
        "--print",
        "program:follow \"n is %d\" n",
        "--record",
        "--engine",
        "soft",
    ]);
    assert_eq!(replayed.status.code(), Some(1), "{}", shown(&replayed));
    let recorded = fs::read_to_string(folder.join(format!("probed/timeline-{id}.jsonl"))).unwrap();
    assert!(recorded.contains("program:follow: n is 7 (program "), "{recorded}");
    let shrunk = everett(&["shrink", &path("probed"), &id]);
    assert_eq!(shrunk.status.code(), Some(1), "{}", shown(&shrunk));
}

/// A fork has the violations and state variables of the probes among its events, and its machines do the same as without them.
#[test]
fn a_fork_observes_the_probes_of_its_world() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    layout_of_musl(folder, &program_of_musl(folder, SOURCE));
    fs::write(folder.join("world.toml"), world_of_one(EXPLORE) + PROBES).unwrap();
    let setting = setting_of(launcher_of(&folder.join("world.toml")), EngineOptions::default());
    let fork = || {
        let mut timeline = setting.launcher.resume(&setting.ready).unwrap();
        timeline.begin(setting.seed).unwrap();
        Fork::new(timeline)
    };
    let probes = setting.probes.as_ref().unwrap();
    let (mut plain, mut probed) = (fork(), fork());
    in_fork::observe(&mut probed, probes, &ProbeState::default()).unwrap();
    for fork in [&mut plain, &mut probed] {
        fork.pass(600_000_000).unwrap();
    }
    assert_eq!(plain.timeline().digest(), probed.timeline().digest());
    let events = probed.take_events();
    let others = events.iter().filter(|event| !matches!(event.what, What::Probe { .. })).cloned();
    assert_eq!(plain.take_events(), others.collect::<Vec<_>>());
    let seen: Vec<(&str, &str, bool, Option<&str>)> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::Probe { probe, text, violated, variable } => {
                Some((&**probe, &**text, *violated, variable.as_deref()))
            }
            _ => None,
        })
        .collect();
    let begins = "program:follow decreased from 1021 to 991: offset=991 (program ";
    assert!(seen.iter().any(|(probe, text, violated, _)| {
        (*probe, *violated) == ("offset", true) && text.starts_with(begins)
    }));
    let values = seen.iter().filter_map(|(probe, .., value)| value.filter(|_| *probe == "third"));
    assert!(values.collect::<String>().contains("012012"), "{seen:?}");
    assert!(events.is_sorted_by_key(|event| event.vtime_ns));
}

/// A bad probe ends the exploration with one line that names the file and the key.
#[test]
fn bad_probes_are_one_line_with_file_and_key() {
    let place = tempfile::tempdir().unwrap();
    let node = "[[node]]\nname = \"a\"\n";
    for (table, error) in [
        ("name = \"x\"\nat = \"a\"\nlog = true", "probe \"x\": at: a probe begins with "),
        ("name = \"x\"\nat = \"a:f 1\"\nlog = true", "probe \"x\": at: only a place"),
        ("name = \"x\"\nat = \"a:f\"\nvalue = \"1 +\"\nlog = true", "probe \"x\": value: a value is missing"),
        ("name = \"x\"\nat = \"a:f\"\nif = \")\"\nlog = true", "probe \"x\": if: "),
        ("name = \"x\"\nat = \"a:f\"\nalways = \"\"", "probe \"x\": always: "),
        ("name = \"x\"\nat = \"a:f\"", "probe \"x\": give \"always\""),
        (
            "name = \"x\"\nat = \"a:f\"\nnodes = [\"b\"]\nlog = true",
            "probe \"x\": nodes: there is no node \"b\"",
        ),
        ("name = \"x\"\nat = \"a:f\"\nlgo = true", "probe[0].lgo: unknown field"),
        ("name = \"x\"\nat = \"a:f\"\nlog = true\ndebug_files = \"no\"", "probe[0].debug_files: "),
    ] {
        let path = |name: &str| place.path().join(name).display().to_string();
        let (world, run) = (path("world.toml"), path("run"));
        fs::write(&world, format!("{node}[[probe]]\n{table}\n")).unwrap();
        let refused = everett(&["explore", &world, "-o", &run, "--branches", "1"]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), text.lines().count()), (Some(2), 1), "{}", shown(&refused));
        assert!(text.contains("world.toml") && text.contains(error), "{text}");
    }
}
