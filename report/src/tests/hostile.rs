//! Tests that text from guests, files and worlds is shown only as text on the page, in the data and in the terminal.

use proptest::prelude::*;
use serde_json::Value;

use super::sample::data;
use crate::{page, text};

/// Returns the names of all elements of a page, in order, outside of its style and scripts.
fn elements(page: &str) -> Vec<String> {
    let body = page.split_once("</head>").unwrap().1.split_once("<script").unwrap().0;
    let tags = body.split('<').skip(1);
    tags.map(|tag| tag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect()).collect()
}

fn hidden(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

fn check(word: &str) {
    let page = inert(word);
    let plain = page::html(&data("x")).unwrap();
    // The elements of the page do not depend on texts.
    assert!(elements(&page) == elements(&plain), "{word:?}");
}

/// Checks that the report shows a word only as text. Returns the page.
fn inert(word: &str) -> String {
    let data = data(word);
    let page = page::html(&data).unwrap();
    assert!(!page.contains(hidden), "{word:?}");
    // The embedded data contains no `<`, `>` or `&`. Without its escapes, it equals the report's data.
    let (_, json) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = json.split_once("</script>").unwrap();
    assert!(!json.contains(['<', '>', '&']), "{word:?}");
    serde_json::from_str::<Value>(json).unwrap();
    let json = json.replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&");
    assert!(json == everett_input::text::json(&data.json().unwrap()), "{word:?}");
    for line in text::brief(&data) {
        assert!(!line.contains(|c: char| hidden(c) && c != '\t' || c == '\n'), "{line:?}");
    }
    for finding in &data.findings {
        for line in text::of_scene(finding.scene.as_ref().unwrap(), 20) {
            assert!(!line.contains(|c: char| hidden(c) && c != '\t' || c == '\n'), "{line:?}");
        }
    }
    page
}

#[test]
fn markup_escapes_and_long_lines() {
    for word in [
        "<script>alert(1)</script>",
        "</script><img src=x onerror=alert(1)>",
        "\" onmouseover=\"alert(1)",
        "'><svg/onload=alert(1)>",
        "<!--",
        "]]>",
        "&lt;b&gt;",
        "javascript:alert(1)",
        "\u{1b}[2J\u{1b}]0;title\u{7}",
        "\u{9b}31m",
        "\u{202e}txt.exe\u{2066}",
        "\u{0}\u{fffd}\u{feff}",
        "`rm -rf /` $(x) ; '\\''",
    ] {
        check(word);
    }
    // This text has 1.2 MB. Everett shortens texts of this length when it writes them to a run directory. Some JSON
    // lines are then incomplete, and the report cannot parse their operations and messages.
    let page = inert(&"<b>".repeat(400_000));
    assert!(page.len() < 8 << 20 && !page.contains("<b>"), "{}", page.len());
}

/// The page's content security policy allows only the page's own script and style, and nothing on the page refers to a
/// network.
#[test]
fn nothing_leaves_the_page() {
    let page = page::html(&data("x")).unwrap();
    let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").unwrap();
    let (policy, _) = policy.split_once('"').unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let addresses = page.matches("http://").count() + page.matches("https://").count();
    // The only address is the name of the SVG namespace, in the script.
    assert_eq!(addresses, 1);
    assert!(
        !page.contains("src=")
            && !page.contains("@import")
            && !page.contains("url(\"")
            && !page.contains("style=\"")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_text(word in "[<>&\"'/=`a-z!-]{1,14}|\\PC{1,12}|(?s).{1,12}") {
        check(&word);
    }
}
