//! Tests of a program that uses the Python SDK.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use super::{Outcomes, files_below, outcomes, run, verdict};
use crate::support::{everett, image, shown};

/// Package of the SDK, in a fixed version.
const PACKAGE: &str = "antithesis==0.4.0";
const PROGRAM: &str = include_str!("app.py");

/// Folder on this host with the package, the program and its catalogue of assertions.
struct Installed(PathBuf);

/// Installs the package from PyPI, at the first call.
fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-python");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let packages = folder.join("packages");
        let mut pip = Command::new("python3");
        run(pip
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target"])
            .arg(&packages)
            .arg(PACKAGE));
        fs::write(folder.join("app.py"), PROGRAM).unwrap();
        let mut scan = Command::new("python3");
        scan.args(["-m", "antithesis.catalog", "app.py", "-o", "catalog.json"]).current_dir(&folder);
        run(scan.env("PYTHONPATH", &packages).env("PYTHONDONTWRITEBYTECODE", "1"));
        Installed(folder)
    })
}

impl Installed {
    /// Runs the program on this host in the SDK's local mode. Returns the outcomes of its assertions.
    fn local(&self) -> Outcomes {
        let output = self.0.join("local.jsonl");
        let _ = fs::remove_file(&output);
        let mut program = Command::new("python3");
        program.args(["app.py", "--once"]).current_dir(&self.0);
        program.env("PYTHONPATH", self.0.join("packages")).env("PYTHONDONTWRITEBYTECODE", "1");
        program.env("ANTITHESIS_ASSERTION_CATALOG", self.0.join("catalog.json"));
        run(program.env("ANTITHESIS_SDK_LOCAL_OUTPUT", &output));
        outcomes(&fs::read_to_string(output).unwrap())
    }

    /// Writes a world file whose service is the program. Returns its path.
    fn world(&self) -> PathBuf {
        let host = |path: &Path| path.strip_prefix(&self.0).unwrap().display().to_string();
        let mut text = String::from(
            "[sdk]\n[image]\nsuite = \"bookworm\"\n[explore]\nsegment = \"200ms\"\nhorizon = \"600ms\"\nin_flight = 4\n\
             [faults]\nonly = [\"pause\"]\n\
             [[node]]\nname = \"a\"\nmemory = \"192M\"\n\
             packages = [\"openssl\", \"python3\", \"redis-server\", \"redis-tools\", \"sqlite3\"]\n\
             [[node.service]]\nname = \"app\"\nargv = [\"python3\", \"/opt/app.py\"]\n\
             env = { PYTHONPATH = \"/opt/packages\", ANTITHESIS_ASSERTION_CATALOG = \"/opt/catalog.json\" }\n\
             [node.files]\n\"/opt/app.py\" = \"app.py\"\n\"/opt/catalog.json\" = \"catalog.json\"\n",
        );
        for file in files_below(&self.0.join("packages"), "/opt/packages") {
            let name = file.guest_path.strip_prefix("/opt/").unwrap();
            writeln!(text, "\"{}\" = \"{}\"", file.guest_path, host(&self.0.join(name))).unwrap();
        }
        let path = self.0.join("world.toml");
        fs::write(&path, text).unwrap();
        path
    }
}

/// Explores the program. Returns the report's data.
fn report(world: &Path, branches: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (world, run) = (world.to_str().unwrap(), run.to_str().unwrap());
    let explored = everett(&["explore", world, "--branches", branches, "-o", run]);
    // Status 1 means that there are findings.
    assert_eq!(explored.status.code(), Some(1), "{}", shown(&explored));
    let text = everett(&["report", "--all", run]);
    let told = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(told.contains("Sometimes `sometimes never holds`: reached on"), "{told}");
    assert!(told.contains("Reachable `is never reached`: never reached"), "{told}");
    let html = everett(&["report", "--html", run]);
    assert!(Path::new(run).join("report.html").is_file(), "{}", shown(&html));
    let data = everett(&["report", "--data", run]);
    serde_json::from_slice(&data.stdout).unwrap()
}

#[test]
fn python_prints_the_same_verdicts_here_and_in_its_local_mode() {
    image();
    let installed = installed();
    let local = installed.local();
    let kinds: BTreeSet<&str> = local.keys().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds.len(), 5, "{local:?}");
    let data = report(&installed.world(), "12");
    let properties = data["properties"].as_array().unwrap();
    let of_program = properties.iter().filter(|one| kinds.contains(one["kind"].as_str().unwrap()));
    let here: BTreeMap<(String, String), String> = of_program
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap().to_owned();
            ((text("kind"), text("name")), text("state"))
        })
        .collect();
    let mut there: BTreeMap<(String, String), String> = local
        .into_iter()
        .map(|((kind, name), outcome)| {
            let verdict = verdict(&kind, outcome).to_owned();
            ((kind, name), verdict)
        })
        .collect();
    let verdicts: BTreeSet<&str> = there.values().map(String::as_str).collect();
    assert_eq!(verdicts.len(), 3, "{there:?}");
    // The local run (`--once`) never reaches this assertion. In Everett, the program reaches it only on branches that
    // continue after an assertion has failed.
    let last = ("Sometimes".to_owned(), "reaches the top".to_owned());
    assert_eq!(there.remove(&last), here.contains_key(&last).then(|| "never_reached".to_owned()));
    let here: BTreeMap<_, _> = here.into_iter().filter(|(key, _)| *key != last).collect();
    assert_eq!(here, there);
    // Each violated assertion is one finding. Its evidence contains the assertion's place in the source and its
    // details.
    let findings = data["findings"].as_array().unwrap();
    let of = |name: &str| findings.iter().filter(|one| one["property"] == name).collect::<Vec<_>>();
    let [found] = of("always fails")[..] else { panic!("{findings:?}") };
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("app.py:") && text.contains("\"why\":\"a test\""), "{text}");
    assert_eq!(findings.len(), here.values().filter(|verdict| *verdict == "failed").count());
    // An assertion about a number says whether greater or smaller numbers are better. It adds coverage whenever its
    // number is better than all its earlier numbers on the timeline.
    let kind =
        |kind: &str| data["coverage"]["kinds"].as_array().unwrap().iter().find(|one| one["kind"] == kind);
    let guidance = kind("guidance").expect("guidance").clone();
    assert!((1..40).contains(&guidance["points"].as_u64().unwrap()), "{guidance}");
    assert!(kind("assertion").is_some() && kind("edge").is_none());
}
