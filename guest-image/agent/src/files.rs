//! Writing of files that the host sends.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use everett_protocol::PutFile;

use crate::failure::{Context as _, Failure};
use crate::users;

/// Writes a file, or appends to one.
pub(crate) fn put(file: &PutFile) -> Result<(), Failure> {
    let path = Path::new(&file.path);
    let what = || format!("write {}", file.path);
    let owner = file.owner.as_deref().map(users::owner).transpose().context(what)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).context(|| format!("make {}", folder.display()))?;
    }
    let mut options = OpenOptions::new();
    options.create(true).mode(file.mode);
    if file.append {
        options.append(true)
    } else {
        options.write(true).truncate(true)
    };
    let mut open = options.open(path).context(what)?;
    open.write_all(&file.data.0).context(what)?;
    // The owner comes first, because a change of the owner clears the set-user-ID bit.
    let (uid, gid) = owner.unwrap_or((0, 0));
    fchown(&open, Some(uid), Some(gid)).context(|| format!("give {} to its owner", file.path))?;
    open.set_permissions(fs::Permissions::from_mode(file.mode))
        .context(|| format!("set the mode of {}", file.path))
}
