//! Tests that the report's page makes no requests, prints nothing to the console and throws no exceptions.

use serde_json::json;

use crate::sample::{check_quiet, evaluate, open, page};
use crate::trials::Ran;

pub(crate) fn a_page_requests_nothing_and_reports_no_problem() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    assert_eq!(evaluate(&mut browser, "performance.getEntriesByName('everett-ready').length"), json!(1));
    // Uses each part of the page once.
    evaluate(&mut browser, "for (const details of document.querySelectorAll('details')) details.open = true");
    evaluate(
        &mut browser,
        "for (const input of document.querySelectorAll('[data-filter]')) { input.value = 'line 1'; input.dispatchEvent(new Event('input', { bubbles: true })); }",
    );
    let rows = evaluate(
        &mut browser,
        "[...document.querySelectorAll('#logs-1 tbody tr')].filter((row) => !row.hidden).length",
    );
    assert!((1..=5).contains(&rows.as_u64().unwrap()), "{rows}");
    evaluate(&mut browser, "document.querySelector('button.copy').click()");
    evaluate(&mut browser, "scrollTo(0, document.body.scrollHeight)");
    check_quiet(&mut browser);
    Ok(())
}

/// The browser never executes text from guests, wherever the page and its script put it.
pub(crate) fn hostile_texts_are_inert() -> Ran {
    let word = "</script><img src=x onerror=owned=1><svg onload=owned=1>\"'><b>\u{202e}\u{1b}[31m";
    let mut browser = open(&page(40, word), 1280, 900)?;
    evaluate(&mut browser, "for (const details of document.querySelectorAll('details')) details.open = true");
    evaluate(&mut browser, "Everett.map.pick(5, 'zoom')");
    assert_eq!(evaluate(&mut browser, "typeof owned"), json!("undefined"));
    assert_eq!(evaluate(&mut browser, "document.querySelectorAll('img, b, svg[onload]').length"), json!(0));
    let text = evaluate(&mut browser, "document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains("<img src=x onerror=owned=1>") && text.contains("\\u{202e}\\u{1b}[31m"));
    assert!(!text.contains(['\u{202e}', '\u{1b}']));
    check_quiet(&mut browser);
    Ok(())
}
