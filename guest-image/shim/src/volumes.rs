//! Volumes: folders of one disk, which keeps its content when the machine loses power.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount_bind, mount_remount};

use crate::options::Bind;
use crate::{Context as _, Failure, copy};

/// Mount point of the disk of volumes.
const DISK: &str = "/run/everett/volumes";

/// Mounts each volume at its path. A new volume has the content and the attributes of the image's folder at that path,
/// as a container engine's has.
pub(crate) fn mount_all(bare: &Path, volumes: &[(u32, PathBuf)]) -> Result<(), Failure> {
    for (number, path) in volumes {
        fs::create_dir_all(path).context(|| format!("make {}", path.display()))?;
        let volume = Path::new(DISK).join(number.to_string());
        if !volume.exists() {
            make(bare, path, &volume)?;
        }
        mount_bind(&volume, path).context(|| format!("mount a volume on {}", path.display()))?;
    }
    Ok(())
}

/// Mounts a file or folder that came from the host at its path, instead of what the image has there. A writable one is
/// a volume that begins with the content from the host.
pub(crate) fn mount_bound(bind: &Bind) -> Result<(), Failure> {
    let Bind { number, writable, from, path } = bind;
    if !from.exists() {
        // An empty folder has no files that would have made it.
        fs::create_dir_all(from).context(|| format!("make {}", from.display()))?;
    }
    let is_folder = from.is_dir();
    if is_folder {
        fs::create_dir_all(path).context(|| format!("make {}", path.display()))?;
    } else if !path.exists() {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).context(|| format!("make {}", folder.display()))?;
        }
        File::create(path).context(|| format!("make {}", path.display()))?;
    }
    let source = if *writable {
        let volume = Path::new(DISK).join(format!("bind-{number}"));
        let name = if is_folder { None } else { from.file_name() };
        let source = name.map_or_else(|| volume.clone(), |name| volume.join(name));
        if !volume.exists() {
            let content = if is_folder { Some(from.as_path()) } else { from.parent() };
            fill(content.unwrap_or(from), &volume)?;
        }
        source
    } else {
        from.clone()
    };
    mount_bind(&source, path).context(|| format!("mount {}", path.display()))?;
    if *writable {
        return Ok(());
    }
    mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, "")
        .context(|| format!("make {} read-only", path.display()))
}

/// Makes a volume. It gets its name last, when its content is on the disk, so a loss of power leaves a whole volume or
/// none.
fn make(bare: &Path, path: &Path, volume: &Path) -> Result<(), Failure> {
    // The path may lead through links, which are followed in the whole tree; below, the same folder is looked at.
    let real = fs::canonicalize(path).context(|| format!("find {}", path.display()))?;
    let below = bare.join(real.strip_prefix("/").unwrap_or(&real));
    // A path in a filesystem of the machine's own, as in /run, has nothing below.
    let from = if below.is_dir() { below } else { real };
    fill(&from, volume)
}

/// Makes a volume with the content of a folder.
fn fill(from: &Path, volume: &Path) -> Result<(), Failure> {
    let new = volume.with_extension("new");
    match fs::remove_dir_all(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).context(|| format!("remove {}", new.display()));
        }
        _ => {}
    }
    fs::create_dir(&new).context(|| format!("make {}", new.display()))?;
    copy::folder(from, &new)?;
    let disk = File::open(DISK).context(|| format!("open {DISK}"))?;
    rustix::fs::syncfs(&disk).context(|| format!("write {DISK}"))?;
    fs::rename(&new, volume).context(|| format!("name {}", volume.display()))?;
    disk.sync_all().context(|| format!("write {DISK}"))
}
