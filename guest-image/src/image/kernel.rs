//! Makes the kernel and the initramfs of an image.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use everett_input::file as input;

use super::packages::Packages;
use super::{Error, ImageSpec, KernelSource};
use crate::agent::AGENT;
use crate::archive;
use crate::cache::{self, Cache, CacheEntry, Key};
use crate::debian::{self, package::Package};
use crate::kernel::modules::{Available, DEFAULT_MODULES};
use crate::kernel::{KERNEL_BYTES_MAX, MODULE_BYTES_MAX, MODULES_BYTES_MAX, read_vmlinux, vmlinux};
use crate::progress::BuildProgress;
use crate::{initramfs, kernel};

/// Version of this code, part of the cache keys. Increase the version if the same inputs would make different files.
const VERSION: &str = "2";

/// Maximum length of a kernel package's content, in bytes. Debian's kernel packages have 500 MiB.
const PACKAGE_BYTES_MAX: u64 = 4 << 30;

/// Files from which a machine boots before it mounts the root filesystem of its image.
pub(super) struct Kernel {
    pub(super) vmlinux: CacheEntry,
    pub(super) initramfs: CacheEntry,
}

/// ELF file of a kernel, and the kernel's modules.
struct Parts {
    vmlinux: Vec<u8>,
    modules: Option<Available>,
}

/// Package or files from which the kernel and the initramfs are made. Their cache keys begin with the same part, `key`.
/// The package is already downloaded, and the files are already read.
pub(super) struct Source {
    key: Key,
    content: SourceContent,
}

enum SourceContent {
    /// Path of the kernel package's file.
    Package(PathBuf),
    /// Kernel and modules from the files that the world names.
    Parts(Parts),
}

/// Downloads the kernel's package, or reads the kernel files that the world names.
pub(super) fn fetch(
    spec: &ImageSpec,
    packages: &mut Packages<'_>,
    progress: &mut dyn BuildProgress,
) -> Result<Source, Error> {
    match &spec.kernel {
        KernelSource::Package(name) => {
            let fetched = packages.kernel(name, progress)?;
            let key = Key::new("kernel package").with(VERSION).with(&fetched.locked.sha256);
            Ok(Source { key, content: SourceContent::Package(fetched.path) })
        }
        KernelSource::File { path, modules } => {
            let parts = Parts {
                vmlinux: read_vmlinux(path)?,
                modules: modules.as_deref().map(of_folder).transpose()?,
            };
            let mut key = Key::new("kernel file").with(VERSION).with(&parts.vmlinux);
            for input in parts.modules.iter().flat_map(Available::identity) {
                key = key.with(input);
            }
            Ok(Source { key, content: SourceContent::Parts(parts) })
        }
    }
}

impl Source {
    /// Makes the kernel and the initramfs, or takes both from the cache.
    pub(super) fn build(self, spec: &ImageSpec, cache: &Cache) -> Result<Kernel, Error> {
        entries(spec, cache, &self.key, || match self.content {
            SourceContent::Package(path) => of_package(&Package::open(&path)?),
            SourceContent::Parts(parts) => Ok(parts),
        })
    }
}

/// Returns both files from the cache. If either is missing, calls `parts` and makes both files from the result.
fn entries(
    spec: &ImageSpec,
    cache: &Cache,
    key: &Key,
    parts: impl FnOnce() -> Result<Parts, Error>,
) -> Result<Kernel, Error> {
    let mut wanted: Vec<&str> = DEFAULT_MODULES.to_vec();
    wanted.extend(spec.modules.iter().map(String::as_str));
    let vmlinux_key = key.clone().with("vmlinux");
    let initramfs_key = key.clone().with("initramfs").with(AGENT).with(wanted.join(" "));
    let (vmlinux, initramfs) = (cache.get("vmlinux", &vmlinux_key), cache.get("initramfs", &initramfs_key));
    if let (Some(vmlinux), Some(initramfs)) = (vmlinux, initramfs) {
        return Ok(Kernel { vmlinux, initramfs });
    }
    let parts = parts()?;
    let modules = match &parts.modules {
        Some(available) => available.closure(wanted)?,
        None => Vec::new(),
    };
    let archive = initramfs::build(AGENT, &modules);
    let store = |name: &str, key: &Key, content: &[u8]| {
        cache.put::<cache::Error>(name, key, |file: &mut File| {
            file.write_all(content).map_err(|source| cache::Error::of(cache.folder(), source))
        })
    };
    Ok(Kernel {
        vmlinux: store("vmlinux", &vmlinux_key, &parts.vmlinux)?,
        initramfs: store("initramfs", &initramfs_key, &archive)?,
    })
}

/// Finds `/boot/vmlinuz-RELEASE` and the modules in a package.
fn of_package(package: &Package) -> Result<Parts, Error> {
    let damaged = |source: io::Error| debian::Error::Tree {
        package: package.name.clone(),
        source: archive::Error::Read(source),
    };
    let mut found: Option<(String, Vec<u8>)> = None;
    let mut modules = Available::new("");
    let mut kept = 0;
    archive::each(package.data().map_err(damaged)?, PACKAGE_BYTES_MAX, |entry, _| {
        if !entry.header().entry_type().is_file() {
            return Ok(());
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let release = path.trim_start_matches("./").strip_prefix("boot/vmlinuz-").map(str::to_owned);
        let bytes_max = if release.is_some() { KERNEL_BYTES_MAX } else { MODULE_BYTES_MAX };
        if release.is_none() && !Available::wants(&path) {
            return Ok(());
        }
        if entry.size() > bytes_max {
            return Err(archive::Error::TooLong { path, most: bytes_max });
        }
        kept += if release.is_some() { 0 } else { entry.size() };
        if kept > MODULES_BYTES_MAX {
            return Err(archive::Error::TooLong { path, most: MODULES_BYTES_MAX });
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        match release {
            Some(release) => found = Some((release, content)),
            None => modules.add(&path, &content),
        }
        Ok(())
    })
    .map_err(|source| debian::Error::Tree { package: package.name.clone(), source })?;
    let (release, image) = found.ok_or_else(|| Error::NoKernel { package: package.name.clone() })?;
    let vmlinux = vmlinux(image, &format!("{}/boot/vmlinuz-{release}", package.name))?;
    modules.release = release;
    Ok(Parts { vmlinux, modules: Some(modules) })
}

/// Reads the modules in a folder. Their paths are relative to the folder, so that its location does not affect the
/// cache key.
fn of_folder(root: &Path) -> Result<Available, kernel::Error> {
    let release = root.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut modules = Available::new(&release.unwrap_or_default());
    let mut folders = vec![root.to_path_buf()];
    let mut files = Vec::new();
    let failed =
        |path: &Path, source: io::Error| kernel::Error::Read { path: path.display().to_string(), source };
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|source| failed(&folder, source))? {
            let entry = entry.map_err(|source| failed(&folder, source))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|source| failed(&path, source))?;
            // The symbolic links `build` and `source` lead out of the folder, so links are not followed.
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && Available::wants(&path.to_string_lossy()) {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut kept = 0;
    for path in files {
        let content = input::read(&path, MODULE_BYTES_MAX).map_err(|error| failed(&path, error.into()))?;
        kept += content.len() as u64;
        if kept > MODULES_BYTES_MAX {
            return Err(kernel::Error::Modules { path: root.display().to_string() });
        }
        modules.add(&path.strip_prefix(root).unwrap_or(&path).to_string_lossy(), &content);
    }
    Ok(modules)
}
