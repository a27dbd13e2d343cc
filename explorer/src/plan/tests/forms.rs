//! Tests of the accepted forms of a fault plan's lines, their meaning, and their canonical form.

use super::*;

/// Lines as an operator may write them, each with its canonical form.
const FORMS: &[(&str, &str)] = &[
    (r#"{"at":1500000000,"fault":"heal"}"#, r#"{"at":"1.5s","fault":"heal"}"#),
    (r#" { "fault" : "quiet", "for" : "1m", "at" : "0s" } "#, r#"{"at":"0ns","for":"60s","fault":"quiet"}"#),
    (
        r#"{"at":"1.5s","for":"200ms","fault":"partition","links":{"from":["n1"],"to":["n3","n2"]}}"#,
        r#"{"at":"1.5s","for":"200ms","fault":"partition","links":{"from":["n1"],"to":["n2","n3"],"both_ways":true},"mode":"drop"}"#,
    ),
    (
        r#"{"at":"1s","fault":"partition","links":"all","mode":"hold"}"#,
        r#"{"at":"1s","fault":"partition","links":"all","mode":"hold"}"#,
    ),
    (
        r#"{"at":"1s","fault":"latency","links":{"from":"all","to":"all","both_ways":false},"extra":{"constant":"5ms"}}"#,
        r#"{"at":"1s","fault":"latency","links":{"from":"all","to":"all","both_ways":false},"extra":"5ms"}"#,
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"quantiles":[[0,0],[990000,"5ms"],[1000000,"1s"]]}}"#,
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"quantiles":[[0,"0ns"],[990000,"5ms"],[1000000,"1s"]]}}"#,
    ),
    (
        r#"{"at":"1s","fault":"reorder","links":"all","ppm":5,"hold":{"uniform":["1ms",2000000]}}"#,
        r#"{"at":"1s","fault":"reorder","links":"all","ppm":5,"hold":{"uniform":["1ms","2ms"]}}"#,
    ),
    (
        r#"{"at":"1s","fault":"power_loss","node":"n1"}"#,
        r#"{"at":"1s","fault":"power_loss","node":"n1","restart":"warm","tear_sectors":false}"#,
    ),
    (
        r#"{"at":"1s","fault":"power_loss","node":"n1","restart":"never"}"#,
        r#"{"at":"1s","fault":"power_loss","node":"n1","restart":"never","tear_sectors":false}"#,
    ),
    (
        r#"{"at":"1s","fault":"reset","node":"n1"}"#,
        r#"{"at":"1s","fault":"reset","node":"n1","restart":"warm"}"#,
    ),
    (
        r#"{"at":"1s","fault":"disk_error","node":"n1"}"#,
        r#"{"at":"1s","fault":"disk_error","node":"n1","disk":0,"requests":"all","ppm":1000000}"#,
    ),
    (
        r#"{"at":"1s","fault":"clock_step","node":"n1","step":"- 1.5 s"}"#,
        r#"{"at":"1s","fault":"clock_step","node":"n1","step":"-1.5s"}"#,
    ),
    (
        r#"{"at":"1s","fault":"clock_step","node":"n1","step":-1}"#,
        r#"{"at":"1s","fault":"clock_step","node":"n1","step":"-1ns"}"#,
    ),
    (
        r#"{"at":"1s","fault":"command","node":"n1","argv":["echo","\u00e9\n"]}"#,
        r#"{"at":"1s","fault":"command","node":"n1","argv":["echo","é\n"]}"#,
    ),
];

#[test]
fn forms() {
    for (written, canonical) in FORMS {
        let plan = parse(written).unwrap();
        assert_eq!(plan.write(), format!("{canonical}\n"), "{written}");
        assert_eq!(parse(canonical), Ok(plan));
    }
}

#[test]
fn a_plan_is_in_the_order_of_time_and_then_of_lines() {
    let text = r#"
        {"at":"2s","fault":"reseed","node":"n1"}
        {"at":"1s","fault":"reseed","node":"n2"}
        # the same time, in another unit
        {"at":"2000ms","fault":"reseed","node":"n3"}
        {"at":0,"fault":"heal"}
    "#;
    let plan = parse(text).unwrap();
    let order: Vec<(u64, Option<&str>)> =
        plan.entries().iter().map(|entry| (entry.at_ns, node_of(entry))).collect();
    let s = 1_000_000_000;
    assert_eq!(order, [(0, None), (s, Some("n2")), (2 * s, Some("n1")), (2 * s, Some("n3"))]);
}

fn node_of(entry: &PlanEntry) -> Option<&str> {
    match &entry.what {
        What::Fault(fault) => fault.node(),
        _ => None,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_parsed_as_the_same_plan(plan in plan()) {
        let text = plan.write();
        prop_assert_eq!(text.lines().count(), plan.entries().len());
        prop_assert_eq!(parse(&text), Ok(plan.clone()));
        prop_assert_eq!(Plan::new(plan.entries().to_vec(), &names()), Ok(plan));
    }

    #[test]
    fn entries_survive_storage(entry in entry()) {
        let bytes = postcard::to_stdvec(&entry).unwrap();
        prop_assert_eq!(postcard::from_bytes::<PlanEntry>(&bytes), Ok(entry));
    }
}
