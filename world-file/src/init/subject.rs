//! Decides what the argument of `everett init` names: a compose file, an image, a Debian package or a program.
//!
//! The first rule that fits decides:
//! - A name that ends in `.yaml` or `.yml` is a compose file. A name that ends in `.toml` is an error.
//! - A word that starts with a transport (`docker://`, `oci:`) or has the ending of an archive (`.tar`, `.tgz`) is an
//!   image.
//! - A word with a slash, if a folder has this path, is the compose file or the OCI layout in the folder. The same
//!   holds for the words `.` and `..`.
//! - A word with a slash, if a file has this path, is a program.
//! - A word with a slash, if nothing has this path, is an image's name (`library/redis`). It is an error if the word
//!   starts with `/`, `.` or `~`.
//! - A word with a colon or an at sign (`redis:7`) is an image.
//! - A word that cannot be a package's name is the path of a folder or a program, as above. It is an error if nothing
//!   has this path.
//! - Any other word is a Debian package, with three exceptions. The word is an error if a file has the same name. The
//!   word is an image if it is the name of a well-known image whose server is in no Debian package. The word is an
//!   error if it is the name of a well-known image whose server is in a Debian package with another name.

use std::path::{Path, PathBuf};

use super::elf;
use super::error::Error;
use super::servers;
use crate::container::{ARCHIVES, TRANSPORTS};
use crate::image::is_package;
use everett_input::file as input;

/// Names of compose files, in the order in which Everett looks for them in a folder.
pub const COMPOSE_FILES: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];

/// Meaning of an argument of `everett init`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A compose file.
    Compose(PathBuf),
    /// A container image, written as in a world file.
    Image(String),
    /// A Debian package, by name.
    Package(String),
    /// A program of the host, by path.
    Program(PathBuf),
}

/// Returns the compose files of a folder as one path, with colons between several files. Later files are merged over
/// earlier files. If the variable `COMPOSE_FILE` is set in Everett's environment or in the folder's `.env`, it names
/// the files. Otherwise they are the first file of [`COMPOSE_FILES`] that the folder has, and an override file in the
/// folder (such as `compose.override.yaml`), if any. Returns `None` if the folder has none of the [`COMPOSE_FILES`].
///
/// # Errors
/// Returns an error if `.env` cannot be read or names a file outside of the folder.
pub fn compose_in(folder: &Path) -> Result<Option<PathBuf>, Error> {
    if let Some(named) = crate::compose::named(folder, &crate::variable).map_err(Error::Compose)? {
        return Ok(Some(named));
    }
    let file = COMPOSE_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let with_override = |file: PathBuf| {
        crate::listed(std::iter::once(&*file).chain(crate::compose::beside(folder).as_deref()))
    };
    Ok(file.map(with_override))
}

impl Subject {
    /// Classifies `words`. Relative paths start at `folder`.
    ///
    /// # Errors
    /// Returns an error if no rule fits, or if the words are ambiguous.
    pub fn of(words: &str, folder: &Path) -> Result<Subject, Error> {
        let path = folder.join(words);
        if words.is_empty() {
            return Err(Error::Nothing(words.to_owned()));
        }
        if crate::confinement::is_compose(Path::new(words)) {
            return Ok(Subject::Compose(path));
        }
        if words.ends_with(".toml") {
            return Err(Error::WorldFile(words.to_owned()));
        }
        let has_transport = words.split_once(':').is_some_and(|(word, _)| TRANSPORTS.contains(&word));
        if has_transport || ARCHIVES.iter().any(|end| words.ends_with(end)) {
            return Ok(Subject::Image(words.to_owned()));
        }
        if words.contains('/') || words == "." || words == ".." {
            return of_path(words, path);
        }
        if words.contains([':', '@']) {
            return Ok(Subject::Image(words.to_owned()));
        }
        match (is_package(words), path.exists()) {
            (true, true) => Err(Error::FileOrPackage(words.to_owned())),
            (false, true) => of_path(words, path),
            (false, false) => Err(Error::Nothing(words.to_owned())),
            (true, false) if servers::is_only_image(words) => Ok(Subject::Image(words.to_owned())),
            (true, false) => match servers::of_image(words) {
                Some(server) if servers::of_package(words).is_none() => {
                    Err(Error::ImageOrPackage { name: words.to_owned(), package: server.packages[0] })
                }
                _ => Ok(Subject::Package(words.to_owned())),
            },
        }
    }
}

fn of_path(words: &str, path: PathBuf) -> Result<Subject, Error> {
    if path.is_dir() {
        if path.join("oci-layout").is_file() {
            return Ok(Subject::Image(words.to_owned()));
        }
        return compose_in(&path)?.map(Subject::Compose).ok_or(Error::Folder(path));
    }
    if !path.exists() && !words.starts_with(['/', '.', '~']) {
        return Ok(Subject::Image(words.to_owned()));
    }
    let bytes = program(&path)?;
    elf::read(&bytes).map_err(|source| Error::Program { path: path.clone(), source })?;
    Ok(Subject::Program(path))
}

/// Reads a program of the host. Fails if the program is longer than a file in a world may be.
pub(super) fn program(path: &Path) -> Result<Vec<u8>, Error> {
    let most = crate::files::FILE_BYTES_MAX;
    input::read(path, most).map_err(|error| match error.reason {
        input::Reason::TooLong(_) => Error::TooLong { path: path.to_owned(), most },
        _ => Error::Input(error),
    })
}
