//! Checks of cores, memory and disk space, and of the tools with which Everett builds images.

use std::fs;
use std::path::{Path, PathBuf};

use everett_input::units::show_bytes;

use super::{Finding, Verdict};

/// Memory that a run of an example needs, in bytes. If less is available, the operator gets a note.
const MEMORY_BYTES_WANTED: u64 = 1 << 30;
const DISK_BYTES_WANTED: u64 = 4 << 30;

pub(super) fn examine() -> Vec<Finding> {
    let mut findings = vec![processor(), cores(), memory()];
    findings.extend(cache());
    findings.extend(tools());
    findings
}

fn processor() -> Finding {
    if !cfg!(target_arch = "x86_64") {
        return Finding::new("processor", Verdict::Bad, format!("{} is not x86-64", std::env::consts::ARCH));
    }
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown model");
    let model = model.trim_start_matches([' ', '\t', ':']);
    // The soft engine (Everett's own CPU) executes SSE arithmetic with the host's own instructions, because their
    // results are exact.
    #[cfg(target_arch = "x86_64")]
    if !std::arch::is_x86_feature_detected!("sse4.2") {
        return Finding::new("processor", Verdict::Bad, format!("{model} lacks SSE4.2"));
    }
    Finding::new("processor", Verdict::Ok, model)
}

fn cores() -> Finding {
    match std::thread::available_parallelism() {
        Ok(n) => Finding::new("cores", Verdict::Ok, format!("{n}; {n} runs execute in parallel")),
        Err(error) => Finding::new("cores", Verdict::Note, format!("unknown: {error}")),
    }
}

fn memory() -> Finding {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |key: &str| {
        let line = info.lines().find(|line| line.starts_with(key))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let (Some(total), Some(available)) = (kib("MemTotal:"), kib("MemAvailable:")) else {
        return Finding::new("memory", Verdict::Note, "unknown: /proc/meminfo cannot be read");
    };
    let (total, available) = (total << 10, available << 10);
    let detail = format!("{} available of {}", show_bytes(available), show_bytes(total));
    let verdict = if available < MEMORY_BYTES_WANTED { Verdict::Note } else { Verdict::Ok };
    Finding::new("memory", verdict, detail)
}

fn cache() -> Vec<Finding> {
    let Some(folder) = cache_folder() else {
        let what = "no folder for it: set EVERETT_CACHE, XDG_CACHE_HOME or HOME";
        return vec![Finding::new("cache", Verdict::Bad, what)];
    };
    // The cache's folder may not exist yet, so the nearest existing folder above it is checked.
    let existing = folder.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let writable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_ok();
    let mut findings = vec![if writable {
        Finding::new("cache", Verdict::Ok, folder.display().to_string())
    } else {
        Finding::new("cache", Verdict::Bad, format!("{} cannot be written", folder.display()))
    }];
    if let Ok(space) = rustix::fs::statvfs(existing) {
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let verdict = if free < DISK_BYTES_WANTED { Verdict::Note } else { Verdict::Ok };
        findings.push(Finding::new(
            "disk space",
            verdict,
            format!("{} free for the cache", show_bytes(free)),
        ));
    }
    findings
}

/// Returns the folder of the cache: `$EVERETT_CACHE`, or else `everett` in `$XDG_CACHE_HOME` or `~/.cache`. `None` if
/// none of the variables is set.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("EVERETT_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|path| path.join("everett")))
        .or_else(|| set("HOME").map(|path| path.join(".cache/everett")))
}

fn tools() -> Vec<Finding> {
    let programs =
        [("apt-get", "resolves Debian packages"), ("apt-config", "reports the settings for mirrors")];
    let finding = |(program, use_)| match find_program(program) {
        Some(path) => Finding::new(program, Verdict::Ok, path.display().to_string()),
        None => {
            let what = format!(
                "not found ({use_}); worlds of container images, and worlds with a world.lock, need no apt"
            );
            Finding::new(program, Verdict::Note, what)
        }
    };
    programs.into_iter().map(finding).collect()
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::find_program;

    #[test]
    fn programs_are_found_in_path() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-such-program-here"), None);
    }
}
