//! Tests of the report's page: the search, and the texts that say whether the result is interim and how much time the
//! recordings of timelines took.

use benches::browser::Browser;
use serde_json::json;

use crate::sample::{check_quiet, evaluate, open, page};
use crate::trials::Ran;

fn press(browser: &mut Browser, key: &str) {
    for kind in ["keyDown", "keyUp"] {
        let mut event = json!({ "type": kind, "key": key, "code": key });
        if key == "Enter" {
            event["text"] = json!("\r");
            event["windowsVirtualKeyCode"] = json!(13);
        }
        browser.call("Input.dispatchKeyEvent", &event).unwrap();
    }
}

fn text(browser: &mut Browser, expression: &str) -> String {
    evaluate(browser, expression).as_str().unwrap_or_default().to_owned()
}

/// Replaces the query, and returns the text with the number of results.
fn query(browser: &mut Browser, query: &str) -> String {
    evaluate(browser, "document.activeElement.blur()");
    press(browser, "/");
    assert_eq!(text(browser, "document.activeElement.name"), "text", "/ moves the focus to the search");
    browser.call("Input.insertText", &json!({ "text": query })).unwrap();
    text(browser, "document.getElementById('search-status').textContent")
}

pub(crate) fn texts_are_found_with_the_keyboard() -> Ran {
    let mut browser = open(&page(4_000, "x"), 1280, 900)?;
    // The sample has a line after every tenth message: "line 0", "line 10" and so on to "line 3990". The query names
    // the last line, because only this line contains its text. "line 30" would also match "line 300".
    assert_eq!(query(&mut browser, "redis line 3990"), "1 match");
    press(&mut browser, "ArrowDown");
    press(&mut browser, "Enter");
    let row = text(&mut browser, "document.activeElement.closest('tr.hit').textContent");
    assert!(row.contains("line 3990"), "{row}");
    assert_eq!(evaluate(&mut browser, "document.getElementById('search-results').hidden"), json!(true));
    // Finds messages by their fate, e.g. that they were dropped. All words of the query must occur, in any order.
    let lost = query(&mut browser, "DROP len");
    assert!(lost.starts_with("210 matches, 24 listed"), "{lost}");
    press(&mut browser, "Enter");
    assert_eq!(evaluate(&mut browser, "document.querySelectorAll('#finding-1 .st-mark').length"), json!(1));
    // Finds properties and findings.
    let first = "Everett.data.findings[0].property";
    let property = text(&mut browser, first);
    assert!(query(&mut browser, &property).contains("match"));
    let kinds = text(
        &mut browser,
        "[...document.querySelectorAll('#search-results .kind')].map((k) => k.textContent).join()",
    );
    assert!(kinds.contains("finding") && kinds.contains("property"), "{kinds}");
    assert_eq!(query(&mut browser, "no such text"), "Nothing has this text");
    press(&mut browser, "Escape");
    assert_eq!(evaluate(&mut browser, "document.getElementById('search-results').hidden"), json!(true));
    check_quiet(&mut browser);
    Ok(())
}

pub(crate) fn the_page_says_what_is_interim_and_what_was_spent() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    let page = text(&mut browser, "document.body.innerText");
    assert!(page.contains("Interim result of an unfinished search"), "{page}");
    assert!(page.contains("Events around this step, on the same nodes"));
    assert!(
        page.contains("recorded: timelines of 1 of 1 finding and 1 other branch, in 1.00 s of 60.0 s"),
        "{page}"
    );
    assert!(page.contains("40 messages: the whole timeline"));
    check_quiet(&mut browser);
    Ok(())
}
