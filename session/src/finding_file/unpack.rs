//! Unpacking of a finding file on another host.
//!
//! Everett unpacks and verifies the whole file before it uses any part.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_explorer::run::Header;
use everett_finding_file::{MAGIC, Manifest, Member, Reader, check_name};
use everett_guest_image::Cache;
use everett_guest_image::cache::copy_sparse;
use everett_input::causes::with_causes;
use everett_input::file as input;
use everett_input::units::show_bytes;
use everett_world_file::seal::{ABSOLUTE, Blob, IMAGES as IMAGES_FOLDER, SEAL_FILE};

use super::{
    About, FINDINGS, IMAGES, OF_FINDING, OF_RUN, RUN, RUN_FILE_BYTES_MAX, WORLD, WORLD_BYTES_MAX,
    WORLD_FILE_BYTES_MAX,
};
use crate::world::identity::check_version;

/// Destination of image files.
#[derive(Debug, Clone, Copy)]
pub enum ImagesTo<'c> {
    /// The folder of the unpacked world.
    Folder,
    /// The cache, where files are named by their digests.
    Cache(&'c Cache),
    /// No destination: the files are only verified.
    Nowhere,
}

/// An unpacked finding file.
#[derive(Debug)]
pub struct Unpacked {
    /// Description of the finding in the manifest.
    pub about: About,
    /// Path of the world file.
    pub world: PathBuf,
}

/// Returns true if the file begins like a finding file.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn is_finding_file(path: &Path) -> anyhow::Result<bool> {
    let (file, _) = input::open(path)?;
    let mut begin = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).with_context(|| path.display().to_string())?;
    Ok(begin == MAGIC)
}

/// Reads the description of the finding from the manifest of a finding file. Only [`unpack`] verifies the rest of the
/// file.
///
/// # Errors
/// Returns an error of one line that names the file.
pub fn about(path: &Path) -> anyhow::Result<About> {
    let reader = open(path)?;
    Ok(reader.manifest().about.clone())
}

fn open(path: &Path) -> anyhow::Result<Reader<About>> {
    let here = || path.display().to_string();
    let (file, _) = input::open(path)?;
    let reader = Reader::<About>::new(file).with_context(here)?;
    check_version(path, &reader.manifest().about.machine_version)?;
    check(reader.manifest()).map_err(anyhow::Error::msg).with_context(here)?;
    Ok(reader)
}

/// Unpacks a finding file into the empty folder `into`, as a run directory with its world. The caller will move the
/// folder to `place`.
///
/// # Errors
/// Returns an error of one line that names the finding file. Files that were unpacked before the error stay in `into`.
pub fn unpack(path: &Path, into: &Path, place: &Path, images: ImagesTo<'_>) -> anyhow::Result<Unpacked> {
    let here = || path.display().to_string();
    let reader = open(path)?;
    check_space(reader.manifest(), into, images).with_context(here)?;
    let world = into.join(WORLD);
    make_folder(&world)?;
    if matches!(images, ImagesTo::Folder) && reader.manifest().about.seal.images.is_some() {
        make_folder(&world.join(IMAGES_FOLDER))?;
    }
    for folder in &reader.manifest().about.folders {
        make_folder(&into.join(folder))?;
    }
    let unpacked = reader.unpack(&mut |member, content| {
        let blob = member.name.strip_prefix(&format!("{IMAGES}/"));
        match (blob, images) {
            (Some(_), ImagesTo::Cache(cache)) => {
                cache.put_content(&member.blake3, content).map(drop).map_err(io::Error::other)
            }
            (Some(digest), ImagesTo::Folder) => new_file(&world.join(IMAGES_FOLDER).join(digest), content),
            (Some(_), ImagesTo::Nowhere) => Ok(()),
            (None, _) => {
                let below = member.name.strip_prefix(&format!("{RUN}/")).unwrap_or(&member.name);
                let file = into.join(below);
                fs::create_dir_all(file.parent().unwrap_or(into))?;
                new_file(&file, content)
            }
        }
    });
    let Manifest { mut about, members, .. } = unpacked.with_context(here)?;
    let world_member = format!("{WORLD}/");
    let of_world = members.into_iter().filter_map(|Member { name, blake3, .. }| {
        Some((name.strip_prefix(&world_member)?.to_owned(), blake3))
    });
    about.seal.files = of_world.collect();
    new_file(&world.join(SEAL_FILE), &mut &serde_json::to_vec_pretty(&about.seal)?[..]).with_context(here)?;
    // The header of the run directory still has the world file's path on the exporting host. The new path replaces it.
    let mut header = Header::read(into).with_context(here)?;
    check_version(path, &header.machine_version)?;
    let world = place.join(&about.world);
    header.world_file = world.display().to_string();
    let mut text = serde_json::to_vec_pretty(&header)?;
    text.push(b'\n');
    fs::write(into.join(OF_RUN[0]), text).with_context(here)?;
    make_folder(&into.join(FINDINGS))?;
    Ok(Unpacked { about, world })
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Writes a new file. An existing file is an error.
fn new_file(path: &Path, content: &mut dyn Read) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    copy_sparse(content, &mut file)?;
    file.flush()
}

/// Checks that all members belong to a finding and that none is missing.
pub(super) fn check(manifest: &Manifest<About>) -> Result<(), String> {
    let About { seal, world, folders, finding, .. } = &manifest.about;
    seal.check()?;
    if !seal.files.is_empty() {
        return Err("manifest.json: its seal has files already".to_owned());
    }
    let blobs: BTreeMap<&str, u64> = seal
        .images
        .iter()
        .flat_map(|images| images.blobs().map(|Blob { blake3, bytes }| (&**blake3, *bytes)))
        .collect();
    let (mut names, mut found, mut world_bytes) = (BTreeSet::new(), BTreeSet::new(), 0_u64);
    for Member { name, bytes, blake3 } in &manifest.members {
        let stray = || format!("manifest.json: {name} is no part of a finding");
        let most = match name.split_once('/').ok_or_else(stray)? {
            (RUN, below) if is_of_run(below, *finding) => RUN_FILE_BYTES_MAX,
            (WORLD, below) if is_of_world(below) => {
                world_bytes = world_bytes.saturating_add(*bytes);
                WORLD_FILE_BYTES_MAX
            }
            (IMAGES, digest) if digest == blake3 && blobs.get(digest) == Some(bytes) => {
                found.insert(digest);
                u64::MAX
            }
            _ => return Err(stray()),
        };
        if *bytes > most || world_bytes > WORLD_BYTES_MAX {
            return Err(format!("manifest.json: {name} is too long"));
        }
        names.insert(name.as_str());
    }
    for folder in folders {
        check_name(folder).map_err(|error| with_causes(&error))?;
        match folder.split_once('/') {
            Some((WORLD, below)) if is_of_world(below) || below == ABSOLUTE => {}
            _ => return Err(format!("manifest.json: {folder} is no folder of a world")),
        }
    }
    let needed = [format!("{RUN}/{}", OF_RUN[0]), format!("{RUN}/{}", OF_RUN[1]), world.clone()];
    if let Some(missing) = needed.iter().find(|name| !names.contains(name.as_str())) {
        return Err(format!("manifest.json: there is no {missing}"));
    }
    // The world file must be in a folder beside `everett.seal.json`, the file with the digests of the world's files.
    if world.split('/').count() != 3 || !world.starts_with(&format!("{WORLD}/")) {
        return Err(format!("manifest.json: {world} is not the place of a world file"));
    }
    match blobs.keys().find(|digest| !found.contains(**digest)) {
        Some(missing) => Err(format!("manifest.json: the file {missing} of its images is missing")),
        None => Ok(()),
    }
}

/// Returns true if the path `below` in the run directory is the path of a file that finding files may contain.
/// `finding` is the finding's number.
fn is_of_run(below: &str, finding: u32) -> bool {
    let of_finding = OF_FINDING.iter().any(|(begin, end)| below == format!("{begin}{finding}{end}"));
    let evidence = below.strip_prefix(&format!("{FINDINGS}/{finding}/"));
    OF_RUN.contains(&below) || of_finding || evidence.is_some_and(|name| !name.contains('/'))
}

/// Returns true if a member may have the path `below` in the folder `world`. Members cannot replace the seal
/// (`everett.seal.json`) or the images.
fn is_of_world(below: &str) -> bool {
    let top = below.split('/').next().unwrap_or_default();
    top != SEAL_FILE && top != IMAGES_FOLDER
}

/// Checks that the file system has space for the members.
fn check_space(manifest: &Manifest<About>, into: &Path, images: ImagesTo<'_>) -> anyhow::Result<()> {
    let place = match images {
        ImagesTo::Folder | ImagesTo::Nowhere => into,
        ImagesTo::Cache(cache) => cache.folder(),
    };
    let stat = rustix::fs::statvfs(place).with_context(|| place.display().to_string())?;
    check_free(manifest, images, place, stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Checks that `free` bytes are enough for the members.
pub(super) fn check_free(
    manifest: &Manifest<About>,
    images: ImagesTo<'_>,
    place: &Path,
    free: u64,
) -> anyhow::Result<()> {
    let is_kept = |member: &&Member| {
        !matches!(images, ImagesTo::Nowhere) || !member.name.starts_with(&format!("{IMAGES}/"))
    };
    let bytes: u64 = manifest.members.iter().filter(is_kept).map(|member| member.bytes).sum();
    if bytes > free {
        let (bytes, free) = (show_bytes(bytes), show_bytes(free));
        bail!("it unpacks to {bytes}, and {} has {free} free", place.display());
    }
    Ok(())
}
