//! Unmodified programs from Debian packages give the same answers as on other machines.

use std::path::Path;

use everett_session::machines::EngineOptions;
use everett_streams::Seed;

use crate::support::{MS, everett, findings, launcher, lines, run_script, shown};

#[test]
fn python_sqlite_and_openssl_give_right_answers() {
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(1)).unwrap();
    let (_, events) = run_script(&mut timeline, "sh /opt/answers.sh", 60_000 * MS);
    assert_eq!(findings(&events), [] as [&str; 0]);
    assert_eq!(
        lines(&events, "command"),
        [
            "python 959082 265252859812191058636308480000000 3.14159265359 5.0",
            "python ae91d27977004524 1532674774 {\"a\": [1.5, null]}",
            "python 7.485470860550343 2.718281828459045 0.035748797972017",
            "sqlite|1000|500500|3939383536|750.75",
            "ok",
            "SHA2-256(/tmp/plain)= ae91d279770045247fb6fe6ac59bfef0bcdae686d2bd4f291b4d11805365407b",
            "everett",
            "Signature Verified Successfully",
        ]
    );
    assert_eq!(timeline.command_exit(), Some(everett_protocol::Exit::Code(0)));
}

#[test]
fn output_of_a_command_cannot_control_the_terminal() {
    crate::support::image();
    let world = crate::support::world_file();
    let script = "printf 'a\\033[2Jb\\302\\233Hc\\n'; printf 'x\\033]0;title\\007\\n' >&2";
    let output = everett(&["boot", world.to_str().unwrap(), "--", "sh", "-c", script]);
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\\u{1b}[2Jb\\u{9b}Hc\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("x\\u{1b}]0;title\\u{7}") && !errors.contains('\u{1b}'), "{errors}");
}

#[test]
fn a_run_leaves_a_folder_and_prints_json() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let world = crate::support::world_file();
    crate::support::image();
    let arguments = [
        "run",
        world.to_str().unwrap(),
        "--json",
        "--seed",
        "3",
        "--for",
        "1s",
        "-o",
        folder.to_str().unwrap(),
    ];
    let output = everett(&arguments);
    assert!(output.status.success(), "{}", shown(&output));
    let records: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).expect("every line is JSON"))
        .collect();
    let ready = records.iter().any(|record| record["kind"] == "ready");
    let pong = records.iter().any(|record| record["unit"] == "alive" && record["text"] == "PONG");
    let end = records.last().unwrap();
    assert!(ready && pong && end["kind"] == "end" && end["seed"] == 3, "{end}");
    let read = |name: &str| std::fs::read_to_string(Path::new(&folder).join(name)).unwrap();
    assert!(read("run.json").contains(end["trail"].as_str().unwrap()));
    assert_eq!(read("trail.jsonl").lines().count() as u64, end["trail_points"].as_u64().unwrap());
    assert!(read("console.log").contains("Linux version"));
    let again = everett(&arguments);
    assert_eq!(again.status.code(), Some(2), "an existing folder must not be overwritten: {}", shown(&again));
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let world = crate::support::world_file();
    crate::support::image();
    let boot = |script: &str| everett(&["boot", world.to_str().unwrap(), "--", "sh", "-c", script]);
    let fine = boot("echo out; echo err >&2");
    assert_eq!((fine.status.code(), &fine.stdout[..]), (Some(0), &b"out\n"[..]), "{}", shown(&fine));
    assert!(String::from_utf8_lossy(&fine.stderr).lines().any(|line| line == "err"), "{}", shown(&fine));
    assert_eq!(boot("exit 3").status.code(), Some(1));
}
