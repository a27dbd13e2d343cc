//! Volumes: folders of one disk, which keeps its content when the machine loses power.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::mount_bind;

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

/// Makes a volume. It gets its name last, when its content is on the disk, so a loss of power leaves a whole volume or
/// none.
fn make(bare: &Path, path: &Path, volume: &Path) -> Result<(), Failure> {
    let new = volume.with_extension("new");
    match fs::remove_dir_all(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).context(|| format!("remove {}", new.display()));
        }
        _ => {}
    }
    fs::create_dir(&new).context(|| format!("make {}", new.display()))?;
    // Links in the path are followed with all mounts in place. `below` is the same folder, without the mounts on it.
    let real = fs::canonicalize(path).context(|| format!("find {}", path.display()))?;
    let below = bare.join(real.strip_prefix("/").unwrap_or(&real));
    // A path in a filesystem that the machine mounts, such as /run, may not exist below.
    let from = if below.is_dir() { below } else { real };
    copy::folder(&from, &new)?;
    let disk = File::open(DISK).context(|| format!("open {DISK}"))?;
    rustix::fs::syncfs(&disk).context(|| format!("write {DISK}"))?;
    fs::rename(&new, volume).context(|| format!("name {}", volume.display()))?;
    disk.sync_all().context(|| format!("write {DISK}"))
}
