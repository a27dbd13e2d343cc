//! Images of worlds. `everett-guest-image` builds them; a machine of Everett configures their packages.
//!
//! - this file: gets a world's image from the cache, or builds it
//! - `sealed`: images of worlds from finding files
//! - [`configure`]: machine that configures Debian packages
//! - [`steps`]: sends a list of requests to the agent (Everett's program in a guest), one after the other

pub mod configure;
mod sealed;
pub mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use everett_guest_image::cache::CacheEntry;
use everett_guest_image::lock::{Lock, LockedImage};
use everett_guest_image::oci::{self, ContainerImage};
use everett_guest_image::{
    BuildProgress, Cache, ImageSpec, KernelSource, RootSource, Stage, build, image, kernel::read_vmlinux,
};
use everett_host::interrupt::Interrupt;
use everett_host::time::{Stopwatch, unix_s};
use everett_image_origin::ImageOrigin;
use everett_input::units::{show_bytes, show_duration_ns};
use everett_remote::Access;
use everett_world_file::init::ImageFacts;
use everett_world_file::seal::SealedImages;
use everett_world_file::{Node, Root, World};
use tempfile::NamedTempFile;

use crate::guest::containers::{self, NodeImage};
use crate::guest::programs::{self, INIT, SHIM};
use crate::images::configure::SoftConfigure;
use crate::machines::BootFiles;
use crate::output::progress::{self, Task};
use crate::output::style;
use crate::world::identity::Identity;

/// Image of a world, stored in the cache.
#[derive(Debug, Clone)]
pub struct WorldImage {
    /// Files from which the machines boot.
    pub files: BootFiles,
    /// Digest of the whole image, in hexadecimal.
    pub digest: String,
    /// Number of packages in the image, the kernel's included.
    pub packages: usize,
    /// Total size of the image's files, in bytes.
    pub bytes: u64,
    /// Path of the lock file with the versions of packages and the digests of container images, if the file exists.
    pub lock: Option<PathBuf>,
    /// The image's files by digest, as a finding file lists them.
    pub sealed: SealedImages,
    /// The image's files, with their paths.
    pub entries: Vec<CacheEntry>,
}

impl WorldImage {
    /// Adds the container images of nodes. The digest stays the same if there are none.
    fn add(&mut self, world: &World, made: Vec<Made>, images: BTreeMap<String, Arc<NodeImage>>) {
        if images.is_empty() {
            return;
        }
        for Made { name, image, nodes } in made {
            self.entries.extend(image.entries().cloned());
            self.sealed.containers.push(sealed::of_container(name, &image.files, nodes));
        }
        // Images can share layers.
        self.entries.sort_by(|a, b| a.path.cmp(&b.path));
        self.entries.dedup();
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.digest.as_bytes()).update(blake3::hash(SHIM).as_bytes());
        if world.nodes.iter().any(containers::is_supervised) {
            hasher.update(blake3::hash(INIT).as_bytes());
        }
        for (node, own) in &images {
            hasher.update(format!("\n{node} {}", own.digest).as_bytes());
        }
        self.digest = hasher.finalize().to_hex().to_string();
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
        self.files.images = images;
    }

    /// Returns the identity of `world` with this image.
    #[must_use]
    pub fn identity(&self, world: &World) -> Identity {
        Identity::new(world, std::slice::from_ref(&self.digest))
    }
}

/// Returns the image of a world, with the container images of its nodes. Parts that are not in the cache are built.
/// Requests to registries and mirrors go through `access`.
///
/// # Errors
/// Returns an error of one line if a part of the image cannot be fetched, built or cached.
pub fn get(
    progress: &dyn progress::Progress,
    world: &World,
    access: &dyn Access,
    interrupt: &Interrupt,
) -> anyhow::Result<WorldImage> {
    for note in &world.notes {
        progress.note(&style::paint(style::FAINT, note.escape_debug()))?;
    }
    programs::check(world)?;
    let cache = Cache::of_user()?;
    if let Some(images) = world.seal.as_ref().and_then(|seal| seal.images.as_ref()) {
        return sealed::get(world, images, &cache);
    }
    let made = make(progress, world, &cache, access, interrupt);
    if world.seal.is_some() { made.map_err(|error| sealed::without_images(&error)) } else { made }
}

/// Makes the image of a world. Parts that the cache has are not made again.
fn make(
    progress: &dyn progress::Progress,
    world: &World,
    cache: &Cache,
    access: &dyn Access,
    interrupt: &Interrupt,
) -> anyhow::Result<WorldImage> {
    let mut spec = spec(world);
    let gate = cache.enter()?;
    let mut machine = SoftConfigure::new(cache, interrupt);
    let clock = Stopwatch::start();
    let mut stage_report = StageReport { display: progress.begin(Task::Image), is_slow: false };
    // Gets container images before the kernel, because they take less time: their errors then appear sooner.
    let containers = Containers::get(world, spec.lock.as_deref(), cache, access, &mut stage_report)?;
    spec.images.clone_from(&containers.pinned);
    let built = build(&spec, cache, access, &mut machine, &mut stage_report);
    let is_slow = stage_report.is_slow;
    drop(stage_report);
    let built = built.with_context(|| world.file.display().to_string())?;
    if is_slow {
        let ns = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        progress.note(&style::paint(style::FAINT, format!("image built in {}", show_duration_ns(ns))))?;
    }
    let entries = [Some(&built.vmlinux), Some(&built.initramfs), built.root.as_ref()];
    let entries: Vec<&CacheEntry> = entries.into_iter().flatten().chain(containers.entries()).collect();
    let paths: Vec<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
    cache.note(&gate, &world.file, &paths)?;
    let lock = spec.lock.filter(|path| path.is_file());
    let mut image = of_built(built, lock)?;
    image.add(world, containers.made, containers.images);
    Ok(image)
}

/// Container images of a world's nodes.
#[derive(Default)]
struct Containers {
    images: BTreeMap<String, Arc<NodeImage>>,
    /// Names and digests of the images from registries, for the lock file.
    pinned: Vec<LockedImage>,
    /// Container images, each once.
    made: Vec<Made>,
}

/// Container image, with the names of the nodes that use it.
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) image: ContainerImage,
    pub(crate) nodes: Vec<String>,
}

impl Containers {
    /// Gets the container images of all nodes.
    fn get(
        world: &World,
        lock: Option<&Path>,
        cache: &Cache,
        access: &dyn Access,
        progress: &mut dyn BuildProgress,
    ) -> anyhow::Result<Containers> {
        let mut containers = Containers::default();
        if world.nodes.iter().all(|node| node.image.is_none()) {
            return Ok(containers);
        }
        let lock = lock.map(Lock::read).transpose()?.flatten();
        let mut known: BTreeMap<&ImageOrigin, usize> = BTreeMap::new();
        for node in &world.nodes {
            let Some(origin) = &node.image else { continue };
            let at = || format!("{}: node \"{}\"", world.file.display(), node.name);
            let number = match known.get(origin) {
                Some(number) => *number,
                None => {
                    let name = origin.to_string();
                    let locked = lock.as_ref().and_then(|lock| lock.image(&name));
                    if world.seal.is_some() {
                        sealed::check_origin(origin, locked.is_some()).with_context(at)?;
                    }
                    let image = oci::get(origin, locked, world.epoch_unix_s, cache, access, progress)
                        .with_context(at)?;
                    let pinned = image.pinned.clone();
                    let pinned = pinned.map(|digest| LockedImage { name: name.clone(), digest });
                    containers.pinned.extend(pinned);
                    containers.made.push(Made { name, image, nodes: Vec::new() });
                    known.insert(origin, containers.made.len() - 1);
                    containers.made.len() - 1
                }
            };
            let Some(made) = containers.made.get_mut(number) else { continue };
            made.nodes.push(node.name.clone());
            let node_image = node_image(&made.name, &made.image, node).with_context(at)?;
            containers.images.insert(node.name.clone(), Arc::new(node_image));
        }
        Ok(containers)
    }

    fn entries(&self) -> impl Iterator<Item = &CacheEntry> {
        // Images can share layers.
        let all = self.made.iter().flat_map(|made| made.image.entries());
        all.map(|entry| (&entry.path, entry)).collect::<BTreeMap<_, _>>().into_values()
    }
}

/// Returns a container image as the image of `node`. Fails if a service has no command and the image
/// has no command either.
fn node_image(name: &str, image: &ContainerImage, node: &Node) -> anyhow::Result<NodeImage> {
    let node_image = NodeImage {
        name: name.to_owned(),
        disk: image.disk.clone(),
        config: image.config.clone(),
        digest: image.digest.clone(),
    };
    for service in &node.services {
        if node_image.argv(service).first().is_none_or(String::is_empty) {
            let (service, image) = (&service.name, &node_image.name);
            bail!("the image {image} has no command; add argv to the service \"{service}\"");
        }
    }
    Ok(node_image)
}

/// Returns ports and healthcheck of a container image, for the first world file that `everett init` writes.
///
/// # Errors
/// Returns an error of one line that names the image.
pub fn facts(origin: &ImageOrigin, access: &dyn Access) -> anyhow::Result<ImageFacts> {
    let cache = Cache::of_user()?;
    let _gate = cache.enter()?;
    let config = oci::config_of(origin, &cache, access)?;
    Ok(ImageFacts { ports: config.ports, has_healthcheck: config.healthcheck.is_some() })
}

fn of_built(built: image::BuiltImage, lock: Option<PathBuf>) -> anyhow::Result<WorldImage> {
    let packages = built.lock.packages.len() + usize::from(built.lock.kernel.is_some());
    let image::BuiltImage { vmlinux, initramfs, root, digest, .. } = built;
    let entries: Vec<CacheEntry> = [&vmlinux, &initramfs].into_iter().chain(&root).cloned().collect();
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    let sealed = sealed::of_boot(&vmlinux, &initramfs, root.as_ref(), packages);
    let root = root.map(|entry| {
        let digest = blake3::Hash::from_hex(&entry.blake3)
            .map_err(|e| anyhow!("{}: its digest is damaged: {e}", entry.path.display()))?;
        anyhow::Ok((entry.path, *digest.as_bytes()))
    });
    let (kernel, initramfs) = (vmlinux.path, Some(initramfs.path));
    let files = BootFiles { kernel, initramfs, root: root.transpose()?, images: BTreeMap::new() };
    Ok(WorldImage { files, digest, packages, bytes, lock, sealed, entries })
}

/// Returns the image specification of a world. Its lock file lies beside the world file.
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
    let mut spec = ImageSpec::of_packages(&suite, Vec::new(), unix_s());
    // If every node has a container image, no node needs a root filesystem from packages.
    spec.root = if world.nodes.iter().all(|node| node.image.is_some()) { RootSource::None } else { root };
    if let Some(path) = &world.image.kernel {
        let modules = world.image.kernel_modules.clone();
        spec.kernel = KernelSource::File { path: path.clone(), modules };
    }
    spec.modules.extend(world.filesystems().filter_map(|fs| fs.module()).map(str::to_owned));
    spec.modules.sort();
    spec.modules.dedup();
    spec.mirror = world.image.mirror.clone().or_else(mirror_of_user);
    spec.lock = Some(world.file.with_extension("lock"));
    spec.time_s = world.epoch_unix_s;
    spec
}

/// Returns the mirror that the environment variable [`MIRROR_VARIABLE`] names. A world uses it if its world file has no
/// mirror.
fn mirror_of_user() -> Option<String> {
    std::env::var(MIRROR_VARIABLE).ok().filter(|mirror| !mirror.is_empty())
}

/// Environment variable with the address of a mirror. A world uses only this mirror if its world file has no mirror.
const MIRROR_VARIABLE: &str = "EVERETT_MIRROR";

/// Debian suite that the kernel comes from if the root filesystem is not made from packages.
const SUITE_DEFAULT: &str = "bookworm";

/// ELF file of a kernel in a temporary file. Dropping this value deletes the file.
#[derive(Debug)]
pub struct UnpackedKernel(NamedTempFile);

impl UnpackedKernel {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Unpacks the ELF file from a `bzImage`, or copies a `vmlinux`.
///
/// # Errors
/// Returns an error if `path` cannot be read or is not a kernel, or if the temporary file cannot be written.
pub fn unpack_kernel(path: &Path) -> anyhow::Result<UnpackedKernel> {
    let vmlinux = read_vmlinux(path)?;
    let file = NamedTempFile::new().context("cannot make a temporary file")?;
    std::fs::write(file.path(), vmlinux).with_context(|| file.path().display().to_string())?;
    Ok(UnpackedKernel(file))
}

/// Forwards the progress of an image build to a [`progress::Display`].
struct StageReport<'p> {
    display: Box<dyn progress::Display + 'p>,
    /// True if the build downloaded or unpacked a file, or made a root filesystem.
    is_slow: bool,
}

impl BuildProgress for StageReport<'_> {
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
