//! Where a container image comes from: a file, a folder, a local store, a registry or a build.
//!
//! A world file names an [`ImageOrigin`], whose text `world-file/src/container.rs` reads. `guest-image/src/oci/`
//! fetches the image from this origin.
//!
//! **Invariant.** All versions of Everett format an [`ImageOrigin`] as the same text (`Display`), because `world.lock`
//! and finding files store this text.

use std::fmt;
use std::path::{Path, PathBuf};

/// Origin of a container image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageOrigin {
    /// A folder in the OCI image layout.
    Layout {
        /// Path of the folder.
        path: PathBuf,
        /// Name of the image in the layout. Optional if there is only one image.
        tag: Option<String>,
    },
    /// An archive of `docker save`, `podman save` or `skopeo copy`, in Docker's or the OCI's format, compressed or not.
    Archive {
        /// Path of the file.
        path: PathBuf,
        /// Name of the image in the archive. Optional if there is only one image.
        tag: Option<String>,
    },
    /// An image of the local Docker daemon. The value is its name or ID.
    Docker(String),
    /// An image of the local podman. The value is its name or ID.
    Podman(String),
    /// An image in a registry: `[HOST/]NAME[:TAG][@DIGEST]`.
    Registry(String),
    /// An image of the local Docker or podman if Docker or podman has this name, otherwise of a registry. If
    /// `world.lock` lists the image, Everett takes it from the registry, even if Docker or podman has it.
    Named(String),
    /// An image that the local Docker or podman builds.
    Built(ImageBuild),
}

/// Instructions for building an image with Docker or podman.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageBuild {
    /// Folder with the sources.
    pub context: PathBuf,
    /// Path of the Dockerfile. `None` means `Dockerfile` in the context.
    pub file: Option<PathBuf>,
    /// Build arguments. An argument without a value gets its value from the builder's environment.
    pub arguments: Vec<(String, Option<String>)>,
    /// Stage of the Dockerfile at which the build ends.
    pub target: Option<String>,
    /// Name for the built image.
    pub name: String,
}

impl fmt::Display for ImageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_tag = |f: &mut fmt::Formatter<'_>, path: &Path, tag: &Option<String>| {
            write!(f, "{}", path.display())?;
            tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))
        };
        match self {
            ImageOrigin::Layout { path, tag } | ImageOrigin::Archive { path, tag } => with_tag(f, path, tag),
            ImageOrigin::Docker(name) => write!(f, "docker-daemon:{name}"),
            ImageOrigin::Podman(name) => write!(f, "containers-storage:{name}"),
            ImageOrigin::Registry(name) => write!(f, "docker://{name}"),
            ImageOrigin::Named(name) => f.write_str(name),
            ImageOrigin::Built(build) => write!(f, "{} (built from {})", build.name, build.context.display()),
        }
    }
}
