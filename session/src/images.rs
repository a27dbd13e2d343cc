//! Images for worlds: what `everett-guest-image` builds, with a machine of ours where packages need one.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use everett_guest_image::{
    Cache, ImageSpec, KernelSource, Progress, RootSource, Stage, build, image, kernel::read_vmlinux,
};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::{show_bytes, show_duration_ns};
use tempfile::NamedTempFile;

use crate::configure::SoftConfigure;
use crate::identity::Identity;
use crate::machines::BootFiles;
use crate::progress::{self, Task};
use crate::style;
use crate::world_file::{Root, World};

/// An image that is in the cache.
#[derive(Debug, Clone)]
pub struct Image {
    /// What machines boot from.
    pub files: BootFiles,
    /// The digest of all of it, in hexadecimal.
    pub digest: String,
    /// How many packages it was made from.
    pub packages: usize,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Where the versions of its packages are written down, if it has any.
    pub lock: Option<PathBuf>,
}

impl Image {
    /// The identity of `world` on this image.
    #[must_use]
    pub fn identity(&self, world: &World) -> Identity {
        Identity::new(world, std::slice::from_ref(&self.digest))
    }
}

/// The image of a world: from the cache, or built. All nodes of a world share it.
///
/// # Errors
/// What is wrong with one of its parts, in one line.
pub fn get(progress: &dyn progress::Progress, world: &World, interrupt: &Interrupt) -> anyhow::Result<Image> {
    let cache = Cache::of_user()?;
    let spec = spec(world);
    let gate = cache.enter()?;
    let mut machine = SoftConfigure::new(&cache, interrupt);
    let clock = Stopwatch::start();
    let mut news = News { display: progress.begin(Task::Image), is_slow: false };
    let built = build(&spec, &cache, &mut machine, &mut news);
    let is_slow = news.is_slow;
    drop(news);
    let built = built.with_context(|| world.file.display().to_string())?;
    if is_slow {
        let ns = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        progress.note(&style::paint(style::FAINT, format!("image built in {}", show_duration_ns(ns))))?;
    }
    let entries = [Some(&built.vmlinux), Some(&built.initramfs), built.root.as_ref()];
    let paths: Vec<&Path> = entries.into_iter().flatten().map(|entry| entry.path.as_path()).collect();
    cache.note(&gate, &world.file, &paths)?;
    let lock = spec.lock.filter(|path| path.is_file());
    of_built(built, lock)
}

fn of_built(built: image::Image, lock: Option<PathBuf>) -> anyhow::Result<Image> {
    let entries = [Some(&built.vmlinux), Some(&built.initramfs), built.root.as_ref()];
    let bytes = entries.into_iter().flatten().map(|entry| entry.bytes).sum();
    let root = match built.root {
        None => None,
        Some(entry) => {
            let digest = blake3::Hash::from_hex(&entry.blake3)
                .map_err(|e| anyhow!("{}: its digest is damaged: {e}", entry.path.display()))?;
            Some((entry.path, *digest.as_bytes()))
        }
    };
    let files = BootFiles { kernel: built.vmlinux.path, initramfs: Some(built.initramfs.path), root };
    let packages = built.lock.packages.len() + usize::from(built.lock.kernel.is_some());
    Ok(Image { files, digest: built.digest, packages, bytes, lock })
}

/// What a world asks for. `world.lock` lies beside `world.toml`.
fn spec(world: &World) -> ImageSpec {
    let (suite, root) = match &world.image.root {
        Root::Packages { suite, packages } => {
            let mut all = packages.clone();
            all.extend(world.nodes.iter().flat_map(|node| node.packages.iter().cloned()));
            all.extend(world.filesystems().filter_map(|fs| fs.package()).map(str::to_owned));
            all.sort();
            all.dedup();
            (suite.clone(), RootSource::Packages(all))
        }
        Root::Path(path) if path.is_dir() => (SUITE_DEFAULT.to_owned(), RootSource::Folder(path.clone())),
        Root::Path(path) => (SUITE_DEFAULT.to_owned(), RootSource::Tar(path.clone())),
    };
    let mut spec = ImageSpec::of_packages(&suite, Vec::new());
    spec.root = root;
    if let Some(path) = &world.image.kernel {
        let modules = world.image.kernel_modules.clone();
        spec.kernel = KernelSource::File { path: path.clone(), modules };
    }
    spec.modules.extend(world.filesystems().filter_map(|fs| fs.module()).map(str::to_owned));
    spec.modules.sort();
    spec.modules.dedup();
    spec.mirror.clone_from(&world.image.mirror);
    spec.lock = Some(world.file.with_extension("lock"));
    spec.time_s = world.epoch_unix_s;
    spec
}

/// The suite of the kernel when the root filesystem comes from elsewhere.
const SUITE_DEFAULT: &str = "bookworm";

/// A kernel as an ELF file, which is gone when this is dropped.
#[derive(Debug)]
pub struct UnpackedKernel(NamedTempFile);

impl UnpackedKernel {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The ELF of a `vmlinux` or a `bzImage`.
///
/// # Errors
/// It cannot be read, or is not a kernel.
pub fn unpack_kernel(path: &Path) -> anyhow::Result<UnpackedKernel> {
    let vmlinux = read_vmlinux(path)?;
    let file = NamedTempFile::new().context("cannot make a temporary file")?;
    std::fs::write(file.path(), vmlinux).with_context(|| file.path().display().to_string())?;
    Ok(UnpackedKernel(file))
}

/// Passes the progress of a build on.
struct News<'p> {
    display: Box<dyn progress::Display + 'p>,
    /// True if there was something to wait for.
    is_slow: bool,
}

impl Progress for News<'_> {
    fn at(&mut self, stage: Stage, done: u64, total: u64) {
        self.is_slow |= matches!(stage, Stage::Download | Stage::Unpack | Stage::Root);
        let shown =
            (stage == Stage::Download).then(|| format!("{} of {}", show_bytes(done), show_bytes(total)));
        self.display.stage(stage.title(), done, total, shown);
    }

    fn line(&mut self, line: &str) {
        self.display.detail(line);
    }
}
