//! Tests of the report's page: logs of findings and of branches.

use serde_json::json;

use crate::sample::{check_quiet, evaluate, open, page};
use crate::trials::Ran;

pub(crate) fn branches_on_recorded_timelines_show_their_logs() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    evaluate(&mut browser, "Everett.map.pick(Everett.data.findings[0].branch, 'zoom')");
    let panel = "document.getElementById('map-branch').innerText";
    let shown = evaluate(&mut browser, panel).as_str().unwrap().to_owned();
    assert!(
        shown.contains("redis line 30 x") && shown.contains("A replay shows its messages, too"),
        "{shown}"
    );
    let lines = evaluate(&mut browser, "document.querySelectorAll('.branch-log li').length");
    assert_eq!(lines, evaluate(&mut browser, "Everett.logs.of(Everett.data.findings[0].branch).length"));
    // Picks a branch whose log is not on the page.
    let other = "[...Array(Everett.tree.count).keys()].find((n) => Everett.logs.of(n) === null)";
    evaluate(&mut browser, &format!("Everett.map.pick({other}, 'zoom')"));
    let shown = evaluate(&mut browser, panel).as_str().unwrap().to_owned();
    assert!(shown.contains("its log is not on this page") && shown.contains("everett replay"), "{shown}");
    check_quiet(&mut browser);
    Ok(())
}

/// The page has logs of some branches without a finding. Such a branch shows its own lines, and its parent shows the
/// lines before the fork.
pub(crate) fn a_branch_without_a_finding_shows_its_own_lines() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    let mut lines = |branch: &str| -> Vec<String> {
        evaluate(&mut browser, &format!("Everett.map.pick({branch}, 'zoom')"));
        let texts = evaluate(
            &mut browser,
            "[...document.querySelectorAll('.branch-log li bdi')].map((line) => line.textContent)",
        );
        serde_json::from_value(texts).unwrap()
    };
    let other = "Everett.data.logs[0].branch";
    assert_eq!(lines(other), ["its own first one", "its own last one"]);
    assert_eq!(lines(&format!("Everett.tree.from[{other}]")), ["the last one of the parent"]);
    // The search finds the branch's lines, and goes to the branch.
    evaluate(
        &mut browser,
        "(() => { const field = document.getElementById('search').elements.text; field.value = 'apart own first'; \
         field.dispatchEvent(new Event('input')); document.querySelector('#search-results button').click(); })()",
    );
    let picked = "Everett.map.view().picked === Everett.data.logs[0].branch";
    assert_eq!(evaluate(&mut browser, picked), json!(true));
    check_quiet(&mut browser);
    Ok(())
}

pub(crate) fn all_lines_can_be_shown() -> Ran {
    let mut browser = open(&page(8_000, "x"), 1280, 900)?;
    let rows = "document.querySelectorAll('#logs-1 tbody tr[data-event]').length";
    assert!(evaluate(&mut browser, rows).as_u64().unwrap() < 600);
    evaluate(&mut browser, "document.querySelector('#finding-1 button[data-lines]').click()");
    assert_eq!(evaluate(&mut browser, rows), json!(800), "one line in ten messages");
    // The lines are in order, and each occurs once.
    let places = "[...document.querySelectorAll('#logs-1 tr[data-event]')].every((row, i) => +row.dataset.event === i)";
    assert_eq!(evaluate(&mut browser, places), json!(true));
    check_quiet(&mut browser);
    Ok(())
}
