//! Collects the paths that occur in the items of a module.

use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use super::Named;

/// Returns the paths that occur in items. Leaves out each path that has one segment and is not in a `use`: it refers to
/// an item of the same module, or to an item that a `use` has already named.
pub(super) fn of(items: &[&Item]) -> Vec<Named> {
    let mut found = Finder(Vec::new());
    for item in items {
        found.visit_item(item);
    }
    found.0
}

struct Finder(Vec<Named>);

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // A path that begins with `::` belongs to another crate.
        if item.leading_colon.is_none() {
            self.tree(&item.tree, &mut Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.0.push(Named { segments, imported_as: None });
        }
        visit::visit_path(self, path);
    }

    /// Skips visibilities: `pub(in path)` and `pub(super)` import nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

impl Finder {
    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let leaf = |name: String, before: &[String], imported_as: String| {
            let mut segments = before.to_vec();
            if name != "self" || before.is_empty() {
                segments.push(name);
            }
            Named { segments, imported_as: Some(imported_as) }
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                let known =
                    if name == "self" { before.last().cloned().unwrap_or_default() } else { name.clone() };
                self.0.push(leaf(name, before, known));
            }
            UseTree::Rename(rename) => {
                self.0.push(leaf(rename.ident.to_string(), before, rename.rename.to_string()));
            }
            UseTree::Glob(_) => self.0.push(leaf("*".to_owned(), before, "*".to_owned())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before)),
        }
    }
}
