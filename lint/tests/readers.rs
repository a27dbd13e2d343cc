//! Tests that only the crates `elf/` and `symbols/` read ELF files and debug information.
//!
//! A second reader would have bounds and mistakes of its own.

use std::fs;
use std::path::Path;

use everett_lint::files;

/// Libraries that read ELF files, debug information, unwind tables or mangled names.
const LIBRARIES: [&str; 12] = [
    "addr2line",
    "cpp_demangle",
    "elf",
    "framehop",
    "gimli",
    "goblin",
    "object",
    "pdb",
    "rustc-demangle",
    "symbolic",
    "wholesym",
    "xmas-elf",
];
/// Folders of the crates that may use these libraries.
const READERS: [&str; 2] = ["elf", "symbols"];
/// Texts in code that parses ELF files by hand: names of fields, tables and sections of the format.
const BY_HAND: [&str; 18] = [
    "e_phoff",
    "e_shoff",
    "e_phnum",
    "e_shnum",
    "e_shstrndx",
    "sh_offset",
    "sh_link",
    "p_vaddr",
    "st_value",
    "st_shndx",
    "phoff",
    "shoff",
    "\".symtab\"",
    "\".strtab\"",
    "\".dynsym\"",
    "\".debug_",
    "\".eh_frame",
    "\".gnu_debug",
];
/// Files that contain such a text for another purpose, with the purpose.
const EXEMPT: [(&str, &str); 1] = [("lint/tests/readers.rs", "this test")];

/// Returns the libraries among [`LIBRARIES`] on which a manifest depends.
fn used(manifest: &str) -> Vec<&'static str> {
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            in_dependencies = table.contains("dependencies");
            continue;
        }
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default().trim_matches('"');
        let package = line.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
        found.extend(
            LIBRARIES.into_iter().filter(|one| in_dependencies && (*one == name || Some(*one) == package)),
        );
    }
    found
}

/// Returns the folder of a file's crate below the top folder, and the file's path there.
fn below(path: &Path) -> String {
    path.strip_prefix(files::top()).unwrap_or(path).display().to_string()
}

#[test]
fn only_the_readers_depend_on_libraries_for_elf() {
    let mut found = Vec::new();
    let mut readers = 0;
    for path in files::below(files::top(), "Cargo.toml").unwrap() {
        let (name, manifest) = (below(&path), fs::read_to_string(&path).unwrap());
        // The workspace's own manifest only states versions.
        if name == "Cargo.toml" {
            continue;
        }
        let used = used(&manifest);
        if READERS.iter().any(|reader| name == format!("{reader}/Cargo.toml")) {
            readers += usize::from(!used.is_empty());
        } else {
            found.extend(used.into_iter().map(|library| format!("{name}: {library}")));
        }
    }
    assert_eq!(readers, READERS.len());
    assert!(found.is_empty(), "use everett-elf or everett-symbols instead:\n{}", found.join("\n"));
}

#[test]
fn no_other_crate_parses_elf_by_hand() {
    let mut found = Vec::new();
    let mut count = 0;
    for path in files::below(files::top(), ".rs").unwrap() {
        let name = below(&path);
        let is_reader = READERS.iter().any(|reader| name.starts_with(&format!("{reader}/")));
        if is_reader || EXEMPT.iter().any(|(exempt, _)| *exempt == name) {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).unwrap();
        let words = BY_HAND.iter().filter(|word| text.contains(**word));
        found.extend(words.map(|word| format!("{name}: {word}")));
    }
    assert!(count > 500, "only {count} files were found");
    assert!(found.is_empty(), "use everett-elf or everett-symbols instead:\n{}", found.join("\n"));
}

#[test]
fn dependencies_are_found_in_each_form() {
    let manifest = "[package]\nobject = 1\n[dependencies]\ngimli.workspace = true\nserde = \"1\"\n\
                    o = { package = \"object\", version = \"1\" }\n[target.x.dev-dependencies]\ngoblin = \"1\"\n";
    assert_eq!(used(manifest), ["gimli", "object", "goblin"]);
}
