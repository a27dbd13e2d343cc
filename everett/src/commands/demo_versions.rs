//! Prepares the demo's images with the package versions that made its trails in the README.
//!
//! A trail depends on the image, and the image on the packages. So if a world has no lock (a file with exact package
//! versions) yet, the demo starts from a lock that comes with Everett.

use std::fs;
use std::path::Path;

use anyhow::Context;
use everett_guest_image::lock::{Lock, Locked};
use everett_guest_image::{apt, image};
use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_session::machines::EngineOptions;
use everett_streams::Seed;
use everett_world_file::World;

use super::demo_agent;
use super::exploration::{self, Explored};
use crate::ui::{Ui, style};

/// Lock that the demo's worlds share.
const SEEN: &str = include_str!("../../../examples/redis-sentinel/demo.lock");
/// Maximum number of packages that a message names.
const NAMED_MAX: usize = 3;

/// Prepares a world of the demo with the locked versions, or with today's if Debian no longer serves the locked ones.
/// Prints which versions it uses.
pub(super) fn prepare(ui: &Ui, world: World, seed: Seed, interrupt: &Interrupt) -> anyhow::Result<Explored> {
    let path = world.file.with_extension("lock");
    let is_new = !path.exists();
    if is_new {
        fs::write(&path, SEEN).with_context(|| path.display().to_string())?;
    }
    let prepare =
        |world: World| exploration::prepare(ui, world, Some(seed), EngineOptions::default(), interrupt);
    let explored = match prepare(world.clone()) {
        Err(error) if is_new && is_gone(&error) => {
            ui.say(style::paint(
                style::NOTE,
                format!("{}; today's versions are taken", with_causes(error.as_ref())),
            ))?;
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
            prepare(world)?
        }
        result => result?,
    };
    tell(ui, &path)?;
    Ok(explored)
}

/// True if a build failed because the archive no longer has a locked package.
fn is_gone(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<image::Error>();
    matches!(error, Some(image::Error::Apt(apt::Error::Gone { .. }) | image::Error::Lock(_)))
}

/// Prints whether the packages and the agent (Everett's program in the guests) are the ones that made the trails in the
/// README.
fn tell(ui: &Ui, path: &Path) -> anyhow::Result<()> {
    let seen: Lock = read(SEEN)?;
    let Some(used) = Lock::read(path)? else { return Ok(()) };
    let differences = packages(others(&seen, &used)).into_iter().chain(demo_agent::difference()?);
    let differences: Vec<String> = differences.collect();
    if differences.is_empty() {
        let said = "the packages and the agent are those of the README, so expect its trails and its digest";
        return Ok(ui.say(said)?);
    }
    let said = format!(
        "{}: expect other trails and another digest; the finding may come on another branch",
        differences.join("; ")
    );
    Ok(ui.say(style::paint(style::NOTE, said))?)
}

/// Returns a clause that names packages with other versions. `None` if `others` is empty.
fn packages(others: Vec<String>) -> Option<String> {
    let count = others.len();
    if count == 0 {
        return None;
    }
    let (packages, have) = if count == 1 { ("package", "has") } else { ("packages", "have") };
    let named: Vec<String> = others.into_iter().take(NAMED_MAX).collect();
    let more = if count > NAMED_MAX { ", …" } else { "" };
    Some(format!("{count} {packages} {have} another version than the README's ({}{more})", named.join(", ")))
}

fn read(text: &str) -> anyhow::Result<Lock> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("demo.lock");
    fs::write(&path, text)?;
    Lock::read(&path)?.context("the lock of the demo is missing")
}

/// Returns the names and versions of used packages that differ from the lock with which the trails in the README were
/// made.
fn others(seen: &Lock, used: &Lock) -> Vec<String> {
    let all = |lock: &Lock| -> Vec<Locked> { lock.kernel.iter().chain(&lock.packages).cloned().collect() };
    let seen = all(seen);
    let mut used: Vec<Locked> = all(used).into_iter().filter(|one| !seen.contains(one)).collect();
    // The kernel and Redis come first: they explain a changed trail better than other packages.
    used.sort_by_key(|one| !(one.name.starts_with("linux-image") || one.name.starts_with("redis")));
    used.iter().map(|one| format!("{} {}", one.name, one.version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_named() {
        let seen = read(SEEN).unwrap();
        assert!(seen.kernel.is_some() && seen.packages.len() > 50);
        assert_eq!(others(&seen, &seen), [""; 0]);
        let mut used = seen.clone();
        used.packages[0].version = "99".to_owned();
        let redis = used.packages.iter_mut().find(|one| one.name == "redis-server").unwrap();
        redis.version = "5:98".to_owned();
        let first = format!("{} 99", used.packages[0].name);
        let others = others(&seen, &used);
        assert_eq!(others, ["redis-server 5:98".to_owned(), first.clone()]);
        let said = format!("2 packages have another version than the README's (redis-server 5:98, {first})");
        assert_eq!(packages(others), Some(said));
        assert_eq!(packages(Vec::new()), None);
    }

    #[test]
    fn only_packages_that_are_gone_are_replaced() {
        let gone = || {
            let (package, version, suite) = ("a".to_owned(), "1".to_owned(), "s".to_owned());
            image::Error::Apt(apt::Error::Gone { package, version, suite })
        };
        assert!(is_gone(&anyhow::Error::new(gone()).context("world.toml")));
        let offline = image::Error::Apt(apt::Error::Network { reason: "no route".to_owned() });
        assert!(!is_gone(&anyhow::Error::new(offline).context("world.toml")));
        assert!(!is_gone(&anyhow::anyhow!("else")));
    }
}
