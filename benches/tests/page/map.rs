//! Tests of the report's page: the interactive map of branches.

use benches::browser::Browser;
use serde_json::{Value, json};

use crate::sample::{BRANCHES, check_quiet, evaluate, open, page};
use crate::trials::Ran;

fn panel(browser: &mut Browser) -> String {
    evaluate(browser, "document.getElementById('map-branch').innerText").as_str().unwrap().to_owned()
}

fn count(browser: &mut Browser) -> String {
    evaluate(browser, "document.getElementById('map-count').textContent").as_str().unwrap().to_owned()
}

/// Returns the number of different colours on the canvas.
fn colours(browser: &mut Browser) -> u64 {
    let script = "(() => { Everett.map.draw(); const c = document.getElementById('map-canvas'); \
                  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const all = new Set(); \
                  for (let i = 0; i < d.length; i += 4) all.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return all.size; })()";
    evaluate(browser, script).as_u64().unwrap()
}

fn set(browser: &mut Browser, name: &str, value: &str) {
    evaluate(
        browser,
        &format!(
            "(() => {{ const c = document.getElementById('map-controls').elements.{name}; c.value = '{value}'; \
        c.dispatchEvent(new Event('input', {{ bubbles: true }})); c.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        ),
    );
}

pub(crate) fn it_shows_filters_and_finds_branches() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    assert_eq!(count(&mut browser), format!("{BRANCHES} branches"));
    assert!(colours(&mut browser) > 5);
    // Number of branches that the filter must select, computed from the data.
    let found = evaluate(&mut browser, "new Set(Everett.data.tree.findings.map(([branch]) => branch)).size")
        .as_u64()
        .unwrap();
    set(&mut browser, "show", "found");
    assert_eq!(count(&mut browser), format!("{found} of {BRANCHES} branches"));
    set(&mut browser, "new", "100000");
    assert_eq!(count(&mut browser), format!("0 of {BRANCHES} branches"));
    set(&mut browser, "new", "0");
    set(&mut browser, "show", "all");
    // Goes to a branch by its number, and to another by its path.
    set(&mut browser, "go", "b17");
    assert!(panel(&mut browser).starts_with("Branch 17"), "{}", panel(&mut browser));
    let path = evaluate(&mut browser, "Everett.tree.path(123)");
    set(&mut browser, "go", path.as_str().unwrap());
    let shown = panel(&mut browser);
    assert!(shown.starts_with("Branch 123") && shown.contains("everett replay"), "{shown}");
    // A click on the canvas selects a branch. A drag moves the map and selects none.
    evaluate(
        &mut browser,
        "Everett.map.fit(); document.getElementById('map-canvas').scrollIntoView({ block: 'center', behavior: 'instant' })",
    );
    let place = evaluate(
        &mut browser,
        "(() => { const b = document.getElementById('map-canvas').getBoundingClientRect(); return [b.left + 30, b.top + b.height / 2]; })()",
    );
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    let mouse = |browser: &mut Browser, kind: &str, x: f64, y: f64| {
        let params = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        browser.call("Input.dispatchMouseEvent", &params).unwrap()
    };
    mouse(&mut browser, "mousePressed", x, y);
    mouse(&mut browser, "mouseReleased", x, y);
    let clicked = panel(&mut browser);
    assert!(clicked.starts_with("Branch ") && !clicked.starts_with("Branch 123\n"), "{clicked}");
    evaluate(&mut browser, "Everett.map.zoom(0.2, 100, 100)");
    let before = evaluate(&mut browser, "Everett.map.view()");
    mouse(&mut browser, "mousePressed", x, y);
    mouse(&mut browser, "mouseMoved", x, y - 60.0);
    mouse(&mut browser, "mouseReleased", x, y - 60.0);
    let after = evaluate(&mut browser, "Everett.map.view()");
    assert!(
        after["y0"].as_f64() > before["y0"].as_f64() && after["picked"] == before["picked"],
        "{before} {after}"
    );
    check_quiet(&mut browser);
    Ok(())
}

pub(crate) fn keys_go_from_branch_to_branch() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    evaluate(&mut browser, "document.getElementById('map-canvas').focus()");
    let mut picked = |key: &str| -> Value {
        for kind in ["keyDown", "keyUp"] {
            browser.call("Input.dispatchKeyEvent", &json!({ "type": kind, "key": key })).unwrap();
        }
        evaluate(&mut browser, "Everett.map.view().picked")
    };
    assert_eq!(picked("ArrowDown"), json!(0));
    let second = picked("ArrowDown").as_u64().unwrap();
    assert!(second > 0);
    assert_eq!(picked("ArrowUp"), json!(0));
    // Goes to the first child of the branch and back, if it has a child.
    let child = picked("ArrowRight");
    if child != json!(0) {
        assert_eq!(picked("ArrowLeft"), json!(0));
    }
    assert_eq!(picked("+"), json!(0));
    let rows = evaluate(&mut browser, "Everett.tree.rows").as_f64().unwrap();
    let view = evaluate(&mut browser, "Everett.map.view()");
    assert!(view["y1"].as_f64().unwrap() - view["y0"].as_f64().unwrap() < rows, "{view}");
    check_quiet(&mut browser);
    Ok(())
}
