//! The report as one HTML file without any reference to the network.
//!
//! - `summary`, `properties`, `findings` (with `history`: operations as a chart, and `logs`), `map`, `coverage`,
//!   `findability`, `about`: the sections
//! - `svg` and `text`: what they share
//! - `assets/`: style and script, which are embedded
//!
//! The page is complete without its script, which adds the interactive map, the space-time diagrams, filters, the
//! search and buttons. The script reads the same data that `everett report --data` prints.
//!
//! **Invariants.**
//! - A text of a guest or a file reaches the page as text: escaped, on one line, with hidden characters visible.
//! - The page's policy allows exactly its own script and style. So even if foreign markup got into the page, it could
//!   not run or load anything.

mod about;
mod causality;
mod coverage;
mod findability;
mod findings;
mod history;
mod logs;
mod map;
mod properties;
mod summary;
mod svg;
mod text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::data::Data;

const STYLE: &str = include_str!("assets/style.css");
/// Parts of the script. Each is a function of its own; they share one object.
const SCRIPT: [&str; 6] = [
    include_str!("assets/base.js"),
    include_str!("assets/tree.js"),
    include_str!("assets/logs.js"),
    include_str!("assets/map.js"),
    include_str!("assets/spacetime.js"),
    include_str!("assets/search.js"),
];

/// Returns the page.
///
/// # Errors
/// Returns an error if the data cannot be serialized. No data is known to cause this.
pub fn html(data: &Data) -> Result<String, serde_json::Error> {
    let script = SCRIPT.concat();
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(STYLE)
    );
    let json = embedded(&data.json()?);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Everett: " (text::plain(&data.summary.world)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the report" }
                (navigation(data))
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

/// Returns JSON that can stand in a script element: it cannot end the element, and has no hidden characters.
fn embedded(json: &str) -> String {
    everett_input::text::json(json).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Returns the hash of an embedded text, as a content security policy names it.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
