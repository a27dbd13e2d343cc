//! Builds the root filesystem of an image.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use everett_input::file as input;

use super::kernel::Kernel;
use super::layers::{self, Layers};
use super::packages::{Fetched, Packages};
use super::{Error, ImageSpec, RootSource};
use crate::archive::{self, Mode, Store};
use crate::cache::{self, Cache, CacheEntry, Key};
use crate::compression::Format;
use crate::configure::{self, Configure, Configured, Files};
use crate::debian::{self, database, package::Package, unpack};
use crate::folder;
use crate::progress::{BuildProgress, Stage};
use crate::squashfs;
use crate::tree::{Attributes, CONTENT_BYTES_MAX, Content, Kind, OnFolder, Spool, Tree};

/// Version of this code, part of the cache keys. Increase the version if the same inputs would make different files.
const VERSION: &str = "2";

/// Program that invoke-rc.d(8) runs before it starts a service. Exit status 101 forbids the start.
const POLICY: &str = "usr/sbin/policy-rc.d";
const POLICY_SCRIPT: &[u8] = b"#!/bin/sh\nexit 101\n";

/// Files that are removed from an image after its packages are configured. They are the policy program, logs with
/// times, backups, caches that programs make again, and files that the agent (Everett's program in the guest) writes at
/// each boot.
const LEFTOVERS: [&str; 17] = [
    POLICY,
    "etc/hostname",
    "etc/hosts",
    "etc/resolv.conf",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
    "var/cache/debconf/config.dat-old",
    "var/cache/debconf/templates.dat-old",
    "var/cache/ldconfig/aux-cache",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/diversions-old",
    "var/log/alternatives.log",
    "var/log/dpkg.log",
];

/// Folders whose content is removed from an image.
const EMPTY: [&str; 3] = ["tmp", "var/tmp", "run"];

/// Folders at which the agent mounts filesystems, with their modes.
const MOUNT_POINTS: [(&str, u32); 5] =
    [("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("run", 0o755), ("tmp", 0o1777)];

/// Fetches the packages of the root. Returns no packages if the root comes from a folder or an archive.
pub(super) fn fetch(
    spec: &ImageSpec,
    packages: &mut Packages<'_>,
    progress: &mut dyn BuildProgress,
) -> Result<Vec<Fetched>, Error> {
    match &spec.root {
        RootSource::Packages(names) => packages.closure(names, progress),
        RootSource::None | RootSource::Folder(_) | RootSource::Tar(_) => Ok(Vec::new()),
    }
}

/// Makes the root filesystem from `fetched`, or from the folder or archive in `spec`. Takes the result from the cache
/// if the cache has it; a root from a folder is always made again.
pub(super) fn build(
    spec: &ImageSpec,
    cache: &Cache,
    fetched: &[Fetched],
    kernel: &Kernel,
    machine: &mut dyn Configure,
    progress: &mut dyn BuildProgress,
) -> Result<Option<CacheEntry>, Error> {
    let entry = match &spec.root {
        RootSource::None => return Ok(None),
        RootSource::Packages(_) => {
            // The cache key also covers the machine that configures the packages, with its kernel and its agent.
            let of_machine = |kind: &str| {
                let key = key(spec, kind).with(configure::VERSION).with(machine.identity());
                key.with(&kernel.vmlinux.blake3).with(&kernel.initramfs.blake3)
            };
            let with_all =
                |key: Key, digests: &[&str]| digests.iter().fold(key, |key, digest| key.with(digest));
            let digests: Vec<&str> = fetched.iter().map(|fetched| fetched.locked.sha256.as_str()).collect();
            let (key, layer_key) = (with_all(of_machine("staged packages"), &digests), of_machine("base"));
            match cache.get("root", &key) {
                Some(entry) => entry,
                None => {
                    let mut builder = RootBuilder { spec, cache, kernel, machine, progress };
                    let (tree, _spool) = builder.of_packages(fetched, layer_key)?;
                    store(spec, cache, &key, tree, progress)?
                }
            }
        }
        RootSource::Folder(path) => {
            let mut tree = Tree::default();
            folder::read(path, &mut tree).map_err(|folder::Error { path, source }| {
                let path = path.display().to_string();
                Error::RootFolder { path, source }
            })?;
            check_root(&tree, path)?;
            // Only a complete read of the folder would detect changes, so Everett makes the cache entry every time.
            let place = path.canonicalize().unwrap_or_else(|_| path.clone());
            let key = key(spec, "folder").with(place.as_os_str().as_encoded_bytes());
            store(spec, cache, &key, tree, progress)?
        }
        RootSource::Tar(path) => of_tar(spec, cache, path, progress)?,
    };
    Ok(Some(entry))
}

fn key(spec: &ImageSpec, kind: &str) -> Key {
    Key::new("root").with(VERSION).with(kind).with(spec.time_s.to_le_bytes())
}

/// Writes the tree to the cache, as the entry for this key.
fn store(
    spec: &ImageSpec,
    cache: &Cache,
    key: &Key,
    mut tree: Tree,
    progress: &mut dyn BuildProgress,
) -> Result<CacheEntry, Error> {
    progress.at(Stage::Root, 0, 1);
    for (path, mode) in MOUNT_POINTS {
        tree.put_folder(path.as_bytes(), Attributes::of_root(mode), OnFolder::Keep)
            .map_err(debian::Error::Database)?;
    }
    tree.clamp_times(spec.time_s);
    let entry = cache.put("root", key, |file| write(&tree, spec.time_s, file))?;
    progress.at(Stage::Root, 1, 1);
    Ok(entry)
}

fn write(tree: &Tree, time_s: u64, file: &mut File) -> Result<(), Error> {
    let mut out = io::BufWriter::with_capacity(1 << 20, file);
    squashfs::write(tree, u32::try_from(time_s).unwrap_or(u32::MAX), &mut out)?;
    Ok(())
}

/// Builder of a root from packages.
struct RootBuilder<'a> {
    spec: &'a ImageSpec,
    cache: &'a Cache,
    kernel: &'a Kernel,
    machine: &'a mut dyn Configure,
    progress: &'a mut dyn BuildProgress,
}

impl RootBuilder<'_> {
    /// Returns the root filesystem of these packages. The base ([`Layers::base`]) consists of the packages that every
    /// root filesystem has. If the cache has no installed base, its packages are installed now. The other packages
    /// are then installed on the base.
    fn of_packages(&mut self, fetched: &[Fetched], layer_key: Key) -> Result<(Tree, Spool), Error> {
        let opened =
            fetched.iter().map(|Fetched { locked, path }| Ok((Package::open(path)?, locked.sha256.as_str())));
        let Layers { base, rest } = Layers::of(opened.collect::<Result<Vec<_>, debian::Error>>()?);
        let mut spool = self.spool()?;
        let mut tree = unpack::merged_tree()?;
        if !base.is_empty() {
            let key = base.iter().fold(layer_key, |key, (_, sha256)| key.with(sha256));
            let base: Vec<Package> = base.into_iter().map(|(package, _)| package).collect();
            let layer = match self.cache.get("base", &key) {
                Some(layer) => layer,
                None => {
                    let mut spool = self.spool()?;
                    let tree = self.configured(tree, &mut spool, &base, true)?;
                    self.cache.put("base", &key, |file| layers::write(&tree, file))?
                }
            };
            tree = layers::read(&layer, &mut spool)?;
        }
        let rest: Vec<Package> = rest.into_iter().map(|(package, _)| package).collect();
        if !rest.is_empty() {
            tree = self.configured(tree, &mut spool, &rest, false)?;
        }
        Ok((tree, spool))
    }

    fn spool(&self) -> Result<Spool, Error> {
        let folder = self.cache.temporary();
        Ok(Spool::new(&folder, CONTENT_BYTES_MAX).map_err(|source| cache::Error::of(&folder, source))?)
    }

    /// Unpacks packages into a tree, has the machine configure them, and applies the machine's changes to the tree.
    fn configured(
        &mut self,
        mut tree: Tree,
        spool: &mut Spool,
        packages: &[Package],
        is_base: bool,
    ) -> Result<Tree, Error> {
        let RootBuilder { spec, cache, kernel, .. } = *self;
        let failed = |source: io::Error| cache::Error::of(&cache.temporary(), source);
        let mut unpacked = Vec::new();
        let total = packages.len() as u64;
        for (done, package) in packages.iter().enumerate() {
            self.progress.at(Stage::Unpack, done as u64, total);
            unpacked.push(unpack::unpack_package(package, &mut tree, spool)?);
        }
        spool.flush().map_err(failed)?;
        let paths: Vec<&str> = unpacked.iter().flat_map(|one| one.paths.iter().map(String::as_str)).collect();
        let triggered = layers::triggered(&tree, &paths)?;
        database::write(&mut tree, &unpacked, &triggered)?;
        let policy = Kind::File(Content::bytes(POLICY_SCRIPT));
        tree.put(POLICY.as_bytes(), Attributes::of_root(0o755), policy).map_err(debian::Error::Database)?;
        tree.clamp_times(spec.time_s);
        self.progress.at(Stage::Unpack, total, total);

        let mut disk = cache.temporary_file()?;
        write(&tree, spec.time_s, disk.as_file_mut())?;
        let files = Files {
            vmlinux: kernel.vmlinux.path.clone(),
            initramfs: kernel.initramfs.path.clone(),
            root_disk: disk.path().to_path_buf(),
        };
        let job = configure::job(files, packages, is_base, spec.time_s);
        let mut done = 0;
        self.progress.at(Stage::Configure, 0, total);
        let progress = &mut *self.progress;
        let Configured { out_disk, tar_bytes } = self.machine.configure(&job, &mut |line| {
            progress.line(line);
            // dpkg prints this line once for each package. When it processes triggers later, it prints different lines.
            if line.starts_with("Setting up ") {
                done += 1;
                progress.at(Stage::Configure, done.min(total), total);
            }
        })?;
        self.progress.at(Stage::Configure, total, total);
        apply(&out_disk, tar_bytes, &mut tree, spool)?;
        spool.flush().map_err(failed)?;
        for path in LEFTOVERS {
            tree.remove(path.as_bytes());
        }
        for path in EMPTY {
            tree.empty(path.as_bytes());
        }
        tree.clamp_times(spec.time_s);
        Ok(tree)
    }
}

/// Applies the changes that the machine packed as a tar archive on `out_disk`. The tree keeps this file open and reads
/// the contents of the changed files from it, so the caller may delete the file's path.
fn apply(out_disk: &Path, tar_bytes: u64, tree: &mut Tree, spool: &mut Spool) -> Result<(), Error> {
    let read = |source: io::Error| Error::Packed(archive::Error::Read(source));
    let file = Arc::new(File::open(out_disk).map_err(read)?);
    let reader = BufReader::new(File::open(out_disk).map_err(read)?.take(tar_bytes));
    let store = Store::InPlace(file, spool);
    archive::unpack(reader, tree, store, Mode::Overlay, |path| Some(path.to_vec())).map_err(Error::Packed)?;
    Ok(())
}

/// Builds a root filesystem from a tar archive, compressed or not.
fn of_tar(
    spec: &ImageSpec,
    cache: &Cache,
    path: &Path,
    progress: &mut dyn BuildProgress,
) -> Result<CacheEntry, Error> {
    let failed = |source: io::Error| Error::RootArchive {
        path: path.display().to_string(),
        source: archive::Error::Read(source),
    };
    let refused = |source: input::Reason| Error::RootFile { path: path.to_owned(), source };
    let (mut file, metadata) = input::open(path).map_err(|error| refused(error.reason))?;
    if metadata.len() > CONTENT_BYTES_MAX {
        return Err(refused(input::Reason::TooLong(CONTENT_BYTES_MAX)));
    }
    let (_, digest) = cache::digest(&mut file).map_err(failed)?;
    let key = key(spec, "tar").with(digest);
    if let Some(entry) = cache.get("root", &key) {
        return Ok(entry);
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut start = [0; 6];
    let length = file.read(&mut start).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut tree = Tree::default();
    let temporary = cache.temporary();
    let mut spool =
        Spool::new(&temporary, CONTENT_BYTES_MAX).map_err(|source| cache::Error::of(&temporary, source))?;
    let (reader, contents): (Box<dyn Read>, _) = match Format::detect(&start[..length]) {
        Some(format) => (format.reader(BufReader::new(file)).map_err(failed)?, Store::Spool(&mut spool)),
        None => {
            let same = Arc::new(file.try_clone().map_err(failed)?);
            (Box::new(BufReader::new(file)), Store::InPlace(same, &mut spool))
        }
    };
    archive::unpack(reader, &mut tree, contents, Mode::Plain, |path| Some(path.to_vec()))
        .map_err(|source| Error::RootArchive { path: path.display().to_string(), source })?;
    spool.flush().map_err(failed)?;
    check_root(&tree, path)?;
    store(spec, cache, &key, tree, progress)
}

fn check_root(tree: &Tree, path: &Path) -> Result<(), Error> {
    if tree.find(b"bin").is_some() || tree.find(b"usr/bin").is_some() {
        return Ok(());
    }
    Err(Error::NotARoot { path: path.display().to_string() })
}
