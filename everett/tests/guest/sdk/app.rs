//! Program that uses every macro of the Rust SDK. Its assertions have the same outcomes on every machine.

use std::time::Duration;

use antithesis_sdk::prelude::*;
use antithesis_sdk::random;
use serde_json::json;

fn never() {
    assert_always!(true, "always is never evaluated");
    assert_sometimes!(true, "sometimes is never evaluated");
    assert_reachable!("is never reached");
    assert_unreachable!("is unreachable");
    assert_always_or_unreachable!(true, "is unreachable, and would hold");
}

fn main() {
    antithesis_init();
    assert_always!(true, "always holds", &json!({"n": 1}));
    for n in 0..3 {
        assert_always!(n != 1, "always fails once", &json!({"n": n, "long": "x".repeat(40_000)}));
    }
    assert_always_or_unreachable!(true, "holds or is unreachable");
    assert_always_or_unreachable!(false, "fails and is not unreachable");
    assert_sometimes!(true, "sometimes holds");
    assert_sometimes!(false, "sometimes never holds");
    assert_reachable!("is reached");
    assert_unreachable!("should not be reached", &json!({"why": "a test"}));
    if std::env::args().len() > 5 {
        never();
    }
    assert_always_greater_than!(5, 3, "is greater");
    assert_always_greater_than_or_equal_to!(3, 3, "is not less");
    assert_always_less_than!(2.5, 1.5, "is not less, and fails");
    assert_always_less_than_or_equal_to!(1, 2, "is less or equal");
    assert_sometimes_greater_than!(1, 9, "never greater");
    assert_sometimes_greater_than_or_equal_to!(9, 9, "once not less");
    assert_sometimes_less_than!(1, 2, "once less");
    assert_sometimes_less_than_or_equal_to!(3, 2, "never less or equal");
    let (left, right) = (false, true);
    assert_always_some!({left: left, right: right}, "one of them");
    assert_sometimes_all!({left: left, right: right}, "all of them");
    lifecycle::send_event("prepared", &json!({"size": 3}));
    lifecycle::setup_complete(&json!({"ready": true}));
    println!("ready");
    while !std::env::args().any(|word| word == "--once") {
        println!("random {:016x} {:?}", random::get_random(), random::random_choice(&[1, 2, 3]));
        std::thread::sleep(Duration::from_millis(20));
    }
}
