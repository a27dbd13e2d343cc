//! Tests of `everett causality` on a world whose deciding step is known.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::explore::TestFolder;
use crate::support::{image, shown};

/// World with a program that draws a number before each of its 60 lines. The number before line 25 decides whether it
/// prints "corrupt" after line 45, 400 ms later.
const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
[[workload.driver]]
name = "server"
argv = ["python3", "-S", "-c", '''
import os, time
bad = False
for n in range(60):
    time.sleep(0.02)
    draw = os.urandom(1)[0]
    if n == 25 and draw < 40: bad = True
    print("step", n, flush=True)
    if n == 45 and bad: print("corrupt", flush=True)
''']
[[property]]
name = "no corruption"
never = "corrupt"
[faults]
only = []
[explore]
segment = "1500ms"
horizon = "1500ms"
in_flight = 8
"#;
/// Seeds of explorations. Each exploration has a different finding.
const SEEDS: [&str; 3] = ["1", "2", "3"];

fn found(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(1), "{}", shown(output));
    let last = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
    serde_json::from_str(&last).unwrap_or_else(|error| panic!("{error}: {}", shown(output)))
}

#[test]
fn the_named_step_is_the_one_that_decides() {
    image();
    let place = TestFolder::new(WORLD);
    let world = place.path("world.toml");
    for seed in SEEDS {
        let run = place.path(seed);
        let explored = place.everett(&[
            "explore",
            &world,
            "--seed",
            seed,
            "--branches",
            "200",
            "--until-found",
            "-o",
            &run,
        ]);
        assert_eq!(explored.status.code(), Some(1), "{}", shown(&explored));
        let result = found(&place.everett(&["causality", &run, "1", "--json", "--jobs", "2"]));
        let jump = &result["jump"];
        assert_eq!(result["why"], "named", "{result}");
        assert_eq!((&jump["is_narrowest"], &jump["steps_count"]), (&Value::from(true), &Value::from(1)));
        let text = jump["steps"][0]["text"].as_str().unwrap_or_default();
        assert!(text.ends_with("step 25"), "{jump}");
        // 40 of 256 numbers lead to the finding: 16 %.
        let share = |count: &Value| count["shown"].as_f64().unwrap() / count["futures"].as_f64().unwrap();
        assert!(share(&jump["before"]) < 0.5 && share(&jump["after"]) > 0.95, "{jump}");
    }
    the_result_does_not_depend_on_the_workers(&place);
    reports_show_it(&place);
}

fn the_result_does_not_depend_on_the_workers(place: &TestFolder) {
    let run = place.path(SEEDS[0]);
    let file = place.path(&format!("{}/causality-1.json", SEEDS[0]));
    let digest = |arguments: &[&str]| {
        let arguments = [&["causality", &run, "1", "--json", "--branches", "90"], arguments].concat();
        let result = found(&place.everett(&arguments));
        assert_eq!((result["futures"].as_u64(), result["why"].as_str()), (Some(90), Some("futures")));
        let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(kept["digest"], result["digest"]);
        result["digest"].as_str().unwrap().to_owned()
    };
    let one = digest(&["--jobs", "1"]);
    assert_eq!(one, digest(&["--jobs", "3", "--memory", "1M"]), "moments are derived again");
    assert_ne!(one, digest(&["--same-faults"]));
    let none = place.everett(&["causality", &run, "1", "--budget", "1ms"]);
    assert_eq!(none.status.code(), Some(2), "{}", shown(&none));
    let none = place.everett(&["causality", &run, "7"]);
    assert_eq!(none.status.code(), Some(2), "{}", shown(&none));
}

fn reports_show_it(place: &TestFolder) {
    let run = place.path(SEEDS[1]);
    let report = place.everett(&["report", &run]);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(text.contains("The likelihood jumps from") && text.contains("step 25"), "{text}");
    let data: Value = serde_json::from_slice(&place.everett(&["report", &run, "--data"]).stdout).unwrap();
    let causality = &data["findings"][0]["causality"];
    assert!(causality["points"].as_array().unwrap().len() > 9, "{causality}");
    assert!(place.everett(&["report", &run, "--html"]).status.code() == Some(1));
    let page = fs::read_to_string(place.path(&format!("{}/report.html", SEEDS[1]))).unwrap();
    assert!(page.contains("svg class=\"likelihood\"") && page.contains("it jumps here"));
    fs::write(place.path(&format!("{}/causality-1.json", SEEDS[1])), "{\"schema_version\": 9}").unwrap();
    let bad = place.everett(&["report", &run]);
    assert_eq!(bad.status.code(), Some(2), "{}", shown(&bad));
    let error = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(error.contains("causality-1.json: format version 9") && error.lines().count() == 1, "{error}");
}
