//! The report as one HTML file that refers to nothing on the network.
//!
//! - `about`: section on the origin of the report, on missing data, and on digests of its results
//! - `assets/`: embedded style and script; `live.js` and `live.css` belong to the served page
//! - `causality`: plot of how likely the finding was, and the step that decided it
//! - `coverage`: section on coverage
//! - `findability`: section on how often problems are found
//! - `findings`: section on findings
//! - `history`: chart of operations of clients
//! - `logs`: tables of logs
//! - `map`: map of branches
//! - `properties`: table of properties
//! - `reached_code`: functions that branches reached, and code that only failing branches reached
//! - `summary`: first screen: what was explored and found
//! - `svg`: computes scales and tick marks of charts
//! - `text`: formats texts and numbers
//!
//! The page is complete without its script. The script adds the interactive map, space-time diagrams, filters, search
//! and buttons. It reads the same data that `everett report --data` prints.
//!
//! **Invariants.**
//! - Text from guests and files reaches the page as text: escaped, on one line, with hidden characters visible.
//! - The content security policy allows only the page's own script and style. Even if foreign markup got into the
//!   page, it could not run or load anything.

mod about;
mod causality;
mod coverage;
mod findability;
mod findings;
mod history;
mod logs;
mod map;
mod properties;
mod reached_code;
mod summary;
mod svg;
mod text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::data::Data;

/// Style of the static page. In the served page, [`LIVE_STYLE`] follows it.
const STYLE: &str = include_str!("assets/style.css");
/// Parts of the script. Each is a separate function; they share the object `Everett`.
const SCRIPT: [&str; 6] = [
    include_str!("assets/base.js"),
    include_str!("assets/tree.js"),
    include_str!("assets/logs.js"),
    include_str!("assets/map.js"),
    include_str!("assets/spacetime.js"),
    include_str!("assets/search.js"),
];

/// Style of the served page's status bar.
const LIVE_STYLE: &str = include_str!("assets/live.css");
/// Texts around the script in the served page. They turn the script into a function, so that it can start again with
/// new data. `LIVE` is the script that calls this function.
const LIVE_SCRIPT: [&str; 3] = [
    "\"use strict\";\n",
    "// The script of the page, as a function that can start again with new data. `signal` removes its event listeners.\n\
     const everett = (signal) => {\n\
     const addEventListener = (type, heard, options) => window.addEventListener(type, heard, { ...options, signal });\n\
     const matchMedia = (query) => ({ addEventListener: (type, heard) => window.matchMedia(query).addEventListener(type, heard, { signal }) });\n",
    "return Everett;\n};\n",
];
const LIVE: &str = include_str!("assets/live.js");

/// Returns the page.
///
/// # Errors
/// Returns an error if the data cannot be serialized. No data is known to cause this.
pub fn html(data: &Data) -> Result<String, serde_json::Error> {
    let script = SCRIPT.concat();
    written(data, &script, STYLE, &policy(&script, STYLE), None)
}

/// Returns the page for `everett serve`. The script of this page asks the server whether there is a newer version. It
/// then shows the newer version without losing the reader's position. The attribute `data-version` of the document is
/// empty, and the server writes the version into it.
///
/// # Errors
/// Returns an error if the data cannot be serialized. No data is known to cause this.
pub fn live(data: &Data) -> Result<String, serde_json::Error> {
    let (script, style) = (live_script(), [STYLE, LIVE_STYLE].concat());
    let policy = format!("{}; connect-src 'self'", policy(&script, &style));
    written(data, &script, &style, &policy, Some(""))
}

/// Returns the content security policy of the served page, for a header. It allows the page's own script and style,
/// and requests to its server.
#[must_use]
pub fn live_policy() -> String {
    let (script, style) = (live_script(), [STYLE, LIVE_STYLE].concat());
    format!("{}; connect-src 'self'; frame-ancestors 'none'", policy(&script, &style))
}

fn live_script() -> String {
    let [begin, open, close] = LIVE_SCRIPT;
    [begin, open, &SCRIPT.concat(), close, LIVE].concat()
}

fn policy(script: &str, style: &str) -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

fn written(
    data: &Data,
    script: &str,
    style: &str,
    policy: &str,
    version: Option<&str>,
) -> Result<String, serde_json::Error> {
    let json = embedded(&data.json()?);
    let page = html! {
        (DOCTYPE)
        html lang="en" data-version=[version] {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Everett: " (text::plain(&data.summary.world)) }
                style { (PreEscaped(style)) }
            }
            body {
                a.skip href="#main" { "Skip to the report" }
                (navigation(data))
                @if version.is_some() {
                    div #live {
                        span #live-state role="status" {}
                        button type="button" id="live-pause" aria-pressed="false" { "Pause updates" }
                    }
                }
                main #main tabindex="-1" {
                    (summary::section(data))
                    (properties::section(data))
                    (findings::section(data))
                    (map::section(data))
                    (coverage::section(data))
                    (findability::section(data))
                    (about::section(data))
                }
                script type="application/json" id="data" { (PreEscaped(json)) }
                script { (PreEscaped(script)) }
            }
        }
    };
    Ok(page.into_string())
}

fn navigation(data: &Data) -> Markup {
    let findings = data.findings.len();
    let links = [
        ("summary", "Summary"),
        ("properties", "Properties"),
        ("findings", "Findings"),
        ("map", "Map"),
        ("coverage", "Coverage"),
        ("findability", "Findability"),
        ("about", "About"),
    ];
    html! {
        nav aria-label="Sections" {
            ul {
                @for (id, name) in links {
                    li {
                        a href={ "#" (id) } {
                            (name)
                            @if id == "findings" && findings > 0 { span.count.fail { (findings) } }
                        }
                    }
                }
            }
            form #search role="search" {
                label { span.hidden { "Search the report" } input type="search" name="text" placeholder="Search  /" autocomplete="off" aria-controls="search-results" aria-keyshortcuts="/"; }
                div #search-results hidden {
                    p #search-status.dim role="status" {}
                    ol {}
                }
            }
        }
    }
}

/// Returns JSON for a script element: it cannot end the element, and has no hidden characters.
fn embedded(json: &str) -> String {
    everett_input::text::json(json).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Returns the hash of an embedded script or style in the form that a content security policy needs.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
