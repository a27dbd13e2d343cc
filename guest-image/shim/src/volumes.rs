//! Volumes: folders on one disk. The disk keeps its content when the machine loses power.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount_bind, mount_remount};

use crate::options::Bind;
use crate::{Context as _, Failure, copy};

/// Mount point of the disk with all volumes.
const DISK: &str = "/run/everett/volumes";

/// Mounts each volume at its path. As in container engines, a new volume starts with the content and the attributes of
/// the image's folder at that path.
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

/// Mounts a file or folder of the host at its path, over the image's content. A writable mount is a volume that starts
/// as a copy of the host's content.
pub(crate) fn mount_bound(bind: &Bind) -> Result<(), Failure> {
    let Bind { number, writable, from, path } = bind;
    if !from.exists() {
        // Everett copies only files into the guest. So the copy of an empty folder does not exist yet.
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

/// Creates a volume. The volume gets its name after its content is on the disk. So after a loss of power, the volume is
/// complete or does not exist.
fn make(bare: &Path, path: &Path, volume: &Path) -> Result<(), Failure> {
    // Resolves symbolic links in the path. Then finds the folder in the bare root, where other mounts do not hide it.
    let real = fs::canonicalize(path).context(|| format!("find {}", path.display()))?;
    let below = bare.join(real.strip_prefix("/").unwrap_or(&real));
    // If the folder exists only in another filesystem, such as `/run`, the bare root has no such folder.
    let from = if below.is_dir() { below } else { real };
    fill(&from, volume)
}

/// Creates a volume with a copy of a folder's content.
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
