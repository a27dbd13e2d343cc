//! `image` of a node: the container image that is its root filesystem.
//!
//! The forms are those of skopeo and podman (containers-transports(5)), and plain paths and names.

use std::fs;
use std::path::{Path, PathBuf};

use everett_image_origin::{ImageBuild, ImageOrigin};
use everett_input::file::in_words;

use super::cursor::Item;
use super::error::Error;
use super::folder::folder_of;
use super::{confinement, paths, seal};

/// Maximum number of files of an OCI layout whose places are looked at.
const LAYOUT_FILES_MAX: usize = 4_096;
/// Files beside a Dockerfile that a builder reads.
const IGNORE_FILES: [&str; 2] = [".dockerignore", ".containerignore"];
/// An image in a compose file that lies elsewhere.
const OUTSIDE: &str = "an image outside of the compose file's folder; name it under [images] of a world file";
/// Maximum length of an image's name, in bytes. Registries allow 255 for the name and 128 for the tag.
const NAME_BYTES_MAX: usize = 512;

/// Words before a colon that say where an image is.
pub(super) const TRANSPORTS: [&str; 6] =
    ["oci", "oci-archive", "docker-archive", "docker-daemon", "containers-storage", "docker"];

/// Reads the origin of an image from its text, as in a world file in `folder`.
///
/// # Errors
/// Returns a line that says what is wrong with the text.
pub fn parse_image(folder: &Path, text: &str) -> Result<ImageOrigin, String> {
    parse(folder, text, false)
}

/// Reads the origin of an image.
pub(super) fn read(item: &Item<'_>) -> Result<ImageOrigin, Error> {
    let text = item.str()?;
    let folder = folder_of(item.source_file());
    let confined = confinement::is_compose(item.source_file());
    parse(folder, text, confined).map_err(|what| item.error(what))
}

/// Reads the origin of an image from its text; relative paths start at `folder`. If `confined`, all paths must lead to files below it.
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

/// Returns true if a text without a transport names a file or folder, rather than an image.
fn is_path(folder: &Path, text: &str) -> bool {
    text.starts_with(['/', '.'])
        || ARCHIVES.iter().any(|end| text.ends_with(end))
        || folder.join(text).exists()
}

/// Ends of the names of archives.
pub(super) const ARCHIVES: [&str; 6] = [".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2"];

/// Splits `PATH[:TAG]` at the first colon; a tag may contain colons (`redis:7`).
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

/// Checks the name of an image. It is passed to commands, so it cannot look like an option.
pub(super) fn name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || text.len() > NAME_BYTES_MAX || !text.bytes().all(fits) {
        return Err(format!("\"{text}\" is not the name of an image, such as \"redis:7\""));
    }
    Ok(text.to_owned())
}

/// Returns an error if an image is read from a path outside of the compose file's `folder`. Images by name are those of
/// the host's stores and of registries.
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

/// Checks the files of an OCI layout, which may be links.
fn confine_layout(folder: &Path, layout: &Path) -> Result<(), String> {
    let blobs = layout.join("blobs");
    let mut paths = vec![layout.join("index.json"), blobs.clone()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        confinement::check(folder, &path)?;
        // Blobs are in a folder for each algorithm.
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

/// Checks the files that a builder reads beside those that it copies. It copies links as links.
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
