//! Downloads Chromium with its dependencies into a folder, and axe-core.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use everett_guest_image::Cache;
use everett_guest_image::apt::{Apt, sources::Sources};
use everett_input::causes::with_causes;

/// Debian release from which the packages come.
const SUITE: &str = "bookworm";
const PACKAGES: [&str; 2] = ["chromium-headless-shell", "fonts-dejavu-core"];
/// Accessibility checker, in a fixed version.
const AXE: &str = "axe-core@4.14.1";
/// Path of axe-core in its package.
const AXE_FILE: &str = "package/axe.min.js";

/// Returns a root directory with the browser. The first call downloads it.
///
/// # Errors
/// Returns a one-line message if the host has no apt, or if the mirror cannot be reached.
pub fn browser() -> Result<PathBuf, String> {
    let folder = folder()?;
    let root = folder.join("root");
    if root.is_dir() {
        return Ok(root);
    }
    let state = folder.join("apt");
    let apt = Apt::open(&state, &Sources::of_host(SUITE, None)).map_err(|error| with_causes(&error))?;
    // apt's folder `state` is locked, so only one process or thread at a time gets here. An earlier one may have
    // downloaded the browser.
    if root.is_dir() {
        return Ok(root);
    }
    apt.update().map_err(|error| with_causes(&error))?;
    let packages = apt.resolve(&PACKAGES.map(str::to_owned), &[]).map_err(|error| with_causes(&error))?;
    let remotes = apt.locate(&packages).map_err(|error| with_causes(&error))?;
    let parts = tempfile::tempdir_in(&folder).map_err(|error| with_causes(&error))?;
    let (files, tree) = (parts.path().join("files"), parts.path().join("root"));
    for part in [&files, &tree] {
        fs::create_dir(part).map_err(|error| format!("{}: {error}", part.display()))?;
    }
    apt.download(&remotes, &files).map_err(|error| with_causes(&error))?;
    for remote in &remotes {
        run(Command::new("dpkg-deb").arg("--extract").arg(files.join(&remote.file)).arg(&tree))?;
    }
    for part in ["proc", "dev", "tmp"] {
        fs::create_dir_all(tree.join(part)).map_err(|error| with_causes(&error))?;
    }
    fs::rename(&tree, &root).map_err(|error| format!("{}: {error}", root.display()))?;
    // apt's package lists are large and not needed any more. The folder `state` itself stays, because other processes
    // may be waiting to open it.
    let _ = fs::remove_dir_all(state.join("lists"));
    Ok(root)
}

/// Returns the script of axe-core. The first call downloads it.
///
/// # Errors
/// Returns a one-line message if the host has no npm, or if the registry cannot be reached.
pub fn axe() -> Result<String, String> {
    let folder = folder()?;
    let file = folder.join("axe.min.js");
    if !file.is_file() {
        let parts = tempfile::tempdir_in(&folder).map_err(|error| with_causes(&error))?;
        let here = parts.path();
        run(Command::new("npm")
            .args(["pack", AXE, "--silent", "--pack-destination"])
            .arg(here)
            .current_dir(here))?;
        let packed = AXE.replace('@', "-") + ".tgz";
        run(Command::new("tar").arg("-xzf").arg(here.join(packed)).arg(AXE_FILE).current_dir(here))?;
        fs::rename(here.join(AXE_FILE), &file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn folder() -> Result<PathBuf, String> {
    let cache = Cache::of_user().map_err(|error| with_causes(&error))?;
    let folder = cache.folder().join("browser");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(format!("{name}: {}: {}", output.status, stderr.trim().lines().last().unwrap_or_default()))
        }
    }
}
