//! Tests that the parts of a folder use each other only in the order that the folder's documentation states.

use std::fs;
use std::path::{Path, PathBuf};

use everett_lint::files;
use everett_lint::modules::Crate;
use everett_lint::order::{self, count, violations};

/// Number of folders that state an order. Change it when the documentation of a folder begins or ceases to state an
/// order.
const STATED: usize = 7;

#[test]
fn stated_orders_are_true() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut found, mut stated) = (Vec::new(), 0);
    // Crates whose folders state no order need not be parsed.
    let states = |file: &Path| order::stated(&fs::read_to_string(file).unwrap()).is_some();
    let stating: Vec<PathBuf> =
        files::below(top, ".rs").unwrap().into_iter().filter(|file| states(file)).collect();
    for manifest in files::below(top, "Cargo.toml").unwrap() {
        let folder = manifest.parent().unwrap();
        for root in ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root)) {
            let is_stating = stating.iter().any(|file| file.starts_with(folder.join("src")));
            if is_stating && root.is_file() {
                let imports = Crate::read(&root).unwrap().imports();
                stated += count(&imports).unwrap();
                found.extend(violations(&imports).unwrap());
            }
        }
    }
    assert!(found.is_empty(), "move what both use, or correct the list:\n{}", found.join("\n"));
    assert_eq!(stated, STATED, "an order was added, or a sentence does not state one any more");
}

/// Writes a crate of these files and returns the violations, without the crate's folder.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let imports = Crate::read(&folder.path().join("lib.rs")).unwrap().imports();
    let prefix = format!("{}/", folder.path().display());
    violations(&imports).unwrap().into_iter().map(|line| line.replace(&prefix, "")).collect()
}

#[test]
fn uses_against_the_order_are_found() {
    let list = "//! - [`one`]: first, with the `three` of others\n//! - `two/` and [`four`](mod@four):\n//!   second\n//!\n//! - [`three`]: no part";
    let files = |sentence: &str, one: &'static str, two: &'static str| {
        [
            ("lib.rs", format!("//! Parts. {sentence}\n{list}\nmod one; mod two; mod three; mod four;")),
            ("one.rs", format!("{one} pub struct One;")),
            ("two/mod.rs", format!("{two} pub struct Two;")),
            ("three.rs", "pub struct Three;".to_owned()),
            ("four.rs", "use crate::two::Two; pub struct Four;".to_owned()),
        ]
    };
    let of = |sentence, one, two| {
        let files = files(sentence, one, two);
        found(&files.each_ref().map(|(name, text)| (*name, text.as_str())))
    };
    let (above, below) =
        ("Each folder uses only folders above it:", "Each module uses only modules below it:");
    assert_eq!(of(above, "", "use crate::one::One;"), [""; 0]);
    assert_eq!(of(above, "use crate::two::Two;", ""), ["lib.rs: one uses two, against the stated order"]);
    assert_eq!(of(below, "use crate::two::Two;", ""), [""; 0]);
    assert_eq!(of(below, "", "use crate::one::One;"), ["lib.rs: two uses one, against the stated order"]);
    assert_eq!(of(above, "", "use crate::three::Three;"), ["lib.rs: the list lacks three"]);
    assert_eq!(of("Parts:", "use crate::two::Two;", ""), [""; 0]);
}
