//! Tests of killed writers and full disks: files exist completely or not at all, and stored data is never lost.
//!
//! The failing writer is this program as a child process. The test runs without Rust's test harness, so `main` can
//! choose between the roles of test and child.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use everett_snapshot::file::{TEMPORARY_PREFIX, sweep_temporaries};
use everett_snapshot::moment::{MomentInfo, MomentParts};
use everett_snapshot::{BaseFile, MomentFile, PAGE, PageImage, Pool};
use libtest_mimic::{Arguments, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Environment variable with the child's folder. If it is set, this process is the child.
const FOLDER: &str = "EVERETT_TEST_FOLDER";

/// Arguments that select what the child does.
const WRITE: &str = "write";
const FILL_THE_DISK: &str = "fill-the-disk";

fn main() -> ExitCode {
    if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
        match std::env::args().nth(1).as_deref() {
            Some(WRITE) => write_for_ever(&folder),
            Some(FILL_THE_DISK) => fill_the_disk(&folder),
            other => panic!("unknown task of a child: {other:?}"),
        }
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let trials = vec![
        trial("killed_writers_leave_whole_files", killed_writers_leave_whole_files),
        trial("a_full_disk_loses_nothing", a_full_disk_loses_nothing),
        trial("missing_folders_are_named", missing_folders_are_named),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Returns an image of about 200 KiB that hardly compress. `number` determines the content.
fn image(pool: &Pool, number: u64) -> PageImage {
    let mut image = PageImage::zero(64);
    let mut state = number + 1;
    for index in 0..50 {
        let mut content = [0; PAGE];
        for word in content.as_chunks_mut::<8>().0 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *word = state.to_le_bytes();
        }
        image.set(pool, index, &content);
    }
    image
}

fn parts(image: &PageImage) -> MomentParts {
    let mut parts = MomentParts::default();
    parts.states.insert("machine".into(), Arc::from(&b"registers"[..]));
    parts.images.insert("memory".into(), image.clone());
    parts
}

fn same(a: &PageImage, b: &PageImage) -> bool {
    let mut same = true;
    a.differing(b, |_| same = false);
    same
}

fn check_base(path: &Path, expected: &PageImage) {
    let base = BaseFile::open(path).unwrap();
    assert!(same(&PageImage::on(Arc::new(everett_snapshot::Base::File(base))), expected));
}
fn check_moment(path: &Path, expected: &PageImage) {
    let parts = MomentFile::open(path).unwrap().read(&Pool::default(), |_| None).unwrap();
    assert!(same(&parts.images["memory"], expected));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns a command that runs this program as a child. The signals in `ignored` do not kill the child.
fn child(what: &str, folder: &Path, ignored: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("trap '' {ignored}; exec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().unwrap()).arg(what);
    command.env(FOLDER, folder).stdout(Stdio::piped());
    command
}

fn write_for_ever(folder: &Path) {
    let pool = Pool::default();
    for number in 0.. {
        let image = image(&pool, number);
        BaseFile::write(&folder.join(format!("base-{number}")), &image).unwrap();
        MomentFile::write(&folder.join(format!("moment-{number}")), &MomentInfo::default(), &parts(&image))
            .unwrap();
        println!("written {number}");
    }
}

fn killed_writers_leave_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::default();
    for round in 1..=12 {
        let mut child = child(WRITE, folder.path(), "PIPE").spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let written = lines.map(Result::unwrap).filter(|line| line.starts_with("written ")).take(round);
        assert_eq!(written.count(), round, "the child ended early");
        child.kill().unwrap();
        child.wait().unwrap();

        let names = names(folder.path());
        let temporaries = names.iter().filter(|name| name.starts_with(TEMPORARY_PREFIX)).count();
        assert!(temporaries <= 1, "one writer writes one file at a time: {names:?}");
        assert_eq!(sweep_temporaries(folder.path()).unwrap(), temporaries);
        let (mut bases, mut moments) = (0, 0);
        for name in names {
            let path = folder.path().join(&name);
            match name.split_once('-') {
                Some(("base", number)) => {
                    check_base(&path, &image(&pool, number.parse().unwrap()));
                    bases += 1;
                }
                Some(("moment", number)) => {
                    check_moment(&path, &image(&pool, number.parse().unwrap()));
                    moments += 1;
                }
                _ => assert!(name.starts_with(TEMPORARY_PREFIX) && !path.exists(), "{name}"),
            }
        }
        assert!(bases >= round && moments >= round);
        assert_eq!(sweep_temporaries(folder.path()).unwrap(), 0);
    }
}

fn fill_the_disk(folder: &Path) {
    let pool = Pool::default();
    let (before, after) = (image(&pool, 1), image(&pool, 2));
    let (base, moment) = (folder.join("base"), folder.join("moment"));
    let (info, parts) = (MomentInfo::default(), parts(&after));
    let hard = getrlimit(Resource::Fsize).maximum;
    let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: hard }).unwrap();
    let needed = std::fs::metadata(&moment).unwrap().len();
    let mut failures = 0;
    for bytes in (0..needed).step_by(3001) {
        limit(Some(bytes));
        let results =
            [BaseFile::write(&base, &after).map(drop), MomentFile::write(&moment, &info, &parts).map(drop)];
        limit(hard);
        for (result, path) in results.into_iter().zip([&base, &moment]) {
            let error = result.unwrap_err().to_string();
            assert_eq!(error, format!("cannot write {}", path.display()), "at {bytes}");
            failures += 1;
        }
        assert_eq!(names(folder), ["base", "moment"], "at {bytes}");
    }
    check_base(&base, &before);
    check_moment(&moment, &before);
    // With enough space, the same calls succeed and replace the earlier files.
    BaseFile::write(&base, &after).unwrap();
    MomentFile::write(&moment, &info, &parts).unwrap();
    println!("failed {failures} times");
}

/// A limit on file sizes simulates a full disk. Any process can set this limit for its children.
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::default();
    let (before, after) = (image(&pool, 1), image(&pool, 2));
    let (base, moment) = (folder.path().join("base"), folder.path().join("moment"));
    BaseFile::write(&base, &before).unwrap();
    MomentFile::write(&moment, &MomentInfo::default(), &parts(&before)).unwrap();
    let output = child(FILL_THE_DISK, folder.path(), "XFSZ").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let failures = text
        .lines()
        .find_map(|line| line.strip_prefix("failed ")?.strip_suffix(" times")?.parse::<u32>().ok());
    assert!(failures.is_some_and(|failures| failures > 100), "{text}");
    check_base(&base, &after);
    check_moment(&moment, &after);
}

fn missing_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no").join("base");
    let error = BaseFile::write(&path, &PageImage::zero(1)).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot create {}", path.display()));
    let error = sweep_temporaries(&folder.path().join("no")).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot list {}", folder.path().join("no").display()));
}
