//! Saves and builds images with the `docker` and `podman` commands of this host.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use everett_image_origin::ImageBuild;
use everett_input::file::Reason;

use super::archive::Archive;
use super::error::Problem;
use crate::cache::{self, Cache, Key};

/// A program with a store of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// Docker. Its daemon stores the images.
    Docker,
    /// podman. It shares its store with buildah and skopeo.
    Podman,
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Program::Docker => "docker",
            Program::Podman => "podman",
        }
    }
}

/// Returns the cache key of an image's configuration. The key depends on the image's ID, which is a digest of the
/// image's content.
pub(super) fn key(program: Program, image: &str) -> Result<Key, Problem> {
    let id = run(program, &["image", "inspect", "--format", "{{.Id}}", image])?;
    let id = id.trim();
    if id.is_empty() || id.len() > 256 || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        let said = format!("it gives no ID for {image}");
        return Err(Problem::Program { program: program.name(), said });
    }
    Ok(Key::new("oci store").with(program.name()).with(id))
}

/// Saves an image to a temporary file, and opens the file as an archive.
pub(super) fn save(program: Program, image: &str, cache: &Cache) -> Result<Archive, Problem> {
    let folder = tempfile::tempdir_in(cache.temporary());
    let folder = folder.map_err(|source| cache::Error::of(&cache.temporary(), source))?;
    let path = folder.path().join("image.tar");
    let text = path.to_string_lossy().into_owned();
    let arguments: &[&str] = match program {
        Program::Docker => &["save", "--output", &text, image],
        Program::Podman => &["save", "--quiet", "--format", "oci-archive", "--output", &text, image],
    };
    run(program, arguments)?;
    // The archive keeps its file open when the folder is removed on return.
    Archive::open(Path::new(&path), cache)
}

/// Builds an image with Docker, or with podman on a host without Docker. Returns the program that now stores the image.
/// Both programs reuse results of earlier builds.
pub(super) fn build(build: &ImageBuild) -> Result<Program, Problem> {
    let context = build.context.to_string_lossy().into_owned();
    let mut arguments = vec!["build".to_owned(), "--tag".to_owned(), build.name.clone()];
    if let Some(file) = &build.file {
        arguments.extend(["--file".to_owned(), file.to_string_lossy().into_owned()]);
    }
    for (name, value) in &build.arguments {
        let argument = value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}={value}"));
        arguments.extend(["--build-arg".to_owned(), argument]);
    }
    if let Some(target) = &build.target {
        arguments.extend(["--target".to_owned(), target.clone()]);
    }
    arguments.push(context);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for program in [Program::Docker, Program::Podman] {
        match run(program, &words) {
            Ok(_) => return Ok(program),
            Err(Problem::NoProgram(_)) => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(Problem::NoBuilder)
}

/// Runs a program and returns its standard output.
fn run(program: Program, arguments: &[&str]) -> Result<String, Problem> {
    let name = program.name();
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Problem::NoProgram(name),
        _ => Problem::Read { what: format!("the output of {name}"), source: Reason::Io(source) },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let said = said.map_or_else(|| output.status.to_string(), |line| line.escape_debug().to_string());
    Err(Problem::Program { program: name, said })
}
