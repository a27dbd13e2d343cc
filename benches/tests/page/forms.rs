//! Tests of the report's page in other forms: printed, dark, narrow, without its script.

use benches::browser::Browser;
use serde_json::json;

use crate::sample::{check_quiet, evaluate, open, page};
use crate::trials::Ran;

fn display(browser: &mut Browser, selector: &str) -> String {
    let shown = evaluate(browser, &format!("getComputedStyle(document.querySelector('{selector}')).display"));
    shown.as_str().unwrap().to_owned()
}

pub(crate) fn it_prints_with_a_static_map() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    assert_eq!(
        (display(&mut browser, ".static-map"), display(&mut browser, "nav")),
        ("none".to_owned(), "flex".to_owned())
    );
    browser.call("Emulation.setEmulatedMedia", &json!({ "media": "print" })).unwrap();
    assert_eq!(
        (display(&mut browser, ".static-map"), display(&mut browser, "nav")),
        ("block".to_owned(), "none".to_owned())
    );
    assert_eq!(display(&mut browser, "#map-view"), "none");
    assert!(
        evaluate(&mut browser, "document.querySelectorAll('.static-map rect').length").as_u64().unwrap()
            > 100
    );
    let pdf = browser.call("Page.printToPDF", &json!({})).unwrap();
    assert!(pdf["data"].as_str().unwrap().starts_with("JVBERi"), "a PDF begins with %PDF-");
    check_quiet(&mut browser);
    Ok(())
}

pub(crate) fn it_is_dark_where_the_reader_wants_it() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    let background =
        |browser: &mut Browser| evaluate(browser, "getComputedStyle(document.body).backgroundColor");
    // The browser warns if a canvas is read twice, so each picture is read only once.
    let pixel = |browser: &mut Browser| {
        evaluate(browser, "(() => { Everett.map.draw(); return document.getElementById('map-canvas').getContext('2d').getImageData(1, 1, 1, 1).data[0]; })()").as_u64().unwrap()
    };
    let light = background(&mut browser);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.call("Emulation.setEmulatedMedia", &dark).unwrap();
    assert_ne!(background(&mut browser), light);
    // The script of the page notices the change to dark colours in the next frame.
    evaluate(
        &mut browser,
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))",
    );
    // In dark colours, the pixel is darker than 60. In light colours, it is nearly white (255).
    let map = pixel(&mut browser);
    assert!(map < 60, "{map}");
    check_quiet(&mut browser);
    Ok(())
}

pub(crate) fn it_fits_a_narrow_window() -> Ran {
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    let phone = json!({ "width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": true });
    browser.call("Emulation.setDeviceMetricsOverride", &phone).unwrap();
    let wide = evaluate(&mut browser, "document.documentElement.scrollWidth").as_u64().unwrap();
    assert!(wide <= 375, "{wide} pixels wide");
    check_quiet(&mut browser);
    Ok(())
}

/// Without its script, the page has all sections, tables and charts, and the static map. It hides the controls that
/// need the script.
pub(crate) fn it_is_complete_without_its_script() -> Ran {
    let mut browser = open(b"<!doctype html><title>empty</title>", 1280, 900)?;
    browser.call("Emulation.setScriptExecutionDisabled", &json!({ "value": true })).unwrap();
    browser.open(&page(40, "x")).unwrap();
    for (selector, shown) in [
        (".static-map", true),
        ("svg.history", true),
        ("#logs-1", true),
        (".controls", false),
        (".copy", false),
        (".filter", false),
    ] {
        assert_eq!(display(&mut browser, selector) != "none", shown, "{selector}");
    }
    Ok(())
}
