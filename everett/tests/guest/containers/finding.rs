//! Finding file (one finding, and all that its replay needs) of a world from a compose file. The world's image is an
//! OCI layout, i.e. a folder on this host. The file is replayed where there is neither the layout nor the project nor a
//! network.

use std::fs;
use std::process::Command;

use super::tools::{program_image, text};
use crate::finding_file::{elsewhere, trail};
use crate::support::shown;

/// Program that keeps printing the values that it gets from the compose project: two environment variables and a file.
const PROGRAM: &str = r#"
fn main() {
    let word = std::env::var("WORD").unwrap() + &std::env::var("FROM_FILE").unwrap();
    for number in 1.. {
        println!("{word} {} {number}", std::fs::read_to_string("/conf/name").unwrap().trim());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
"#;

const COMPOSE: &str = r#"
services:
  app:
    image: ./layout
    env_file: app.env
    environment: { WORD: "${EVERETT_TEST_WORD}" }
    volumes: ["./conf:/conf:ro", "./sources:/sources"]
x-everett:
  property:
    - { name: no five, never: "^process file name 5$" }
  explore: { segment: 300ms, horizon: 1s, in_flight: 4 }
  faults: { only: [reseed] }
"#;

#[test]
fn a_finding_of_a_compose_file_is_found_again_without_its_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("shop");
    fs::create_dir_all(project.join("conf")).unwrap();
    fs::create_dir_all(project.join("sources/empty")).unwrap();
    program_image(
        folder.path(),
        &project.join("layout"),
        "it",
        PROGRAM,
        &["--config.entrypoint", "/program"],
    );
    let files = [
        ("conf/name", "name"),
        ("app.env", "FROM_FILE=\" ${KIND}\"\n"),
        (".env", "KIND=file\n"),
        ("sources/main.c", "int main"),
        ("compose.yaml", COMPOSE),
    ];
    for (name, content) in files {
        fs::write(project.join(name), content).unwrap();
    }
    let compose = project.join("compose.yaml");
    let (run, file) = (folder.path().join("run"), folder.path().join("f"));
    let everett = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command.args(arguments).env("EVERETT_TEST_WORD", "process").output().expect("the program starts")
    };
    let output = everett(&["explore", text(&compose), "--branches", "20", "--until-found", "-o", text(&run)]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let recorded = trail(&everett(&["--json", "replay", text(&run), "1", "-q"]));

    let refused = everett(&["runs", "export", text(&run), "1", "-o", text(&file)]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        shown(&refused).contains("layout exists only on this host; export with --with-images"),
        "{}",
        shown(&refused)
    );
    let output = everett(&["runs", "export", text(&run), "1", "-o", text(&file), "--with-images"]);
    assert!(output.status.success(), "{}", shown(&output));
    assert!(
        shown(&output).contains("EVERETT_TEST_WORD"),
        "it says which variables are in it: {}",
        shown(&output)
    );

    fs::remove_dir_all(&project).unwrap();
    fs::remove_dir_all(&run).unwrap();
    let cache = folder.path().join("cache");
    // The function `elsewhere` does not set EVERETT_TEST_WORD. The replay does not need the variable, because the
    // finding file contains its value.
    assert_eq!(trail(&elsewhere(&cache, &["--json", "replay", text(&file), "-q"])), recorded);
    let imported = folder.path().join("imported");
    let output = elsewhere(&cache, &["runs", "import", text(&file), "-o", text(&imported)]);
    assert!(output.status.success(), "{}", shown(&output));
    let output = elsewhere(&cache, &["--json", "replay", text(&imported), "1", "-q"]);
    assert_eq!(trail(&output), recorded);
}
