//! Several compose files merged into one. The compose command also merges them, and the result must be the same
//! world.

use std::fs;
use std::path::Path;
use std::process::Command;

use everett_world_file::{self as world_file, World};

use super::tools::{compose_command, text};
use crate::support::{everett, shown};

/// Pairs of compose files. The second file of each pair is merged over the first.
const PAIRS: [(&str, &str); 18] = [
    // Scalars, and values that the second file replaces as a whole.
    (
        "services: { a: { image: i, command: [x, y], entrypoint: /e, user: u, hostname: h, mem_limit: 64m } }",
        "services: { a: { image: j, command: z, entrypoint: [/f, g], user: v, mem_limit: 128m } }",
    ),
    ("services: { a: { image: i, command: [x] } }", "services: { a: { command: , entrypoint: [] } }"),
    // A service that is only in the second file.
    ("services: { a: { image: i } }", "services: { b: { image: j, depends_on: [a] } }"),
    // Environments, in all forms.
    (
        "services: { a: { image: i, environment: [A=1, B=2, C] } }",
        "services: { a: { environment: { B: 3, D: 'x y', C: 5 } } }",
    ),
    (
        "services: { a: { image: i, env_file: first.env, environment: { C: own } } }",
        "services: { a: { env_file: [second.env] } }",
    ),
    // Volumes, identified by their paths in the container.
    (
        "services: { a: { image: i, volumes: [data:/v, ./one:/x, /own] } }\nvolumes: { data: , more: }",
        "services: { a: { volumes: [./two:/x:ro, more:/v, { type: volume, source: data, target: /w }] } }",
    ),
    (
        "services: { a: { image: i, volumes: [{ type: bind, source: ./one, target: /x, read_only: true }] } }",
        "services: { a: { volumes: ['./two:/x'] } }",
    ),
    ("services: { a: { image: i, tmpfs: /t } }", "services: { a: { tmpfs: [/u, '/w:size=1m'] } }"),
    // Configs and secrets.
    (
        "services: { a: { image: i, configs: [c], secrets: [s, t] } }\nconfigs: { c: { file: ./one } }\nsecrets: { s: { file: ./one }, t: { file: ./two } }",
        "services: { a: { configs: [{ source: c, target: /c }], secrets: [{ source: t, target: /run/secrets/s }] } }\nconfigs: { c: { file: ./two } }",
    ),
    // Healthchecks and restarts.
    (
        "services: { a: { image: i, healthcheck: { test: [CMD, x], interval: 90s, retries: 5 }, restart: always } }",
        "services: { a: { healthcheck: { test: y z, retries: 9 }, restart: 'no' } }",
    ),
    // Order of starting (`depends_on`).
    (
        "services: { a: { image: i, depends_on: [b] }, b: { image: i }, c: { image: i, healthcheck: { test: x } } }",
        "services: { a: { depends_on: { c: { condition: service_healthy } } } }",
    ),
    // Networks.
    (
        "services: { a: { image: i, networks: [n] }, b: { image: i, networks: { n: { aliases: [x] }, m: } } }\nnetworks: { n: , m: }",
        "services: { a: { networks: { m: { aliases: [y] } } }, b: { networks: { n: { aliases: [z] } } } }",
    ),
    // Limits and capabilities.
    (
        "services: { a: { image: i, ulimits: { nofile: 10, nproc: { soft: 1, hard: 2 } }, cap_add: [CHOWN], sysctls: [net.a=1] } }",
        "services: { a: { ulimits: { nofile: { soft: 5, hard: 7 }, nproc: 9 }, cap_add: [KILL], cap_drop: [ALL], sysctls: { net.b: 2 } } }",
    ),
    (
        "services: { a: { image: i, extra_hosts: [x=1.2.3.4] } }",
        "services: { a: { extra_hosts: { y: 1.2.3.5 } } }",
    ),
    (
        "services: { a: { image: i, deploy: { replicas: 2, resources: { limits: { memory: 64m } } } } }",
        "services: { a: { deploy: { replicas: 3 } } }",
    ),
    // YAML tags (`!reset` and `!override`).
    (
        "services: { a: { image: i, command: x, environment: { A: 1, B: 2 }, volumes: [/v] }, b: { image: i } }",
        "services: { a: { command: !reset null, environment: !override { C: 3 }, volumes: !reset [], user: u }, b: !reset }",
    ),
    // Inheritance within a file, before the files are merged.
    (
        "services: { base: { image: i, environment: { A: 1 }, volumes: [/v] }, a: { extends: base, environment: { B: 2 } } }",
        "services: { base: { environment: { A: 3 } }, a: { environment: { C: 4 } }, c: { extends: { service: d }, environment: !override { E: 1 } }, d: { image: k, environment: { D: 1 } } }",
    ),
    // Extensions and profiles.
    (
        "name: one\nx-a: &x { A: 1 }\nservices: { a: { image: i, environment: *x }, b: { image: i, profiles: [off] } }",
        "name: two\nservices: { b: { image: j }, a: { profiles: [], user: u } }",
    ),
];

/// Files that the compose files refer to.
const FILES: [(&str, &str); 4] =
    [("one", "1"), ("two", "2"), ("first.env", "A=1\nB=2\n"), ("second.env", "B=3\nC=4\n")];

fn project(first: &str, second: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in FILES {
        fs::write(folder.path().join(name), content).unwrap();
    }
    fs::write(folder.path().join("compose.yaml"), first).unwrap();
    fs::write(folder.path().join("compose.override.yaml"), second).unwrap();
    folder
}

fn load(file: &Path) -> World {
    world_file::load(file).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the compose file into which the compose command merges the files of a folder.
fn merged_by_compose(folder: &Path) -> String {
    let mut command = Command::new(compose_command());
    command.current_dir(folder).env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin").arg("config");
    let output = command.output().expect("the compose command starts");
    assert!(output.status.success(), "{}", shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn files_are_merged_as_the_compose_command_merges_them() {
    for (first, second) in PAIRS {
        let folder = project(first, second);
        let at = |name: &str| folder.path().join(name);
        let both = format!("{}:{}", text(&at("compose.yaml")), text(&at("compose.override.yaml")));
        let ours = load(Path::new(&both));
        let merged = merged_by_compose(folder.path());
        fs::write(at("merged.yaml"), &merged).unwrap();
        let theirs = load(&at("merged.yaml"));
        let (mut ours, mut theirs) = (normal(&ours), normal(&theirs));
        assert_eq!(ours.len(), theirs.len(), "{first}\n{second}\n{merged}");
        while let (Some(own), Some(other)) = (ours.pop(), theirs.pop()) {
            assert_eq!(own, other, "{first}\n{second}\n{merged}");
        }
        // The first file alone gives another world, so the merge has an effect.
        assert_ne!(normal(&load(&at("compose.yaml"))), normal(&load(Path::new(&both))), "{first}\n{second}");
    }
}

/// Returns the machines of a world in a normal form, with sorted lists. This hides changes that the compose command
/// makes to every file: it sorts services and some lists, and gives files other names.
fn normal(world: &World) -> Vec<String> {
    let mut machines: Vec<String> = world
        .nodes
        .iter()
        .map(|node| {
            let mut node = node.clone();
            if let Some(composed) = &mut node.composed {
                composed.hosts.sort_by_key(|line| format!("{line:?}"));
                composed.after.sort_by_key(|after| after.node.clone());
                composed.volumes.sort();
                composed.cap_add.sort();
                composed.cap_drop.sort();
                composed.binds.sort_by_key(|bind| bind.path.clone());
                for bind in &mut composed.binds {
                    bind.from = node
                        .files
                        .iter()
                        .find(|file| file.guest_path.starts_with(&bind.from))
                        .map(|file| format!("{:?} {:?}", file.content, file.own_mode))
                        .unwrap_or_default();
                }
                composed.ports.clear();
            }
            node.files.clear();
            format!("{node:#?}")
        })
        .collect();
    machines.sort();
    machines
}

#[test]
fn commands_find_the_override_file_beside_the_compose_file() {
    let folder = project(
        "services: { a: { image: ./none.tar, privileged: true } }",
        "services: { a: { privileged: !reset null, imge: x } }",
    );
    let run = |arguments: &[&str], files: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command.current_dir(folder.path()).env_remove("COMPOSE_FILE");
        if let Some(files) = files {
            command.env("COMPOSE_FILE", files);
        }
        let output = command.args(arguments).args(["--seed", "1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        String::from_utf8(output.stderr).unwrap()
    };
    let misspelt = "compose.override.yaml:1: services.a.imge: unknown key; did you mean \"image\"?";
    let alone = "compose.yaml:1: services.a.privileged: refused";
    for command in ["run", "verify", "explore"] {
        assert!(run(&[command], None).contains(misspelt), "{command}");
        // A file on the command line is read without its override file, as with `docker compose -f`.
        assert!(run(&[command, "compose.yaml"], None).contains(alone), "{command}");
        assert!(run(&[command, "compose.yaml:compose.override.yaml"], None).contains(misspelt), "{command}");
        assert!(run(&[command], Some("compose.yaml")).contains(alone), "{command}");
        assert!(run(&[command], Some("compose.yaml:compose.override.yaml")).contains(misspelt), "{command}");
    }
    fs::write(folder.path().join(".env"), "COMPOSE_FILE=compose.yaml\n").unwrap();
    assert!(run(&["run"], None).contains(alone));
    fs::write(folder.path().join(".env"), "COMPOSE_FILE=../x.yaml\n").unwrap();
    assert!(run(&["run"], None).contains(".env: COMPOSE_FILE: \"../x.yaml\""));
    fs::write(folder.path().join("world.toml"), "compose = [\"compose.yaml\", \"compose.override.yaml\"]\n")
        .unwrap();
    let output = everett(&["run", text(&folder.path().join("world.toml")), "--seed", "1"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(misspelt), "{}", shown(&output));
}
