//! Tests of the report's page that `everett serve` updates while the exploration goes on.

use benches::browser::{Browser, fetch};
use benches::night::{self, Scripted};
use everett::commands::live_page;
use everett::serve::Server;
use everett_explorer::run::{EndReason, ExplorationEnd, Reading};
use everett_explorer::search::strategy::StrategyKind;
use everett_report::page;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sample::evaluate;
use crate::trials::{Lacking, Ran};

const STRATEGY: StrategyKind = StrategyKind::Novelty;

/// Exploration that the test continues step by step, the server of its report, and a browser with the report's page.
struct Lab {
    run: TempDir,
    server: Option<Server>,
    browser: Browser,
}

impl Lab {
    fn new() -> Result<Lab, Lacking> {
        let root = fetch::browser().map_err(Lacking::new)?;
        let mut browser = Browser::start_on_network(&root, 1280, 900).map_err(Lacking::new)?;
        let run = tempfile::tempdir().unwrap();
        drop(night::journal(run.path(), STRATEGY).unwrap());
        let server = Server::start(run.path(), 0, page::live_policy(), Box::new(live_page)).unwrap();
        browser.visit(&server.url()).unwrap();
        evaluate(&mut browser, "window.mine = 'not reloaded'");
        Ok(Lab { run, server: Some(server), browser })
    }

    /// Continues the exploration up to this number of branches, as another process would.
    fn explore(&self, branches: u64) -> ExplorationEnd {
        let mut journal = night::journal(self.run.path(), STRATEGY).unwrap();
        let outcome = Scripted::new(1_000).explore(Some(&mut journal), STRATEGY, branches).unwrap();
        outcome.merged.end(EndReason::Branches, 1)
    }

    fn ask(&mut self, expression: &str) -> Value {
        evaluate(&mut self.browser, expression)
    }

    /// Waits in the page until an expression is true. If that never happens, the test hangs until the test runner
    /// kills it.
    fn until(&mut self, expression: &str) {
        let wait = format!(
            "new Promise((done) => {{ const look = () => {{ if ({expression}) done(true); else setTimeout(look, 50); }}; look(); }})"
        );
        assert_eq!(self.ask(&wait), json!(true));
    }

    fn check_quiet(&mut self) {
        self.ask("new Promise((done) => setTimeout(done, 0))");
        for method in ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"] {
            assert_eq!(self.browser.events(method), Vec::<Value>::new(), "{method}");
        }
        assert_eq!(self.ask("window.mine"), json!("not reloaded"));
    }
}

pub(crate) fn a_served_page_grows_and_the_reader_stays_where_they_are() -> Ran {
    let mut lab = Lab::new()?;
    assert_eq!(lab.ask("Everett.tree.count"), json!(0));
    lab.explore(5);
    lab.until("Everett.tree.count >= 5");
    lab.explore(300);
    lab.until("Everett.tree.count >= 250 && document.querySelectorAll('details.finding').length === 1");
    // The reader closes the finding, zooms the map to a branch, types a filter, and scrolls to the middle of the
    // page.
    lab.ask("document.querySelector('details.finding').open = false");
    // Focusing must not scroll the page: the smooth scrolling would not have ended when the test measures the position.
    lab.ask(
        "Everett.map.pick(120, 'zoom'); document.querySelector('#map-controls').elements.fault.focus({ preventScroll: true })",
    );
    lab.ask(
        "(() => { const f = document.querySelector('#map-controls').elements.new; f.value = '3'; f.dispatchEvent(new Event('input', { bubbles: true })); })()",
    );
    let place = "(() => { const box = document.getElementById('map-canvas').getBoundingClientRect(); return box.top; })()";
    lab.ask("document.getElementById('map-canvas').scrollIntoView({ block: 'start', behavior: 'instant' })");
    let (top, view) = (lab.ask(place).as_f64().unwrap(), lab.ask("Everett.map.view()"));
    let row = "Everett.map.view().y0 - Everett.tree.row[120]";
    let offset = lab.ask(row).as_f64().unwrap();
    lab.explore(900);
    lab.until("Everett.tree.count >= 800");
    assert!((lab.ask(place).as_f64().unwrap() - top).abs() < 2.0, "the map has moved");
    let after = lab.ask("Everett.map.view()");
    assert_eq!((&after["picked"], &after["x0"], &after["x1"]), (&json!(120), &view["x0"], &view["x1"]));
    assert!((lab.ask(row).as_f64().unwrap() - offset).abs() < 0.01, "{view} {after}");
    assert!(
        lab.ask("document.getElementById('map-branch').innerText")
            .as_str()
            .unwrap()
            .starts_with("Branch 120")
    );
    assert_eq!(lab.ask("document.querySelector('details.finding').open"), json!(false));
    assert_eq!(lab.ask("document.querySelector('#map-controls').elements.new.value"), json!("3"));
    assert!(lab.ask("document.getElementById('map-count').textContent").as_str().unwrap().contains(" of "));
    assert_eq!(lab.ask("document.activeElement.name"), json!("fault"));
    assert!(
        lab.ask("document.getElementById('live-state').textContent").as_str().unwrap().ends_with("so far")
    );
    // The exploration ends.
    let end = lab.explore(900);
    night::journal(lab.run.path(), STRATEGY).unwrap().finish(&end).unwrap();
    lab.until("document.getElementById('live-state').textContent.endsWith('the exploration has ended')");
    lab.until("Everett.tree.count === 900");
    assert_eq!(Reading::open(lab.run.path()).unwrap().len(), 900);
    lab.check_quiet();
    Ok(())
}

pub(crate) fn a_page_that_scrolls_is_left_alone() -> Ran {
    let mut lab = Lab::new()?;
    lab.explore(40);
    lab.until("Everett.tree.count === 40");
    // Simulates a reader who scrolls the page whenever the server answers.
    lab.ask(
        "var get = fetch; fetch = async (...request) => { \
         const answer = await get(...request); dispatchEvent(new Event('scroll')); return answer; }; 0",
    );
    lab.explore(80);
    // Waits longer than two polls.
    lab.ask("new Promise((done) => setTimeout(done, 4500))");
    assert_eq!(lab.ask("Everett.tree.count"), json!(40));
    lab.ask("fetch = get; 0");
    lab.until("Everett.tree.count === 80");
    lab.check_quiet();
    Ok(())
}

pub(crate) fn trouble_is_said_and_updates_can_be_paused() -> Ran {
    let mut lab = Lab::new()?;
    lab.explore(40);
    lab.until("Everett.tree.count > 0");
    lab.ask("document.getElementById('live-pause').click()");
    lab.explore(80);
    // Waits longer than two polls.
    lab.ask("new Promise((done) => setTimeout(done, 4500))");
    assert!(lab.ask("Everett.tree.count").as_u64().unwrap() <= 40);
    lab.ask("document.getElementById('live-pause').click()");
    lab.until("Everett.tree.count > 40");
    // If the run directory cannot be read, the page shows the error and keeps its content.
    std::fs::write(lab.run.path().join("run.json"), "{").unwrap();
    lab.until("document.getElementById('live').dataset.mood === 'trouble'");
    assert!(
        lab.ask("document.getElementById('live-state').textContent").as_str().unwrap().contains("run.json")
    );
    assert!(lab.ask("Everett.tree.count").as_u64().unwrap() > 40);
    drop(lab.server.take());
    lab.check_quiet();
    Ok(())
}
