//! `everett coverage` on a container image whose program has debug information: the report names the functions and lines
//! that branches reached.

use std::fs;

use serde_json::Value;

use super::userlands::{layout_of_musl, program_of_musl};
use crate::support::{everett, shown};

/// Program that draws a number every 50 ms. A low number leads to `corrupt`, which no other number reaches.
const SOURCE: &str = "\
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>
static inline __attribute__((always_inline)) int is_low(unsigned char draw) {
    return draw < 3;
}
static __attribute__((noinline)) void corrupt(int n) {
    printf(\"corrupt %d\\n\", n);
}
static __attribute__((noinline)) void step(int n) {
    printf(\"step %d\\n\", n);
}
static __attribute__((noinline)) void never(void) {
    printf(\"never\\n\");
}
int main(int count, char **arguments) {
    unsigned char draw;
    setlinebuf(stdout);
    for (int n = 0; n >= 0; n++) {
        usleep(50000);
        if (getrandom(&draw, 1, 0) != 1)
            never();
        if (is_low(draw))
            corrupt(n);
        step(n);
    }
    return 0;
}
";

const WORLD: &str = r#"
[[node]]
name = "a"
memory = "96M"
image = "layout"
[[property]]
name = "no corruption"
never = "corrupt"
[faults]
only = []
[explore]
segment = "400ms"
horizon = "1200ms"
in_flight = 4
"#;

/// Program that draws one number, 600 ms after its start. A low number leads to `corrupt` at once.
const ONE_DRAW: &str = "\
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>
static __attribute__((noinline)) void corrupt(void) {
    printf(\"corrupt\\n\");
}
int main(void) {
    unsigned char draw = 0;
    setlinebuf(stdout);
    for (int n = 0; n >= 0; n++) {
        usleep(50000);
        if (n == 12 && getrandom(&draw, 1, 0) == 1 && draw < 40)
            corrupt();
        printf(\"step %d\\n\", n);
    }
    return 0;
}
";

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

/// Returns the elements of a list whose field `key` has this value.
fn with<'v>(list: &'v Value, key: &str, value: &str) -> Vec<&'v Value> {
    list.as_array().unwrap().iter().filter(|one| one[key] == value).collect()
}

#[test]
fn the_report_names_functions_and_lines_that_only_failing_branches_reached() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    layout_of_musl(folder, &program_of_musl(folder, SOURCE));
    fs::write(folder.join("world.toml"), WORLD).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (world, run) = (path("world.toml"), path("run"));
    let explored = everett(&["explore", &world, "--branches", "16", "-o", &run, "--record", "0s"]);
    assert_eq!(explored.status.code(), Some(1), "{}", shown(&explored));
    let before = everett(&["show", &run]);

    let covered = everett(&["coverage", &run, "--jobs", "2"]);
    assert_eq!(covered.status.code(), Some(0), "{}", shown(&covered));
    let text = String::from_utf8_lossy(&covered.stdout).into_owned();
    assert!(text.contains("All 16 branches were replayed") && text.contains("corrupt at "), "{text}");
    let one = fs::read_to_string(folder.join("run/reached-code.json")).unwrap();
    let again = everett(&["coverage", &run, "--jobs", "1"]);
    assert_eq!(again.status.code(), Some(0), "{}", shown(&again));
    assert_eq!(fs::read_to_string(folder.join("run/reached-code.json")).unwrap(), one);
    assert_eq!(everett(&["show", &run]).stdout, before.stdout, "the exploration has not changed");

    let data = json(&everett(&["report", &run, "--data"]).stdout);
    let reached = &data["reached_code"];
    let passing = reached["passing"].as_u64().unwrap();
    assert!(passing > 0 && passing < 16, "{passing}");
    let programs = with(&reached["programs"], "path", "/program");
    let [program] = &programs[..] else { panic!("{reached}") };
    assert_eq!((&program["has_lines"], &program["nodes"][0]), (&Value::from(true), &Value::from("a")));
    let (functions, all) = (program["reached"].as_u64().unwrap(), program["functions_all"].as_u64().unwrap());
    assert!(functions > 5 && functions < all, "{functions} of {all}");
    let named = |name: &str| with(&program["functions"], "name", name);
    assert!(named("never").is_empty());
    let ends = |value: &Value, end: &str| value.as_str().is_some_and(|text| text.ends_with(end));
    let (step, corrupt) = (named("step")[0], named("corrupt")[0]);
    assert!(ends(&step["line"], "/program.c:10") && ends(&corrupt["line"], "/program.c:7"), "{program}");
    assert_eq!((&step["branches"], &step["only_failing"]), (&Value::from(16), &Value::from(false)));
    assert_eq!(
        (&corrupt["branches"], &corrupt["only_failing"]),
        (&Value::from(16 - passing), &Value::from(true))
    );

    let places = &data["findings"][0]["code"]["places"];
    let corrupt = with(places, "function", "corrupt")[0];
    assert_eq!(
        (&corrupt["whole_function"], &corrupt["branches"]),
        (&Value::from(true), &Value::from(16 - passing))
    );
    // The call in `main` is code that only failing branches reached, in a function that every branch reached.
    let in_main = with(places, "function", "main");
    assert!(in_main.iter().any(|place| ends(&place["line"], ":24")), "{places}");
    assert_eq!(everett(&["report", &run, "--html"]).status.code(), Some(1));
    let page = fs::read_to_string(folder.join("run/report.html")).unwrap();
    assert!(page.contains("Code that only failing branches reached") && page.contains("program.c:7"));

    fs::write(folder.join("run/reached-code.json"), "{\"schema_version\": 9}").unwrap();
    let bad = everett(&["report", &run]);
    assert_eq!(bad.status.code(), Some(2), "{}", shown(&bad));
    assert!(
        String::from_utf8_lossy(&bad.stderr).contains("reached-code.json: format version 9"),
        "{}",
        shown(&bad)
    );
}

#[test]
fn causality_names_lines_of_the_code_that_decided() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    layout_of_musl(folder, &program_of_musl(folder, ONE_DRAW));
    let world = WORLD.replace("400ms", "1s").replace("1200ms", "1s");
    fs::write(folder.join("world.toml"), world).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (world, run) = (path("world.toml"), path("run"));
    let explored =
        everett(&["explore", &world, "--branches", "100", "--until-found", "-o", &run, "--record", "0s"]);
    assert_eq!(explored.status.code(), Some(1), "{}", shown(&explored));
    let found = everett(&["causality", &run, "1", "--jobs", "2", "--branches", "240"]);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("code on a: main in /program"));
    assert!(line.is_some_and(|line| line.contains("program.c:13")), "{}", shown(&found));
    let none = everett(&["causality", &run, "1", "--debug-files", &path("none")]);
    assert_eq!(none.status.code(), Some(2), "{}", shown(&none));
}
