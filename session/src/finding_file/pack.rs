//! Packing of a run directory and a world into a finding file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context, bail};
use everett_finding_file::{Content, MemberSource, check_name, write};
use everett_guest_image::cache::CacheEntry;
use everett_input::file as input;
use everett_world_file::World;
use everett_world_file::seal::{Inputs, Named};

use super::{
    About, EVIDENCE_FILES_MAX, FINDINGS, IMAGES, OF_FINDING, OF_RUN, RUN, RUN_FILE_BYTES_MAX, WORLD,
    WORLD_FILE_BYTES_MAX, member_of,
};
use crate::explore::regression::Regression;
use crate::output::replace::replace_by;

/// Maximum depth of a folder that the world file names.
const DEPTH_MAX: usize = 32;
/// Maximum length of a regression file, in bytes.
const REGRESSION_BYTES_MAX: u64 = 16 << 20;
/// Name of the world's folder in the archive if its name on this host is invalid.
const FOLDER: &str = "world";

/// Inputs of [`pack`].
pub struct Parts<'p> {
    /// Description of the finding. [`pack`] fills in `world` and `folders`.
    pub about: About,
    /// Path of the run directory.
    pub run: &'p Path,
    /// The world.
    pub world: &'p World,
    /// Files and folders that the world file names on this host.
    pub inputs: &'p Inputs,
    /// Files of images to pack. May be empty.
    pub images: &'p [CacheEntry],
}

/// A finding file that was written.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Number of members, i.e. of files in the archive.
    pub members: usize,
    /// Length of all members, in bytes.
    pub unpacked_bytes: u64,
    /// Length of the finding file, in bytes.
    pub bytes: u64,
}

/// Contents of the members by name, and the folders of the world.
#[derive(Default)]
struct Members {
    sources: BTreeMap<String, Content>,
    folders: BTreeSet<String>,
}

/// Writes a finding file. An existing file is replaced only when the new file is complete.
///
/// # Errors
/// Returns an error of one line if a file cannot be read or cannot be a member, or if the finding file cannot be
/// written.
pub fn pack(parts: Parts<'_>, file: &Path, progress: &mut dyn FnMut(u64, u64)) -> anyhow::Result<Packed> {
    let Parts { mut about, run, world, inputs, images } = parts;
    let mut members = Members::default();
    let (folder, name) = names_of(&world.file)?;
    about.world = format!("{WORLD}/{folder}/{name}");
    of_run(&mut members, run, &about)?;
    members.file(about.world.clone(), &world.file, WORLD_FILE_BYTES_MAX)?;
    let lock = world.file.with_extension("lock");
    if lock.is_file() {
        let lock_name = Path::new(&name).with_extension("lock");
        members.file(format!("{WORLD}/{folder}/{}", lock_name.display()), &lock, WORLD_FILE_BYTES_MAX)?;
    }
    for Named { path, sealed } in &inputs.paths {
        let name = member_of(sealed, &folder);
        let name = name.with_context(|| format!("{}: its name is not UTF-8", path.display()))?;
        members.path(name, path, DEPTH_MAX)?;
    }
    for CacheEntry { path, bytes, blake3 } in images {
        let content = Content::File { path: path.clone(), bytes: *bytes, blake3: blake3.clone() };
        members.sources.insert(format!("{IMAGES}/{blake3}"), content);
    }
    about.folders = members.folders.into_iter().collect();
    let sources: Vec<MemberSource> =
        members.sources.into_iter().map(|(name, content)| MemberSource { name, content }).collect();

    replace_by(file, |new| {
        let mut out = BufWriter::with_capacity(1 << 20, &mut *new);
        let manifest = write(about, &sources, &mut out, progress)?;
        out.flush()?;
        drop(out);
        let bytes = new.metadata()?.len();
        Ok(Packed { members: manifest.members.len(), unpacked_bytes: manifest.bytes(), bytes })
    })
}

/// Returns the names of the world file's folder and of the world file. In the archive the folder keeps its name if
/// possible, because Everett derives the project name of a compose file from it.
fn names_of(file: &Path) -> anyhow::Result<(String, String)> {
    let here = || file.display().to_string();
    let folder = input::folder_of(file).canonicalize().with_context(here)?;
    let folder = folder.file_name().and_then(|name| name.to_str()).filter(|name| check_name(name).is_ok());
    let name = file.file_name().and_then(|name| name.to_str()).context("its name is not UTF-8");
    Ok((folder.unwrap_or(FOLDER).to_owned(), name.with_context(here)?.to_owned()))
}

/// Adds the files of the run directory.
fn of_run(members: &mut Members, run: &Path, about: &About) -> anyhow::Result<()> {
    for name in OF_RUN {
        let path = run.join(name);
        if path.symlink_metadata().is_ok() {
            members.file(format!("{RUN}/{name}"), &path, RUN_FILE_BYTES_MAX)?;
        }
    }
    for (begin, end) in OF_FINDING {
        let name = format!("{begin}{}{end}", about.finding);
        let path = run.join(&name);
        if path.symlink_metadata().is_ok() {
            members.file(format!("{RUN}/{name}"), &path, RUN_FILE_BYTES_MAX)?;
        }
    }
    // The regression file contains the path of the world file. After unpacking, the world file has another path, so the
    // packed regression file gets this new path.
    let name = format!("{RUN}/regression-{}.json", about.finding);
    if let Some(Content::File { path, .. }) = members.sources.get(&name) {
        let text = input::read(path, REGRESSION_BYTES_MAX)?;
        let mut regression: Regression =
            serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        regression.world = about.world.clone().into();
        let text = serde_json::to_string_pretty(&regression)? + "\n";
        members.sources.insert(name, Content::Bytes(text.into_bytes()));
    }
    let evidence = run.join(FINDINGS).join(about.finding.to_string());
    let entries = match fs::read_dir(&evidence) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| evidence.display().to_string()),
    };
    for (number, entry) in entries.enumerate() {
        let entry = entry.with_context(|| evidence.display().to_string())?;
        if number >= EVIDENCE_FILES_MAX {
            bail!("{}: more than {EVIDENCE_FILES_MAX} files", evidence.display());
        }
        let name = entry.file_name();
        let name =
            name.to_str().with_context(|| format!("{}: its name is not UTF-8", entry.path().display()))?;
        let name = format!("{RUN}/{FINDINGS}/{}/{name}", about.finding);
        members.file(name, &entry.path(), RUN_FILE_BYTES_MAX)?;
    }
    Ok(())
}

impl Members {
    /// Adds a file, or a folder with everything below it. A missing path adds nothing.
    fn path(&mut self, name: String, path: &Path, depth: usize) -> anyhow::Result<()> {
        let here = || path.display().to_string();
        let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
        if !metadata.is_dir() {
            return self.file(name, path, WORLD_FILE_BYTES_MAX);
        }
        let Some(depth) = depth.checked_sub(1) else {
            bail!("{}: more than {DEPTH_MAX} folders deep", path.display());
        };
        check_name(&name).with_context(here)?;
        self.folders.insert(name.clone());
        for entry in fs::read_dir(path).with_context(here)? {
            let entry = entry.with_context(here)?;
            let file = entry.file_name();
            let file = file
                .to_str()
                .with_context(|| format!("{}: its name is not UTF-8", entry.path().display()))?;
            self.path(format!("{name}/{file}"), &entry.path(), depth)?;
        }
        Ok(())
    }

    fn file(&mut self, name: String, path: &Path, bytes_max: u64) -> anyhow::Result<()> {
        let here = || path.display().to_string();
        check_name(&name).with_context(here)?;
        if self.sources.contains_key(&name) {
            return Ok(());
        }
        let (file, metadata) = input::open(path)?;
        let bytes = metadata.len();
        if bytes > bytes_max {
            bail!(
                "{}: longer than {bytes_max} bytes, the maximum for this part of a finding file",
                path.display()
            );
        }
        // An exploration may still append to the file. Length and digest cover only the bytes that are in the file now.
        let blake3 = digest(file, bytes).with_context(here)?;
        self.sources.insert(name, Content::File { path: path.to_owned(), bytes, blake3 });
        Ok(())
    }
}

fn digest(file: File, bytes: u64) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(bytes))?;
    Ok(hasher.finalize().to_hex().to_string())
}
