//! Finds the files of a compose project: the operator's list, the list in the variable `COMPOSE_FILE`, or the files
//! with the usual names.

use std::path::{Path, PathBuf};

use super::variables::Variables;
use crate::confinement::{self, is_compose};
use crate::error::Error;
use crate::paths;

/// Separator in a list of files, as in `COMPOSE_FILE`.
const SEPARATOR: char = ':';
/// Name of the variable that lists a project's files.
const FILES: &str = "COMPOSE_FILE";
const FILES_SEPARATOR: &str = "COMPOSE_PATH_SEPARATOR";
/// Names of files that are merged over the project's main file, e.g. `compose.yaml`. Everett uses the first that is in
/// the folder.
const OVERRIDES: [&str; 4] = [
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

/// Returns a folder unchanged, or the current folder for an empty path.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Splits a list of files such as `compose.yaml:compose.prod.yaml`. `None` if `name` has no colon or is not UTF-8, if a
/// file has this name, or if a part does not end in `.yaml` or `.yml`.
pub(crate) fn files(name: &Path) -> Option<Vec<PathBuf>> {
    let text = name.to_str().filter(|text| text.contains(SEPARATOR))?;
    let parts: Vec<PathBuf> = text.split(SEPARATOR).map(PathBuf::from).collect();
    // A colon can also be part of a single file's path: of the file's name, or of a folder's name.
    (!name.is_file() && parts.iter().all(|part| is_compose(part))).then_some(parts)
}

/// Joins paths of files with colons. [`crate::load`] reads the result as a list.
pub fn listed<'f>(files: impl IntoIterator<Item = &'f Path>) -> PathBuf {
    let mut text = std::ffi::OsString::new();
    for (number, file) in files.into_iter().enumerate() {
        if number > 0 {
            text.push(SEPARATOR.to_string());
        }
        text.push(file);
    }
    text.into()
}

/// Returns the file in a folder that is merged over the project's main file. `None` if the folder has none.
pub(crate) fn beside(folder: &Path) -> Option<PathBuf> {
    OVERRIDES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Returns the list of files in `COMPOSE_FILE` for the project in a folder. `None` if the variable is unset or empty.
/// If Everett's environment does not contain the variable, the folder's `.env` can set it. Then all files must be in
/// the folder.
pub(crate) fn named(
    folder: &Path,
    process: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<PathBuf>, Error> {
    let mut variables = Variables::new(process);
    let dotenv = folder.join(".env");
    if dotenv.is_file() {
        let folder = or_here(folder);
        confinement::check(folder, &dotenv).map_err(|what| Error::whole(&dotenv, what))?;
        let found = super::document::read_variables(&dotenv, Some(&variables))?;
        variables.extend(found);
    }
    let Some(names) = variables.get(FILES).filter(|names| !names.is_empty()) else { return Ok(None) };
    let separator = variables.get(FILES_SEPARATOR).filter(|text| !text.is_empty());
    let separator = separator.unwrap_or_else(|| SEPARATOR.to_string());
    let mut files = Vec::new();
    for name in names.split(separator.as_str()) {
        let is_trusted = process(FILES).is_some();
        let file = if is_trusted {
            folder.join(name)
        } else {
            let bad = |what| Error { key: FILES.to_owned(), ..Error::whole(&dotenv, what) };
            if Path::new(name).is_absolute() {
                return Err(bad(format!("\"{}\" is outside of the folder", name.escape_debug())));
            }
            paths::within(folder, or_here(folder), name).map_err(bad)?
        };
        if !is_compose(&file) {
            let what = format!("\"{}\" does not end in .yaml or .yml", name.escape_debug());
            return Err(Error { key: FILES.to_owned(), ..Error::whole(&folder.join(".env"), what) });
        }
        files.push(file);
    }
    Ok(Some(listed(files.iter().map(PathBuf::as_path))))
}
