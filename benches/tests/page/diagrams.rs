//! Tests of the report's page: space-time diagrams and charts of findings.

use benches::browser::Browser;
use serde_json::json;

use crate::sample::{check_quiet, evaluate, open, page};
use crate::trials::Ran;

fn number(browser: &mut Browser, selector: &str) -> u64 {
    evaluate(browser, &format!("document.querySelectorAll('#finding-1 {selector}').length")).as_u64().unwrap()
}

fn press(browser: &mut Browser, label: &str) {
    evaluate(
        browser,
        &format!("document.querySelector('#finding-1 .tools [aria-label=\"{label}\"]').click()"),
    );
}

pub(crate) fn forty_messages_are_arrows() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    // Each message is an arrow. The two lost messages end in a cross.
    assert_eq!(number(&mut browser, ".pane .st-hit"), 40);
    assert_eq!((number(&mut browser, ".pane .st-msg.drop"), number(&mut browser, ".pane .st-cross")), (2, 2));
    assert_eq!((number(&mut browser, ".pane .st-found"), number(&mut browser, ".pane .st-dense")), (1, 0));
    assert!(number(&mut browser, ".pane .st-fault") >= 1);
    // Arrows point forward in time: a message is sent before it arrives.
    let forward = "[...document.querySelectorAll('#finding-1 .pane .st-hit')].every((l) => +l.getAttribute('x2') >= +l.getAttribute('x1'))";
    assert_eq!(evaluate(&mut browser, forward), json!(true));
    press(&mut browser, "Zoom in");
    press(&mut browser, "Zoom in");
    let few = number(&mut browser, ".pane .st-hit");
    assert!((1..=20).contains(&few), "{few}");
    assert_eq!(number(&mut browser, ".pane .st-label"), few, "each of few messages must have a label");
    // The chart has the two operations. The operation without an answer has no end.
    assert_eq!(
        (number(&mut browser, "svg.history .op"), number(&mut browser, "svg.history .op.open")),
        (2, 1)
    );
    check_quiet(&mut browser);
    Ok(())
}

pub(crate) fn four_thousand_messages_are_readable() -> Ran {
    let mut browser = open(&page(4_000, "x"), 1280, 900)?;
    // The diagram first shows the messages around the operation that the finding names, which is near the end.
    let arrows = number(&mut browser, ".pane .st-hit");
    assert!((30..=60).contains(&arrows), "{arrows}");
    assert_eq!((number(&mut browser, ".pane .st-found"), number(&mut browser, ".pane .st-op")), (1, 1));
    // There are too many messages to draw an arrow for each. The diagram draws bars that show numbers of messages.
    press(&mut browser, "All messages");
    assert_eq!(number(&mut browser, ".pane .st-hit"), 0);
    let bars = number(&mut browser, ".pane .st-dense") + number(&mut browser, ".pane .st-msg.drop");
    assert!((100..=2_500).contains(&bars), "{bars}");
    let sums = "[...document.querySelectorAll('#finding-1 .pane .st-dense title, #finding-1 .pane .st-msg.drop title')].reduce((sum, t) => sum + parseInt(t.textContent), 0)";
    assert_eq!(evaluate(&mut browser, sums), json!(4_000));
    press(&mut browser, "Found: the messages before the finding");
    for _ in 0..9 {
        press(&mut browser, "Zoom in");
    }
    assert!(number(&mut browser, ".pane .st-hit") <= 60);
    check_quiet(&mut browser);
    Ok(())
}
