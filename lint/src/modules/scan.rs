//! Reads the modules of a crate from its source files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, Meta};

use super::{Module, ModulePath, ScanError, child, paths};

/// Reads the modules below a root file.
pub(super) fn modules(root: &Path) -> Result<BTreeMap<ModulePath, Module>, ScanError> {
    let mut all = BTreeMap::new();
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    file(&mut all, root, &folder, ModulePath::new())?;
    Ok(all)
}

/// Adds the module of a file, and all modules below it. `folder` contains the files of its child modules.
fn file(
    all: &mut BTreeMap<ModulePath, Module>,
    source: &Path,
    folder: &Path,
    path: ModulePath,
) -> Result<(), ScanError> {
    let error = |why: &dyn std::fmt::Display| ScanError(format!("{}: {why}", source.display()));
    let text = fs::read_to_string(source).map_err(|why| error(&why))?;
    let parsed = syn::parse_file(&text).map_err(|why| error(&why))?;
    items(all, source, folder, path, &parsed.items)
}

fn items(
    all: &mut BTreeMap<ModulePath, Module>,
    source: &Path,
    folder: &Path,
    path: ModulePath,
    items: &[Item],
) -> Result<(), ScanError> {
    let own: Vec<&Item> =
        items.iter().filter(|item| !matches!(item, Item::Mod(_)) && !is_test(attributes(item))).collect();
    all.insert(path.clone(), Module { file: source.to_owned(), names: paths::of(&own) });
    for item in items {
        let Item::Mod(module) = item else { continue };
        if is_test(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        let (below, path) = (folder.join(&name), child(&path, &name));
        match &module.content {
            Some((_, inside)) => self::items(all, source, &below, path, inside)?,
            None => {
                let (source, below) = place(folder, &name, &module.attrs);
                file(all, &source, &below, path)?;
            }
        }
    }
    Ok(())
}

/// Returns the file of a module, and the folder of its child modules.
fn place(folder: &Path, name: &str, attributes: &[Attribute]) -> (PathBuf, PathBuf) {
    let named = attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(value) if value.path.is_ident("path") => match &value.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    if let Some(named) = named {
        let file = folder.join(named);
        let below = file.parent().unwrap_or(folder).to_owned();
        return (file, below);
    }
    let (own, flat) = (folder.join(name), folder.join(format!("{name}.rs")));
    if flat.is_file() { (flat, own) } else { (own.join("mod.rs"), own) }
}

/// True if an item is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.tokens.clone().into_iter().any(|token| token.to_string() == "test")
        }
        Meta::Path(path) => path.is_ident("test"),
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
