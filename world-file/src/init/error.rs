//! Errors of `everett init`, which writes a draft of a world file.

use std::io;
use std::path::{Path, PathBuf};

use everett_input::file as input;

use super::elf::ElfError;

/// Reason why `everett init` cannot write a draft.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The compose file has an error.
    #[error(transparent)]
    Compose(crate::Error),
    /// The compose file has a block `x-everett`, so it needs no world file.
    #[error("{}: x-everett says already what a world file would say; run everett explore {}", .0.display(), .0.display())]
    HasBlock(PathBuf),
    /// The operator gave a number of machines, but the compose file determines it.
    #[error("--nodes: the machines are those of the compose file; write scale or deploy.replicas there")]
    NodesOfCompose,
    /// The operator gave a port, but the services of the compose file have ports of their own.
    #[error("--port: each service of a compose file has ports of its own; write them there")]
    PortOfCompose,
    /// A file cannot be read, or a path cannot be resolved.
    #[error(transparent)]
    Input(#[from] input::Error),
    /// The path is not UTF-8, so a TOML string cannot contain it.
    #[error("{}: the path is not UTF-8, so no world file can name it", .0.display())]
    NotText(PathBuf),
    /// Machines cannot run the program.
    #[error("{}", path.display())]
    Program {
        /// Path of the program.
        path: PathBuf,
        /// Defect of the file.
        source: ElfError,
    },
    /// The program is longer than a file in a world may be.
    #[error("{}: the program has more than {most} bytes, which a file of a world cannot have; put it into a container image", path.display())]
    TooLong {
        /// Path of the program.
        path: PathBuf,
        /// Maximum length in bytes.
        most: u64,
    },
    /// The image's name is invalid.
    #[error("{0}")]
    Image(String),
    /// The package's name is invalid.
    #[error("\"{0}\" is not the name of a Debian package")]
    Package(String),
    /// The argument is a world file.
    #[error("{0}: init writes a world file and reads none; to write it there, give -o {0}")]
    WorldFile(String),
    /// The argument is no file, image or Debian package.
    #[error(
        "\"{0}\" is no file, image or Debian package; write compose.yaml, redis:7, redis-server or ./server"
    )]
    Nothing(String),
    /// The argument is the name of a file, and may also be a Debian package.
    #[error("\"{0}\" is a file here, and can be a Debian package; write ./{0} or --package {0}")]
    FileOrPackage(String),
    /// The argument is the name of an image, and its server also is in a Debian package with another name.
    #[error(
        "\"{name}\" can be the container image or the Debian package {package}; write --image {name} or {package}"
    )]
    ImageOrPackage {
        /// The argument.
        name: String,
        /// Name of the package.
        package: &'static str,
    },
    /// The folder has neither a compose file nor an image.
    #[error("{}: this folder has neither a compose file nor an OCI layout", .0.display())]
    Folder(PathBuf),
    /// The draft does not load. This is a defect of Everett.
    #[error("Everett wrote a world that does not load, which is a defect of Everett; please report it")]
    Unloadable(#[source] crate::Error),
}

impl Error {
    pub(super) fn io(path: &Path, source: io::Error) -> Error {
        Error::Input(input::Error { path: path.to_owned(), reason: input::Reason::Io(source) })
    }
}
