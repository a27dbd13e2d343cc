//! `image` of a node: the container image that is its root filesystem.
//!
//! The forms are those of skopeo and podman (containers-transports(5)), and plain paths and names.

use std::path::{Path, PathBuf};

use super::cursor::Item;
use super::error::Error;
use super::paths;

/// Maximum length of an image's name, in bytes. Registries allow 255 for the name and 128 for the tag.
const NAME_BYTES_MAX: usize = 512;

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerImage {
    /// A folder in the OCI image layout.
    Layout {
        /// Path of the folder.
        path: PathBuf,
        /// Name of the image in it.
        tag: Option<String>,
    },
    /// An archive of an image, in the format of OCI or of Docker.
    Archive {
        /// Path of the file.
        path: PathBuf,
        /// Name of the image in it.
        tag: Option<String>,
    },
    /// An image of the local Docker daemon.
    Docker(String),
    /// An image of the local podman.
    Podman(String),
    /// An image in a registry.
    Registry(String),
    /// An image of a local store, or else of a registry.
    Named(String),
}

/// Reads an image.
pub(super) fn read(item: &Item<'_>) -> Result<ContainerImage, Error> {
    let text = item.str()?;
    if text.is_empty() || text.contains(char::is_control) {
        return Err(item.error("an image has a path or a name, without control characters"));
    }
    if let Some((transport, rest)) = text.split_once(':') {
        match transport {
            "oci" => {
                let (path, tag) = path_and_tag(item, rest)?;
                return layout(item, path, tag);
            }
            "oci-archive" | "docker-archive" => {
                let (path, tag) = path_and_tag(item, rest)?;
                return archive(item, path, tag);
            }
            "docker-daemon" => return name(item, rest).map(ContainerImage::Docker),
            "containers-storage" => return name(item, rest).map(ContainerImage::Podman),
            "docker" if rest.starts_with("//") => {
                return name(item, &rest[2..]).map(ContainerImage::Registry);
            }
            _ => {}
        }
    }
    if !is_path(item, text) {
        return name(item, text).map(ContainerImage::Named);
    }
    let path = paths::host_text(item, text)?;
    if path.is_dir() { layout(item, path, None) } else { archive(item, path, None) }
}

/// Returns true if a text without a transport names a file or folder, rather than an image.
fn is_path(item: &Item<'_>, text: &str) -> bool {
    let folder = item.source_file().parent().unwrap_or(Path::new(""));
    text.starts_with(['/', '.'])
        || ARCHIVES.iter().any(|end| text.ends_with(end))
        || folder.join(text).exists()
}

/// Ends of the names of archives.
const ARCHIVES: [&str; 6] = [".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2"];

/// Splits `PATH[:TAG]` at the first colon; a tag may contain colons (`redis:7`).
fn path_and_tag(item: &Item<'_>, text: &str) -> Result<(PathBuf, Option<String>), Error> {
    let (path, tag) = match text.split_once(':') {
        Some((path, tag)) => (path, Some(name(item, tag)?)),
        None => (text, None),
    };
    Ok((paths::host_text(item, path)?, tag))
}

fn layout(item: &Item<'_>, path: PathBuf, tag: Option<String>) -> Result<ContainerImage, Error> {
    if !path.join("oci-layout").is_file() {
        return Err(
            item.error(format!("{} is not an OCI layout, a folder with a file oci-layout", path.display()))
        );
    }
    Ok(ContainerImage::Layout { path, tag })
}

fn archive(item: &Item<'_>, path: PathBuf, tag: Option<String>) -> Result<ContainerImage, Error> {
    if !Path::new(&path).is_file() {
        return Err(item.error(format!("{} is not a file; name an archive of an image", path.display())));
    }
    Ok(ContainerImage::Archive { path, tag })
}

/// Checks the name of an image. It is passed to commands, so it cannot look like an option.
fn name(item: &Item<'_>, text: &str) -> Result<String, Error> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || text.len() > NAME_BYTES_MAX || !text.bytes().all(fits) {
        return Err(item.error(format!("\"{text}\" is not the name of an image, such as \"redis:7\"")));
    }
    Ok(text.to_owned())
}
