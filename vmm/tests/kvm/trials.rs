//! Tests that are reported as *ignored*, with the reason, if the host lacks a feature that they need.
//!
//! libtest decides before a test begins whether the test is ignored. A trial of libtest-mimic decides while it runs,
//! and the runner's summary counts it as ignored. Two other things differ from libtest: a list must contain each trial,
//! and the runner does not capture output. Tests print figures to stderr, because the runner reports on stdout.

use std::any::type_name;
use std::fmt::Display;
use std::path::Path;
use std::thread;

use libtest_mimic::{Completion, Trial};

/// Reason why a test cannot run on this host.
#[derive(Debug)]
pub(crate) struct Lacking(String);

impl Lacking {
    /// Returns a reason. The runner prints it after the test's name: `ignored (reason)`.
    pub(crate) fn new(reason: impl Display) -> Lacking {
        Lacking(reason.to_string())
    }
}

/// Result of a test that needs a feature of the host. If the test fails, it panics, as any test does.
pub(crate) type Ran = Result<(), Lacking>;

/// Return type of a test function.
pub(crate) trait Ending: Send + 'static {
    /// Returns the runner's verdict.
    fn completion(self) -> Completion;
}

impl Ending for () {
    fn completion(self) -> Completion {
        Completion::Completed
    }
}

impl Ending for Ran {
    fn completion(self) -> Completion {
        self.map_or_else(|Lacking(reason)| Completion::ignored_with(reason), Ending::completion)
    }
}

/// Returns a test that runs on its own thread, as in libtest. Timers and signals of one test therefore do not reach the
/// next test, and a panic message names the test.
pub(crate) fn named<E: Ending>(name: impl Into<String>, test: impl FnOnce() -> E + Send + 'static) -> Trial {
    let name = name.into();
    let thread = thread::Builder::new().name(name.clone());
    Trial::ignorable_test(name, move || match thread.spawn(test)?.join() {
        Ok(ending) => Ok(ending.completion()),
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Returns a test with the name that libtest would use: its path without the crate.
pub(crate) fn trial<E: Ending, T: FnOnce() -> E + Send + 'static>(test: T) -> Trial {
    let path = type_name::<T>();
    named(path.split_once("::").map_or(path, |(_, name)| name), test)
}

/// Checks that no source file of this folder has a `#[test]`. A program with its own `main` would silently leave out
/// these tests.
///
/// # Panics
/// Panics if a file has a `#[test]`, or if the folder cannot be read.
pub(crate) fn each_test_is_listed(folder: &Path) {
    let attribute = ["#[", "test]"].concat();
    for entry in std::fs::read_dir(folder).expect("the folder of these tests") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let left_out = text.lines().position(|line| line.trim() == attribute).map(|line| line + 1);
            assert_eq!(left_out, None, "{}: list the test as a trial instead", path.display());
        }
    }
}
