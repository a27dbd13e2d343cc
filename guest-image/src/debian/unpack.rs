//! Unpacks packages into a tree (a filesystem in memory), as dpkg does it.
//!
//! The caller passes the packages in the order of their installation. If two packages ship the same file, the tree
//! keeps the file of the later package, as dpkg does with `Replaces`.

use everett_input::file::Reason;

use super::{Error, package::Package};
use crate::archive::{Mode, Store, unpack};
use crate::tree::{Attributes, Kind, OnFolder, Spool, Tree};

/// Folders that are links into `/usr` on every Debian since bookworm (usrmerge).
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Suffix that dpkg appends to the name of a configuration file until the package is configured.
const NEW: &str = ".dpkg-new";

/// A package whose files are in the tree.
#[derive(Debug)]
pub struct Unpacked<'a> {
    /// The unpacked package.
    pub package: &'a Package,
    /// Absolute paths of the package's files, in the order in which dpkg lists them.
    pub paths: Vec<String>,
}

/// Returns an empty tree with merged `/usr`.
///
/// # Errors
/// Returns an error if the tree refuses a folder or link. An empty tree never does.
pub fn merged_tree() -> Result<Tree, Error> {
    let mut tree = Tree::default();
    for name in MERGED {
        let target = format!("usr/{name}");
        tree.put_folder(target.as_bytes(), Attributes::of_root(0o755), OnFolder::Keep)?;
        tree.put(name.as_bytes(), Attributes::of_root(0o777), Kind::Link(target.into_bytes()))?;
    }
    Ok(tree)
}

/// Unpacks a package's data into the tree. Configuration files get the temporary names that `dpkg --configure` expects.
///
/// # Errors
/// Returns an error if the package is damaged or the tree refuses a file.
pub fn unpack_package<'a>(
    package: &'a Package,
    tree: &mut Tree,
    spool: &mut Spool,
) -> Result<Unpacked<'a>, Error> {
    let data = package.data().map_err(|error| Error::Read {
        path: package.path().display().to_string(),
        source: Reason::Io(error),
    })?;
    let conffiles = package.conffiles();
    let rename = |path: &[u8]| {
        let is_conffile = conffiles.iter().any(|conffile| conffile.as_bytes() == absolute(path));
        Some(if is_conffile { [path, NEW.as_bytes()].concat() } else { path.to_vec() })
    };
    let paths = unpack(data, tree, Store::Spool(spool), Mode::Package, rename)
        .map_err(|source| Error::Tree { package: package.name.clone(), source })?;
    let paths = paths
        .iter()
        .map(|path| match absolute(path).as_slice() {
            b"/" => String::from("/."),
            path => String::from_utf8_lossy(path).into_owned(),
        })
        .collect();
    Ok(Unpacked { package, paths })
}

/// Makes a path absolute: `./etc/x/` becomes `/etc/x`.
fn absolute(path: &[u8]) -> Vec<u8> {
    let path = path.strip_prefix(b".").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    if path.starts_with(b"/") { path.to_vec() } else { [b"/", path].concat() }
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn paths_are_as_dpkg_lists_them() {
        for (from, to) in [("./", "/"), ("./etc/", "/etc"), ("./etc/x", "/etc/x"), ("etc/x", "/etc/x")] {
            assert_eq!(String::from_utf8(absolute(from.as_bytes())).unwrap(), to);
        }
    }
}
