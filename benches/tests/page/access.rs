//! Tests the accessibility of the report's page with axe-core.

use benches::browser::fetch;
use serde_json::{Value, json};

use crate::sample::{evaluate, open, page};
use crate::trials::{Lacking, Ran};

pub(crate) fn axe_finds_nothing_serious() -> Ran {
    let axe = fetch::axe().map_err(Lacking::new)?;
    let mut browser = open(&page(40, "x"), 1280, 900)?;
    evaluate(&mut browser, &format!("{axe};0"));
    evaluate(&mut browser, "for (const details of document.querySelectorAll('details')) details.open = true");
    evaluate(&mut browser, "Everett.map.pick(3, 'zoom')");
    for scheme in ["light", "dark"] {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.call("Emulation.setEmulatedMedia", &features).unwrap();
        let results = evaluate(
            &mut browser,
            "axe.run(document).then(({ violations, passes }) => ({ passes: passes.length, \
            violations: violations.map((v) => ({ id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + ' ' + n.failureSummary) })) }))",
        );
        // The checker must have run its checks.
        assert!(results["passes"].as_u64().unwrap() > 20, "{results}");
        let serious: Vec<&Value> = results["violations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|violation| violation["impact"] == "serious" || violation["impact"] == "critical")
            .collect();
        assert!(serious.is_empty(), "{scheme}: {}", serde_json::to_string_pretty(&serious).unwrap());
    }
    Ok(())
}
