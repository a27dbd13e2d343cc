//! Tests of the header of a run directory: refused headers, and differences between the headers of two explorations.

use everett_streams::Seed;

use super::*;

#[test]
fn invalid_headers_are_refused() {
    let run = written(&[]);
    let path = run.path().join("run.json");
    let good = fs::read_to_string(&path).unwrap();
    assert_eq!(Header::read(run.path()).unwrap(), header());
    for (text, error) in [
        (String::new(), "run.json: EOF while parsing a value at line 1 column 0"),
        (
            good.replace("\"schema_version\": 4", "\"schema_version\": 2"),
            "run.json: its format version is 2; this version of Everett reads versions 3 to 4",
        ),
        // A header of another format version may have unknown fields. The error names the version, not the fields.
        (
            "{\"schema_version\":9,\"x\":1}".to_owned(),
            "run.json: its format version is 9; this version of Everett reads versions 3 to 4",
        ),
        (
            good.replace("\"seed\": 7", "\"seed\": -7"),
            "run.json: invalid value: integer `-7`, expected u64 at line 20 column 12",
        ),
        (" ".repeat(limits::HEADER_BYTES_MAX + 1), "run.json has more than 16777216 bytes"),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(message(&Header::read(run.path()).unwrap_err(), run.path()), error);
        assert_eq!(message(&Journal::resume(run.path(), &header()).unwrap_err(), run.path()), error);
    }
}

/// A header is not written if its JSON is nested so deeply that the parser would refuse to read it back.
#[test]
fn a_world_that_is_too_deep_is_refused() {
    let folder = tempdir().unwrap();
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    let error = Journal::create(folder.path(), &Header { world: deep, ..header() }).unwrap_err();
    assert!(message(&error, folder.path()).starts_with("run.json: recursion limit exceeded"), "{error}");
    assert!(!folder.path().join("run.json").exists());
    Journal::create(folder.path(), &header()).unwrap();
}

#[test]
fn differences_are_reported_with_their_field() {
    let base = header();
    assert_eq!(base.same_exploration(&Header { world_file: "moved.toml".to_owned(), ..header() }), Ok(()));
    let world = |world| Header { world, ..header() };
    let n1 = json!({ "name": "n1", "memory": 1024 });
    for (other, difference) in [
        (Header { everett: "0.2.0".into(), ..header() }, "everett differs: \"0.1.0\" here, \"0.2.0\" there"),
        (
            Header { machine_version: "2".into(), ..header() },
            "machine_version differs: \"1\" here, \"2\" there",
        ),
        (Header { identity: "f".into(), ..header() }, "identity differs: \"3d016600\" here, \"f\" there"),
        (Header { image: "f".into(), ..header() }, "image differs: \"77aa\" here, \"f\" there"),
        (Header { seed: Seed::new(8), ..header() }, "seed differs: 7 here, 8 there"),
        (
            Header { strategy: StrategyName("uniform".into()), ..header() },
            "strategy differs: \"novelty\" here, \"uniform\" there",
        ),
        (Header { in_flight: 5, ..header() }, "in_flight differs: 4 here, 5 there"),
        (Header { root_ns: 5, ..header() }, "root_ns differs: 1000 here, 5 there"),
        (Header { segment_ns: 5, ..header() }, "segment_ns differs: 2000000000 here, 5 there"),
        (Header { horizon_ns: 5, ..header() }, "horizon_ns differs: 30000000000 here, 5 there"),
        (
            Header { nodes: vec!["n1".into()], ..header() },
            "nodes differs: [\"n1\",\"n2\"] here, [\"n1\"] there",
        ),
        (
            world(json!({ "node": [n1, { "name": "n2", "memory": 9 }] })),
            "world.node[1].memory differs: 1024 here, 9 there",
        ),
        (
            world(json!({ "node": [n1] })),
            "world.node[1] differs: {\"memory\":1024,\"name\":\"n2\"} here, nothing there",
        ),
        (
            world(json!({})),
            "world.node differs: [{\"memory\":1024,\"name\":\"n1\"},{\"memory\":1024,\"name\":\"n2\"}] here, \
             nothing there",
        ),
        (
            world(json!(3)),
            "world differs: {\"node\":[{\"memory\":1024,\"name\":\"n1\"},{\"memory\":1024,\"name\":\"n2\"}]} here, \
             3 there",
        ),
    ] {
        assert_eq!(base.same_exploration(&other).unwrap_err().to_string(), difference);
        let turned = other.same_exploration(&base).unwrap_err();
        assert_eq!(base.same_exploration(&other).unwrap_err().field, turned.field);
    }
    let more = world(json!({ "node": base.world["node"], "link\n": "x".repeat(500) }));
    let difference = base.same_exploration(&more).unwrap_err().to_string();
    assert!(
        difference.starts_with("world.link\\n differs: nothing here, \"xxx") && difference.len() < 300,
        "{difference}"
    );
}
