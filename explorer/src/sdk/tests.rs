//! Tests of the parser of SDK lines, with valid lines in the format of the Antithesis SDKs, with damaged lines, and
//! with arbitrary text.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::limits::{EVIDENCE_BYTES_MAX, NAME_BYTES_MAX, SDK_LINE_BYTES_MAX, VALUE_BYTES_MAX};
use super::*;

fn assertion(change: &Json) -> Result<Assertion, Problem> {
    let mut fields = json!({
        "assert_type": "always", "display_type": "Always", "condition": false, "message": "m", "id": "m",
        "location": {"class": "c", "function": "f", "file": "x.rs", "begin_line": 3, "begin_column": 5},
        "hit": true, "must_hit": true, "details": {"b": 1, "a": [null]},
    });
    for (name, value) in change.as_object().unwrap() {
        fields[name] = value.clone();
    }
    parse(&json!({ "antithesis_assert": fields }).to_string()).map(|line| match line {
        SdkLine::Assertion(assertion) => assertion,
        other => panic!("{other:?}"),
    })
}

#[test]
fn kinds_follow_from_type_and_must_hit() {
    for (kind, must_hit, expected) in [
        ("always", true, AssertionKind::Always),
        ("always", false, AssertionKind::AlwaysOrUnreachable),
        ("sometimes", true, AssertionKind::Sometimes),
        ("reachability", true, AssertionKind::Reachable),
        ("reachability", false, AssertionKind::Unreachable),
    ] {
        let read = assertion(&json!({"assert_type": kind, "must_hit": must_hit})).unwrap();
        assert_eq!(read.kind, expected);
        assert_eq!(AssertionKind::from_name(expected.name()), Some(expected));
        assert_eq!(read.is_violated(), expected.forbids_false(), "{expected:?}");
        let registered =
            assertion(&json!({"assert_type": kind, "must_hit": must_hit, "hit": false})).unwrap();
        assert!(!registered.is_violated());
    }
    assert!(!assertion(&json!({"condition": true})).unwrap().is_violated());
}

#[test]
fn evidence_has_place_and_details_and_is_bounded() {
    let read = assertion(&json!({})).unwrap();
    let text = "Always \"m\" does not hold at x.rs:3:5 in c::f: {\"a\":[null],\"b\":1}";
    assert_eq!(read.evidence(), text);
    let long = assertion(&json!({"details": "é".repeat(EVIDENCE_BYTES_MAX), "id": "n".repeat(100)})).unwrap();
    assert!(long.evidence().len() <= EVIDENCE_BYTES_MAX && long.name.len() <= NAME_BYTES_MAX);
    let other = assertion(&json!({"id": format!("{}m", "n".repeat(99))})).unwrap();
    assert_ne!(long.name, other.name, "long names stay different");
    assert_eq!(
        assertion(&json!({"details": null, "location": null})).unwrap().evidence(),
        "Always \"m\" does not hold at :0:0"
    );
}

#[test]
fn broken_fields_are_named() {
    for (change, problem) in [
        (json!({"must_hit": 1}), Problem::Field("must_hit")),
        (json!({"hit": null}), Problem::Field("hit")),
        (json!({"condition": "true"}), Problem::Field("condition")),
        (json!({"assert_type": "never"}), Problem::AssertType),
        (json!({"assert_type": 5}), Problem::Field("assert_type")),
        (json!({"id": "", "message": ""}), Problem::Field("id")),
    ] {
        assert_eq!(assertion(&change), Err(problem), "{change}");
    }
    let wrong = |text: &str| parse(text).unwrap_err();
    for text in ["[]", "1", "{}", "{\"a\":1,\"b\":2}"] {
        assert_eq!(wrong(text), Problem::NotOneField, "{text}");
    }
    assert_eq!(wrong("{\"antithesis_setup\":{}}"), Problem::Field("status"));
    assert_eq!(wrong("{\"antithesis_assert\":[]}"), Problem::Field("antithesis_assert"));
    assert_eq!(wrong(&" ".repeat(SDK_LINE_BYTES_MAX + 1)), Problem::TooLong);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(matches!(wrong(&deep), Problem::NotJson(text) if text.contains("recursion")), "deep JSON");
    for seconds in ["-1", "90000", "\"1\"", "null"] {
        assert_eq!(
            wrong(&format!("{{\"everett_stop_faults\":{{\"seconds\":{seconds}}}}}")),
            Problem::Seconds
        );
    }
}

#[test]
fn other_lines() {
    assert_eq!(
        parse("{\"antithesis_setup\":{\"status\":\"complete\",\"details\":null}}"),
        Ok(SdkLine::Setup)
    );
    assert_eq!(parse("{\"everett_stop_faults\":{\"seconds\":1.5}}"), Ok(SdkLine::Quiet(1_500_000_000)));
    let header =
        json!({"antithesis_sdk": {"language": {"name": "Rust", "version": "1"}, "sdk_version": "0.2.8"}});
    let Ok(SdkLine::Header { language, version }) = parse(&header.to_string()) else { panic!("a header") };
    assert_eq!((language.as_str(), version.as_str()), ("Rust", "0.2.8"));
    let event = SdkLine::Event { name: "x".to_owned(), details: "{\"a\":1}".to_owned() };
    assert_eq!(parse("{\"x\":{\"a\":1}}"), Ok(event));
}

fn guidance(kind: &str, maximize: bool, data: &Json) -> Result<Option<Value>, Problem> {
    let line = json!({"antithesis_guidance": {
        "guidance_type": kind, "message": "m", "id": "m", "maximize": maximize, "guidance_data": data, "hit": true,
    }});
    parse(&line.to_string()).map(|line| match line {
        SdkLine::Guidance(guidance) => guidance.map(|guidance| guidance.value),
        other => panic!("{other:?}"),
    })
}

fn rank(maximize: bool, left: &Json, right: &Json) -> i64 {
    match guidance("numeric", maximize, &json!({"left": left, "right": right})) {
        Ok(Some(Value::Number { rank, .. })) => rank,
        other => panic!("{other:?}"),
    }
}

#[test]
fn guidance_of_all_kinds() {
    let text = |kind, data: Json| match guidance(kind, true, &data) {
        Ok(Some(Value::Other(text))) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(text("boolean", json!({"b": true, "a": false})), "{\"a\":false,\"b\":true}");
    assert!(text("json", json!({"long": "x".repeat(1000)})).len() <= VALUE_BYTES_MAX);
    assert_eq!(guidance("numeric", true, &json!({"left": 1})), Err(Problem::Field("guidance_data.right")));
    assert_eq!(guidance("numeric", true, &json!({"left": null, "right": 1})), Ok(None), "not a number");
    assert_eq!(guidance("other", true, &json!({})), Err(Problem::GuidanceType));
    let huge = rank(true, &json!(u64::MAX), &json!(i64::MIN));
    assert!(huge > rank(true, &json!(u64::MAX), &json!(0)));
    assert!(rank(true, &json!((1u64 << 60) + 1), &json!(1u64 << 60)) > rank(true, &json!(0), &json!(0)));
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>()) {
        let _ = parse(&text);
    }

    /// The parser handles values of any type in each field of an otherwise valid line.
    #[test]
    fn any_fields_are_read(
        name in prop::sample::select(vec!["antithesis_assert", "antithesis_guidance", "antithesis_setup", "antithesis_sdk", "everett_stop_faults", "x"]),
        fields in prop::collection::btree_map(
            prop::sample::select(vec![
                "assert_type", "condition", "message", "location", "hit", "must_hit", "id", "details", "guidance_type", "maximize",
                "guidance_data", "status", "language", "sdk_version", "seconds",
            ]),
            prop_oneof![
                any::<bool>().prop_map(Json::from), any::<f64>().prop_map(Json::from), any::<u64>().prop_map(Json::from),
                any::<String>().prop_map(Json::from), Just(Json::Null), Just(json!({"left": 1, "right": 2.5})),
                prop::sample::select(vec!["always", "sometimes", "reachability", "numeric", "boolean", "json", "complete"])
                    .prop_map(Json::from),
            ],
            0..12,
        ),
    ) {
        let text = json!({ name: fields }).to_string();
        if let Ok(SdkLine::Assertion(assertion)) = parse(&text) {
            prop_assert!(assertion.name.len() <= NAME_BYTES_MAX && assertion.evidence().len() <= EVIDENCE_BYTES_MAX);
        }
    }

    #[test]
    fn better_numbers_have_higher_ranks(a in -1e9..1e9f64, b in -1e9..1e9f64, c in any::<i32>(), d in any::<i32>()) {
        let of = |maximize, value: f64| rank(maximize, &json!(value), &json!(0));
        prop_assert_eq!(of(true, a).cmp(&of(true, b)), a.total_cmp(&b));
        prop_assert_eq!(of(false, a).cmp(&of(false, b)), b.total_cmp(&a));
        let whole = |right: i32| rank(true, &json!(c), &json!(right));
        prop_assert_eq!(whole(d).cmp(&whole(0)), 0.cmp(&d));
    }
}
