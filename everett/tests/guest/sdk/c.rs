//! Tests of a C program that clang instruments with `-fsanitize-coverage=trace-pc-guard`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use everett_explorer::coverage::{Kind, Point};
use everett_guest_image::apt::Apt;
use everett_guest_image::apt::sources::Sources;
use everett_guest_image::debian::package::Package;
use everett_guest_programs::LIBRARY;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::world::event::{Event, What};
use everett_streams::Seed;
use everett_world_file::FileEntry;

use super::run;
use crate::explore::{explore, setting_of};
use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end};

/// Debian release of the compiler, the same as for the guests.
const SUITE: &str = "bookworm";
const COMPILER: &str = "clang-14";

/// The program. It draws random numbers below 64, and calls the function `rarely` only when it draws 9. This happens
/// only on some timelines.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
uint64_t fuzz_get_random(void);
size_t init_coverage_module(size_t edges, const char *symbols);
_Bool notify_coverage(size_t edge);
static int often(int n) { return n % 2 ? n + 1 : n - 1; }
static int rarely(int n) { return n * 3; }
int main(int count, char **words) {
    size_t first = init_coverage_module(10, "folder/own.sym.tsv");
    printf("again %d %d\n", notify_coverage(first + 7), notify_coverage(first + 7));
    fflush(stdout);
    for (int n = 0;; n++) {
        int drawn = fuzz_get_random() & 63;
        int value = drawn == 9 ? rarely(n) : often(n);
        if (count > 5) puts(words[value]);
        usleep(20000);
    }
}
"#;

const WORLD: &str = r#"
[sdk]
setup = false
[[node]]
name = "a"
memory = "96M"
[[node.service]]
name = "server"
argv = ["/opt/server"]
[faults]
only = ["pause"]
[explore]
segment = "200ms"
horizon = "600ms"
in_flight = 4
"#;

/// Returns the compiler's folder. The first call unpacks the compiler from Debian packages, unless an earlier test run
/// has unpacked the same versions.
fn compiler() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-clang");
        let apt = Apt::open(&folder.join("apt"), &Sources::of_host(SUITE, None)).expect("apt");
        apt.update().expect("package lists");
        let mut packages = apt.resolve(&[COMPILER.to_owned()], &[]).expect("the packages");
        packages.retain(|package| package.name.starts_with("lib") || package.name == COMPILER);
        let versions: String = packages.iter().map(|one| format!("{} {}\n", one.name, one.version)).collect();
        let (done, root) = (folder.join("done"), folder.join("root"));
        if fs::read_to_string(&done).is_ok_and(|known| known == versions) {
            return root;
        }
        let _ = fs::remove_dir_all(&root);
        let downloads = tempfile::tempdir_in(&folder).unwrap();
        let remotes = apt.locate(&packages).expect("the packages' files");
        apt.download(&remotes, downloads.path()).expect("the packages");
        for remote in &remotes {
            let package = Package::open(&downloads.path().join(&remote.file)).expect("a package");
            let mut archive = tar::Archive::new(package.data().expect("its data"));
            archive.unpack(&root).unwrap_or_else(|error| panic!("{}: {error}", remote.file));
        }
        fs::write(&done, versions).unwrap();
        root
    })
}

/// Compiles the program against the SDK's library. Returns its path.
fn program(folder: &Path) -> PathBuf {
    let root = compiler();
    fs::write(folder.join("server.c"), PROGRAM).unwrap();
    fs::write(folder.join("libvoidstar.so"), LIBRARY).unwrap();
    let object = folder.join("server.o");
    let libraries = [root.join("usr/lib/x86_64-linux-gnu"), root.join("usr/lib/llvm-14/lib")];
    let libraries: Vec<String> = libraries.iter().map(|path| path.display().to_string()).collect();
    let mut clang = Command::new(root.join("usr/lib/llvm-14/bin/clang"));
    clang.args(["-O1", "-fsanitize-coverage=trace-pc-guard", "-c", "server.c", "-o"]).arg(&object);
    run(clang
        .arg("-isystem")
        .arg(root.join("usr/include"))
        .current_dir(folder)
        .env("LD_LIBRARY_PATH", libraries.join(":")));
    let server = folder.join("server");
    let mut cc = Command::new("cc");
    run(cc
        .arg(&object)
        .arg("-o")
        .arg(&server)
        .arg(folder.join("libvoidstar.so"))
        .arg("-Wl,--allow-shlib-undefined"));
    server
}

fn launcher() -> Launcher {
    let folder = tempfile::tempdir().unwrap();
    let mut launcher = launcher_of(WORLD);
    let content = fs::read(program(folder.path())).unwrap();
    launcher.world.nodes[0].files = vec![FileEntry::of_root("/opt/server".to_owned(), content.into())];
    launcher
}

/// Returns the coverage edges that the events report, in the order of the events. Each edge is a module and a number.
fn edges(events: &[Event]) -> Vec<(&str, u32)> {
    let edge = |event: &'_ Event| matches!(event.what, What::Edge { .. });
    let edges = events.iter().filter(|event| edge(event));
    edges
        .filter_map(|event| {
            if let What::Edge { module, edge } = &event.what { Some((module.as_str(), *edge)) } else { None }
        })
        .collect()
}

#[test]
fn edges_of_an_instrumented_program_are_coverage() {
    let (launcher, _) = ready(launcher());
    let (trail, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 300 * MS);
    assert_eq!(findings(&events), [] as [&str; 0]);
    assert_eq!(lines(&events, "server"), ["again 0 0"]);
    let seen = edges(&events);
    let own: Vec<_> = seen.iter().filter(|(module, _)| *module == "own.sym.tsv").collect();
    assert_eq!(own, [&("own.sym.tsv", 7), &("own.sym.tsv", 7)]);
    let guards: Vec<_> = seen.iter().filter(|(module, _)| *module == "server").collect();
    let different: BTreeSet<_> = guards.iter().collect();
    assert!(guards.len() >= 4 && guards.len() == different.len(), "each edge once: {seen:?}");
    assert_eq!((trail, seen.len()), {
        let (trail, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 300 * MS);
        (trail, edges(&events).len())
    });
}

#[test]
fn a_branch_that_reaches_a_new_edge_is_new() {
    let setting = setting_of(launcher(), EngineOptions::default());
    let outcome = explore(&setting, 24, 2, 1 << 30, false);
    let coverage = outcome.merged.coverage();
    let points = coverage.points();
    let edges = points.iter().filter(|(_, covered)| covered.point.kind() == Kind::Edge);
    let hits: BTreeSet<u64> = edges.clone().map(|(_, covered)| covered.hits).collect();
    // Only some branches of the exploration reach the function `rarely`.
    assert!(hits.len() > 1, "{hits:?}");
    let of_guards = edges
        .filter(|(_, covered)| matches!(&*covered.point, Point::Edge { module, .. } if module == "server"));
    assert!(of_guards.count() >= 2);
}
