//! Reads the key `image` of a node: the container image that is the node's root filesystem.
//!
//! An image is given as in skopeo and podman (containers-transports(5)), or by a path or name alone.

use std::fs;
use std::path::{Path, PathBuf};

use everett_image_origin::{ImageBuild, ImageOrigin};
use everett_input::file::{folder_of, in_words};

use super::cursor::Item;
use super::error::Error;
use super::{confinement, paths, seal};

/// Maximum number of files of an OCI layout that are checked for links out of the compose file's folder.
const LAYOUT_FILES_MAX: usize = 4_096;
/// Names of the files beside a Dockerfile that tell a builder which files to leave out.
const IGNORE_FILES: [&str; 2] = [".dockerignore", ".containerignore"];
/// Error for an image that a compose file takes from outside of the compose file's folder.
const OUTSIDE: &str = "an image outside of the compose file's folder; name it under [images] of a world file";
/// Maximum length of an image's name, in bytes. Registries allow 255 bytes for the name and 128 for the tag.
const NAME_BYTES_MAX: usize = 512;

/// Prefixes before a colon that say from where an image comes.
pub(super) const TRANSPORTS: [&str; 6] =
    ["oci", "oci-archive", "docker-archive", "docker-daemon", "containers-storage", "docker"];

/// Parses the text that names an image. Uses the rules for a world file in `folder`.
///
/// # Errors
/// Returns a line that says what is wrong with the text.
pub fn parse_image(folder: &Path, text: &str) -> Result<ImageOrigin, String> {
    parse(folder, text, false)
}

/// Reads the key `image`.
pub(super) fn read(item: &Item<'_>) -> Result<ImageOrigin, Error> {
    let text = item.str()?;
    let folder = folder_of(item.source_file());
    let confined = confinement::is_compose(item.source_file());
    parse(folder, text, confined).map_err(|what| item.error(what))
}

/// Parses the text that names an image. Relative paths start at `folder`. If `confined` is true, all paths must lead to
/// files below `folder`.
pub(super) fn parse(folder: &Path, text: &str, confined: bool) -> Result<ImageOrigin, String> {
    if !confined {
        return unconfined(folder, text);
    }
    let is_up = |text: &str| text.split(['/', ':']).any(|part| part == "..");
    let image = if is_up(text) { Err(OUTSIDE.to_owned()) } else { unconfined(folder, text) }?;
    confine(folder, &image)?;
    Ok(image)
}

fn unconfined(folder: &Path, text: &str) -> Result<ImageOrigin, String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err("an image has a path or a name, without control characters".to_owned());
    }
    if let Some((transport, rest)) = text.split_once(':') {
        match transport {
            "oci" => {
                let (path, tag) = path_and_tag(folder, rest)?;
                return layout(path, tag);
            }
            "oci-archive" | "docker-archive" => {
                let (path, tag) = path_and_tag(folder, rest)?;
                return archive(path, tag);
            }
            "docker-daemon" => return name(rest).map(ImageOrigin::Docker),
            "containers-storage" => return name(rest).map(ImageOrigin::Podman),
            "docker" if rest.starts_with("//") => {
                return name(&rest[2..]).map(ImageOrigin::Registry);
            }
            _ => {}
        }
    }
    if !is_path(folder, text) {
        return name(text).map(ImageOrigin::Named);
    }
    let path = host(folder, text)?;
    if path.is_dir() { layout(path, None) } else { archive(path, None) }
}

/// Returns true if a text without a prefix of [`TRANSPORTS`] is a path, and false if it is an image's name.
fn is_path(folder: &Path, text: &str) -> bool {
    text.starts_with(['/', '.'])
        || ARCHIVES.iter().any(|end| text.ends_with(end))
        || folder.join(text).exists()
}

/// Endings of the names of archives.
pub(super) const ARCHIVES: [&str; 6] = [".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2"];

/// Splits `PATH[:TAG]` at the first colon. A tag may contain colons itself (`redis:7`).
fn path_and_tag(folder: &Path, text: &str) -> Result<(PathBuf, Option<String>), String> {
    let (path, tag) = match text.split_once(':') {
        Some((path, tag)) => (path, Some(name(tag)?)),
        None => (text, None),
    };
    Ok((host(folder, path)?, tag))
}

fn host(folder: &Path, text: &str) -> Result<PathBuf, String> {
    if seal::has_images() {
        return Ok(PathBuf::from(text));
    }
    let path = seal::unlisted(|| paths::within(folder, folder, text))?;
    path.canonicalize().map_err(|error| format!("{}: {}", path.display(), in_words(&error)))
}

fn layout(path: PathBuf, tag: Option<String>) -> Result<ImageOrigin, String> {
    if !path.join("oci-layout").is_file() && !seal::has_images() {
        return Err(format!("{} is not an OCI layout, a folder with a file oci-layout", path.display()));
    }
    Ok(ImageOrigin::Layout { path, tag })
}

fn archive(path: PathBuf, tag: Option<String>) -> Result<ImageOrigin, String> {
    if !Path::new(&path).is_file() && !seal::has_images() {
        return Err(format!("{} is not a file; name an archive of an image", path.display()));
    }
    Ok(ImageOrigin::Archive { path, tag })
}

/// Checks an image's name. Commands get it as an argument, so it must not look like an option.
pub(super) fn name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || text.len() > NAME_BYTES_MAX || !text.bytes().all(fits) {
        return Err(format!("\"{text}\" is not the name of an image, such as \"redis:7\""));
    }
    Ok(text.to_owned())
}

/// Returns an error if an image is read from a path outside of the compose file's `folder`. Images by name come from a
/// local store or a registry, and are always allowed.
pub(super) fn confine(folder: &Path, image: &ImageOrigin) -> Result<(), String> {
    let outside = |_| OUTSIDE.to_owned();
    if seal::has_images() {
        return Ok(());
    }
    match image {
        ImageOrigin::Archive { path, .. } => confinement::check(folder, path).map_err(outside),
        ImageOrigin::Layout { path, .. } => {
            confinement::check(folder, path).map_err(outside)?;
            confine_layout(folder, path)
        }
        ImageOrigin::Built(build) => confine_build(folder, build),
        ImageOrigin::Docker(_)
        | ImageOrigin::Podman(_)
        | ImageOrigin::Registry(_)
        | ImageOrigin::Named(_) => Ok(()),
    }
}

/// Checks that no file of an OCI layout is a link out of `folder`.
fn confine_layout(folder: &Path, layout: &Path) -> Result<(), String> {
    let blobs = layout.join("blobs");
    let mut paths = vec![layout.join("index.json"), blobs.clone()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        confinement::check(folder, &path)?;
        // The folder `blobs` contains a folder for each digest algorithm.
        let is_folder_of_blobs = path == blobs || path.parent() == Some(&blobs);
        if is_folder_of_blobs && path.is_dir() {
            let failed = |error| format!("{}: {}", path.display(), in_words(&error));
            for entry in fs::read_dir(&path).map_err(failed)? {
                paths.push(entry.map_err(failed)?.path());
                if paths.len() > LAYOUT_FILES_MAX {
                    return Err(format!("{}: more than {LAYOUT_FILES_MAX} files", layout.display()));
                }
            }
        }
        next += 1;
    }
    Ok(())
}

/// Checks that the paths that a builder itself reads, e.g. the Dockerfile, do not lead out of `folder`. The files that
/// the builder copies into the image need no check, because it does not follow symbolic links when it copies.
fn confine_build(folder: &Path, build: &ImageBuild) -> Result<(), String> {
    let file = build.file.clone().unwrap_or_else(|| build.context.join("Dockerfile"));
    let mut paths: Vec<PathBuf> = IGNORE_FILES.iter().map(|name| build.context.join(name)).collect();
    paths.extend(IGNORE_FILES.iter().map(|end| {
        let mut name = file.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    }));
    paths.extend([build.context.clone(), build.context.join("Containerfile"), file]);
    paths.iter().try_for_each(|path| confinement::check(folder, path))
}
