//! The web page that reports on a run directory. It is made again when the directory has changed and a browser asks.
//!
//! Making the page of a large run takes seconds of CPU time. The pause after it grows with that time, so that pages
//! take at most [`SHARE`] of a core.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everett_host::time::{Stopwatch, unix_s};
use everett_input::causes::with_causes;

/// Maximum share of a core for making pages.
const SHARE: f64 = 0.1;
/// Minimum pause between two pages, in seconds.
const PAUSE_S: f64 = 1.0;
/// Maximum number of files in a run directory that are checked for changes.
const FILES_MAX: usize = 10_000;

/// Page of the report.
#[derive(Debug)]
pub(super) struct Page {
    /// Identifier of the page: the time at which the server began (Unix time in seconds), and the page's number.
    pub(super) version: String,
    /// True if the exploration had ended when the page was made.
    pub(super) ended: bool,
    pub(super) html: String,
}

/// Page made from a run directory.
#[derive(Debug)]
pub struct Made {
    /// The page, as HTML.
    pub html: String,
    /// True if the exploration has ended.
    pub ended: bool,
}

/// Function that makes the page of a run directory.
pub type Make = Box<dyn Fn(&Path) -> anyhow::Result<Made> + Send + Sync>;

/// Size and time of last change (seconds, nanoseconds) of each file.
type Stamp = BTreeMap<PathBuf, (u64, i64, i64)>;

/// Newest page, and whether a browser has asked for a newer one.
pub(super) struct Pages {
    run: PathBuf,
    make: Make,
    state: Mutex<State>,
    wanted: Condvar,
}

struct State {
    page: Arc<Page>,
    /// Reason why the run directory cannot be read now.
    problem: Option<String>,
    asked: bool,
    over: bool,
}

impl Pages {
    /// Makes the first page.
    ///
    /// # Errors
    /// Returns an error if the folder holds no run, or if the run cannot be read.
    pub(super) fn new(run: &Path, make: Make) -> anyhow::Result<(Pages, Maker)> {
        let clock = Stopwatch::start();
        let stamp = stamp(run);
        let Made { html, ended } = make(run)?;
        let begun = unix_s();
        let page = Arc::new(Page { version: format!("{begun:x}-0"), ended, html });
        let state = State { page, problem: None, asked: false, over: false };
        let pages = Pages { run: run.to_owned(), make, state: Mutex::new(state), wanted: Condvar::new() };
        let next_s = pause_s(clock.seconds());
        Ok((pages, Maker { clock: Stopwatch::start(), stamp, next_s, begun, number: 0 }))
    }

    /// Returns the newest page and the current problem, and asks the maker for a newer page.
    pub(super) fn get(&self) -> (Arc<Page>, Option<String>) {
        let mut state = self.lock();
        state.asked = true;
        self.wanted.notify_all();
        (Arc::clone(&state.page), state.problem.clone())
    }

    /// Ends [`Maker::work`].
    pub(super) fn end(&self) {
        self.lock().over = true;
        self.wanted.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maker of pages. It runs on a thread of its own.
pub(super) struct Maker {
    clock: Stopwatch,
    /// Sizes and times of the files when the newest page was made.
    stamp: Stamp,
    /// Earliest time of the next check, in seconds since the maker began.
    next_s: f64,
    begun: u64,
    number: u64,
}

impl Maker {
    /// Makes pages until [`Pages::end`] is called.
    pub(super) fn work(mut self, pages: &Pages) {
        while self.wait(pages) {
            let begin_s = self.clock.seconds();
            self.look(pages);
            let end_s = self.clock.seconds();
            self.next_s = end_s + pause_s(end_s - begin_s);
        }
    }

    /// Waits until a browser has asked and the pause is over. Returns false when the server ends.
    fn wait(&self, pages: &Pages) -> bool {
        let mut state = pages.lock();
        loop {
            if state.over {
                return false;
            }
            let left_s = self.next_s - self.clock.seconds();
            if state.asked && left_s <= 0.0 {
                state.asked = false;
                return true;
            }
            state = match state.asked {
                false => pages.wanted.wait(state).unwrap_or_else(PoisonError::into_inner),
                true => {
                    let left = Duration::from_secs_f64(left_s);
                    pages.wanted.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Makes another page if the directory has changed.
    fn look(&mut self, pages: &Pages) {
        // Taken before the directory is read, so that the next check notices a change during the reading.
        let stamp = stamp(&pages.run);
        if stamp != self.stamp {
            self.renew(pages, stamp);
        }
    }

    fn renew(&mut self, pages: &Pages, stamp: Stamp) {
        match (pages.make)(&pages.run) {
            Ok(Made { html, ended }) => {
                self.stamp = stamp;
                let mut state = pages.lock();
                state.problem = None;
                if state.page.html != html {
                    self.number += 1;
                    let version = format!("{:x}-{}", self.begun, self.number);
                    state.page = Arc::new(Page { version, ended, html });
                }
            }
            // The next attempt may succeed. For example, a resumed exploration may have removed a file while the
            // directory was read.
            Err(error) => pages.lock().problem = Some(with_causes(error.as_ref())),
        }
    }
}

fn pause_s(cost_s: f64) -> f64 {
    PAUSE_S.max(cost_s * (1.0 / SHARE - 1.0))
}

/// Returns the size and time of each file in a run directory. Leaves out files that cannot be read.
fn stamp(run: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(run).into_iter().flatten().flatten().take(FILES_MAX);
    let looked = files.filter_map(|entry| {
        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((entry.path(), (about.len(), about.mtime(), about.mtime_nsec())))
    });
    looked.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn pages_are_made_when_files_change_and_somebody_looks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("branches.bin");
        fs::write(&file, "1").unwrap();
        let made = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&made);
        let make: Make = Box::new(move |run| {
            counted.fetch_add(1, Ordering::Relaxed);
            let html = fs::read_to_string(run.join("branches.bin"))?;
            anyhow::ensure!(html != "bad", "it is bad");
            Ok(Made { html, ended: false })
        });
        let (pages, mut maker) = Pages::new(folder.path(), make).unwrap();
        let first = pages.get().0;
        assert_eq!(first.html, "1");
        let look = |maker: &mut Maker| {
            maker.look(&pages);
            pages.get()
        };
        // The directory has not changed, so there is no new page.
        assert_eq!(
            (look(&mut maker).0.version.clone(), made.load(Ordering::Relaxed)),
            (first.version.clone(), 1)
        );
        fs::write(&file, "22").unwrap();
        let (second, problem) = look(&mut maker);
        assert_eq!((second.html.as_str(), problem), ("22", None));
        assert_ne!(second.version, first.version);
        // While there is a problem, the old page stays. The problem is gone when the next page is made.
        fs::write(&file, "bad").unwrap();
        let (kept, problem) = look(&mut maker);
        assert_eq!((kept.version.as_str(), problem.as_deref()), (second.version.as_str(), Some("it is bad")));
        fs::write(&file, "4444").unwrap();
        let (last, problem) = look(&mut maker);
        assert_eq!((last.html.as_str(), problem), ("4444", None));
        pages.end();
        maker.work(&pages);
    }

    /// Writes `text` into the file of the test, and sets the file's time of last change to `unix_s`.
    fn write(run: &Path, text: &str, unix_s: u64) {
        let file = run.join("branches.bin");
        fs::write(&file, text).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_secs(unix_s);
        fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_file_of_the_same_length_is_another_one_at_another_time() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "1", 1);
        let make: Make = Box::new(|run| {
            let html = fs::read_to_string(run.join("branches.bin"))?;
            Ok(Made { html, ended: false })
        });
        let (pages, mut maker) = Pages::new(folder.path(), make).unwrap();
        write(folder.path(), "2", 2);
        maker.look(&pages);
        assert_eq!(pages.get().0.html, "2");
    }

    #[test]
    fn a_change_while_a_page_is_made_makes_another_page() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "1", 1);
        let made = AtomicU64::new(1);
        // The directory changes while each of the first three pages is made.
        let make: Make = Box::new(move |run| {
            let html = fs::read_to_string(run.join("branches.bin"))?;
            let number = made.fetch_add(1, Ordering::Relaxed) + 1;
            if number <= 4 {
                write(run, &number.to_string(), number);
            }
            Ok(Made { html, ended: false })
        });
        let (pages, mut maker) = Pages::new(folder.path(), make).unwrap();
        for expected in ["1", "2", "3", "4", "4"] {
            assert_eq!(pages.get().0.html, expected);
            maker.look(&pages);
        }
    }

    #[test]
    fn a_directory_that_could_not_be_read_is_read_again_without_a_change() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "1", 1);
        let calls = AtomicU64::new(0);
        let make: Make = Box::new(move |_| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            anyhow::ensure!(call != 1, "it is locked");
            Ok(Made { html: call.to_string(), ended: false })
        });
        let (pages, mut maker) = Pages::new(folder.path(), make).unwrap();
        write(folder.path(), "2", 2);
        maker.look(&pages);
        assert_eq!(pages.get().1.as_deref(), Some("it is locked"));
        maker.look(&pages);
        let (page, problem) = pages.get();
        assert_eq!((page.html.as_str(), problem), ("2", None));
    }

    #[test]
    fn expensive_pages_are_made_seldom() {
        assert!((pause_s(0.01) - 1.0).abs() < 1e-9);
        assert!((pause_s(3.0) - 27.0).abs() < 1e-9);
    }
}
