//! Writes dpkg's records (`/var/lib/dpkg`) of packages that are unpacked but not configured.

use everett_input::file::Reason;

use super::Error;
use super::package::Package;
use super::unpack::Unpacked;
use crate::tree::{Attributes, Content, Kind, OnFolder, Tree};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Folder of dpkg's records in a root filesystem.
const FOLDER: &str = "var/lib/dpkg";

/// Fields of the mirror's index that dpkg leaves out of its records.
const NOT_KEPT: [&str; 3] = ["Filename", "Size", "SHA256"];

/// Maximum length of a record that Everett reads from the tree (the root filesystem in memory), in bytes.
const RECORD_BYTES_MAX: u64 = 256 << 20;

/// Returns the text of one of dpkg's records, or an empty text if the record does not exist.
///
/// # Errors
/// Returns an error if the record cannot be read.
pub fn text(tree: &Tree, name: &str) -> Result<String, Error> {
    let path = format!("{FOLDER}/{name}");
    let Some(content) = tree.file(path.as_bytes()) else { return Ok(String::new()) };
    let bytes = content.read(RECORD_BYTES_MAX);
    let bytes = bytes.map_err(|error| Error::Read { path, source: Reason::Io(error) })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes the records of these packages, and keeps the records that the tree already has. `triggered` becomes the file
/// `triggers/Unincorp`: the activated triggers that dpkg would have recorded while it unpacked the packages.
///
/// # Errors
/// Returns an error if an existing record cannot be read, or if the tree refuses a new record.
pub fn write(tree: &mut Tree, packages: &[Unpacked<'_>], triggered: &str) -> Result<(), Error> {
    let (mut status, files) = (text(tree, "status")?, text(tree, "triggers/File")?);
    let mut interests = Interests { files, named: BTreeMap::new() };
    let missing = |tree: &Tree, name: &str| tree.find(format!("{FOLDER}/{name}").as_bytes()).is_none();
    for folder in ["info", "updates", "triggers", "alternatives", "parts"] {
        tree.put_folder(format!("{FOLDER}/{folder}").as_bytes(), Attributes::of_root(0o755), OnFolder::Keep)?;
    }
    let empty = ["available", "diversions", "statoverride"].map(|name| (name, missing(tree, name)));
    let mut records = Records { tree };
    // The database has version 1 of dpkg's format. If a package can be installed for several architectures at once, the
    // names of its records contain the architecture.
    records.file("info/format", 0o644, b"1\n")?;
    for (name, _) in empty.iter().filter(|(_, missing)| *missing) {
        records.file(name, 0o644, b"")?;
    }
    records.file("triggers/Unincorp", 0o644, triggered.as_bytes())?;
    for unpacked in packages {
        let name = record_name(unpacked.package);
        let list: String = unpacked.paths.iter().map(|path| format!("{path}\n")).collect();
        records.file(&format!("info/{name}.list"), 0o644, list.as_bytes())?;
        for (file, mode, content) in &unpacked.package.files {
            records.file(&format!("info/{name}.{file}"), *mode, content)?;
        }
        status.push_str(&stanza(unpacked.package));
        interests.add(&name, &unpacked.package.file("triggers").unwrap_or_default());
    }
    records.file("status", 0o644, status.as_bytes())?;
    records.file("triggers/File", 0o644, interests.files.as_bytes())?;
    for (trigger, packages) in &interests.named {
        let name = format!("triggers/{trigger}");
        let all = text(records.tree, &name)? + packages;
        records.file(&name, 0o644, all.as_bytes())?;
    }
    Ok(())
}

/// Returns the name of a package's records in dpkg's database. The name includes the architecture if the package can be
/// installed for several architectures at once.
#[must_use]
pub fn record_name(package: &Package) -> String {
    match (package.control.field("Multi-Arch"), package.control.field("Architecture")) {
        (Some("same"), Some(architecture)) => format!("{}:{architecture}", package.name),
        _ => package.name.clone(),
    }
}

/// Returns the package's entry for the file `status`.
fn stanza(package: &Package) -> String {
    let mut text = format!("Package: {}\nStatus: install ok unpacked\n", package.name);
    for (key, value) in package.control.fields() {
        let kept = !["Package", "Status"].contains(&key) && !NOT_KEPT.contains(&key);
        if kept {
            let _ = writeln!(text, "{key}: {value}");
        }
    }
    let conffiles = package.conffiles();
    if !conffiles.is_empty() {
        text.push_str("Conffiles:\n");
        for conffile in conffiles {
            // dpkg writes this word in place of a digest while a configuration file still has its temporary name.
            let _ = writeln!(text, " {conffile} newconffile");
        }
    }
    text.push('\n');
    text
}

/// Packages that are interested in each trigger (deb-triggers(5)).
#[derive(Default)]
struct Interests {
    /// Interests in path triggers, in the format of the file `triggers/File`.
    files: String,
    /// Content of each file `triggers/NAME`. The key is the trigger's name.
    named: BTreeMap<String, String>,
}

impl Interests {
    fn add(&mut self, package: &str, triggers: &str) {
        for line in triggers.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let (Some(directive), Some(trigger)) = (words.next(), words.next()) else { continue };
            let suffix = match directive {
                "interest" | "interest-await" => "",
                "interest-noawait" => "/noawait",
                // The directives `activate` need no record: dpkg reads them from the package when it configures the
                // package.
                _ => continue,
            };
            if trigger.starts_with('/') {
                let _ = writeln!(self.files, "{trigger} {package}{suffix}");
            } else if !trigger.contains('/') {
                let list = self.named.entry(trigger.to_owned()).or_default();
                let _ = writeln!(list, "{package}{suffix}");
            }
        }
    }
}

struct Records<'a> {
    tree: &'a mut Tree,
}

impl Records<'_> {
    fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<(), Error> {
        let path = format!("{FOLDER}/{name}");
        self.tree.put(path.as_bytes(), Attributes::of_root(mode), Kind::File(Content::bytes(content)))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Interests;

    #[test]
    fn interests_are_recorded_as_dpkg_does() {
        let mut interests = Interests::default();
        interests.add("libc-bin", "# comment\ninterest-await ldconfig\n");
        interests.add(
            "debianutils",
            "interest-noawait /usr/share/debianutils/shells.d\nactivate-noawait ldconfig\n",
        );
        interests.add("other", "interest ldconfig # too\ninterest\ninterest a/../b\n");
        assert_eq!(interests.files, "/usr/share/debianutils/shells.d debianutils/noawait\n");
        assert_eq!(interests.named["ldconfig"], "libc-bin\nother\n");
        assert_eq!(interests.named.len(), 1);
    }
}
