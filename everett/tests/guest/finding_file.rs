//! Finding files, i.e. files with one finding and all that its replay needs: exported, replayed elsewhere without a
//! network, imported, and tampered with.
//!
//! *Elsewhere* is this host with another cache and without a network, after everything from which the world was made
//! is gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::explore::TestFolder;
use crate::support::{image, shown};

/// World whose program counts and prints a word with each number. The word comes from a file beside the world file. The
/// program is a script in another folder.
const WORLD: &str = r#"
[[node]]
name = "db"
memory = "96M"
files = { "/etc/words" = "conf/words", "/opt/count.sh" = "SCRIPT" }
[[workload.driver]]
name = "counts"
argv = ["sh", "/opt/count.sh"]
[[property]]
name = "no five"
never = "^number 5$"
[explore]
segment = "200ms"
horizon = "1s"
in_flight = 4
checks = 200000
[faults]
only = ["reseed"]
"#;
const SCRIPT: &str = ". /etc/words; n=0; while :; do n=$((n+1)); echo $word $n; sleep 0.01; done";

/// Returns the beginning of a command line that runs the command after it without a network. It works for root, or for
/// a user who may create namespaces.
pub(crate) fn offline() -> &'static [&'static str] {
    static WORDS: OnceLock<&'static [&'static str]> = OnceLock::new();
    WORDS.get_or_init(|| {
        let ways: [&[&str]; 2] = [&["unshare", "-n"], &["unshare", "-rn"]];
        let works = |way: &&&[&str]| {
            Command::new(way[0])
                .args(&way[1..])
                .arg("true")
                .output()
                .is_ok_and(|output| output.status.success())
        };
        ways.iter().find(works).copied().expect("unshare makes a namespace without a network")
    })
}

/// Runs a command elsewhere, with the cache `cache`.
pub(crate) fn elsewhere(cache: &Path, arguments: &[&str]) -> Output {
    let way = offline();
    let mut command = Command::new(way[0]);
    command.args(&way[1..]).arg(env!("CARGO_BIN_EXE_everett")).args(arguments);
    command.env("EVERETT_CACHE", cache).output().expect("the program starts")
}

/// Asserts that a replay showed the finding. Returns the replay's trail.
pub(crate) fn trail(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", shown(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let end = records.into_iter().find(|record| record["kind"] == "replay").expect("a summary");
    assert_eq!(end["same"], true);
    end["trail"].as_str().expect("a trail").to_owned()
}

fn refused(output: &Output) -> String {
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{}", shown(output));
    error
}

/// Explores the world, exports its finding twice, and removes everything else. Returns the two files and the trail.
fn exported(place: &TestFolder) -> (String, String, String) {
    let script = tempfile::NamedTempFile::new().unwrap();
    fs::write(script.path(), SCRIPT).unwrap();
    let world = place.path("world.toml");
    let text = fs::read_to_string(&world).unwrap().replace("SCRIPT", &script.path().display().to_string());
    fs::write(&world, text).unwrap();
    fs::create_dir(place.path("conf")).unwrap();
    fs::write(place.path("conf/words"), "word=number").unwrap();
    let run = place.path("run");
    let output = place.everett(&["explore", &world, "--branches", "20", "--until-found", "-o", &run]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let trail = trail(&place.everett(&["--json", "replay", &run, "1", "-q"]));
    let shrunk = place.everett(&["shrink", &run, "1"]);
    assert_eq!(shrunk.status.code(), Some(1), "{}", shown(&shrunk));

    let (with, without) = (place.path("with"), place.path("without"));
    let output = place.everett(&["runs", "export", &run, "1", "-o", &with, "--with-images"]);
    assert!(output.status.success(), "{}", shown(&output));
    let output = place.everett(&["runs", "export", &run, "1", "-o", &without]);
    assert!(output.status.success(), "{}", shown(&output));
    let bytes = |file: &str| fs::metadata(file).unwrap().len();
    assert!(bytes(&without) < 1 << 20 && bytes(&with) > 1 << 20, "{} and {}", bytes(&without), bytes(&with));
    // The same export makes the same file.
    let again = place.path("again");
    let output = place.everett(&["runs", "export", &run, "1", "-o", &again]);
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(fs::read(&again).unwrap(), fs::read(&without).unwrap());

    // A world that has changed since the exploration cannot be exported.
    fs::write(place.path("conf/words"), "word=other").unwrap();
    let changed = refused(&place.everett(&["runs", "export", &run, "1", "-o", &again]));
    assert!(changed.contains("the world has changed since it was explored"), "{changed}");

    for gone in ["run", "conf"] {
        fs::remove_dir_all(place.path(gone)).unwrap();
    }
    for gone in ["world.toml", "world.lock", "again"] {
        fs::remove_file(place.path(gone)).unwrap();
    }
    (with, without, trail)
}

#[test]
fn a_finding_is_found_again_elsewhere_from_one_file() {
    image();
    let place = TestFolder::new(WORLD);
    let (with, without, recorded) = exported(&place);
    let caches = tempfile::tempdir().unwrap();
    let cache = caches.path().join("with");
    assert_eq!(trail(&elsewhere(&cache, &["--json", "replay", &with, "-q"])), recorded);
    assert_eq!(fs::read_dir(cache.join("temporary")).unwrap().count(), 0, "it leaves nothing but the cache");

    // If a finding file contains no images, Everett builds them from Debian's packages. In this test it finds the
    // images in the tests' cache.
    assert_eq!(trail(&place.everett(&["--json", "replay", &without, "-q"])), recorded);
    // If the images cannot be built, a one-line error says what is missing and what would have helped.
    let error = refused(&elsewhere(&caches.path().join("without"), &["replay", &without, "-q"]));
    assert!(error.contains("cannot be made here") && error.contains("--with-images"), "{error}");

    // All commands accept an imported run directory.
    let run = place.path("imported");
    let output = elsewhere(&cache, &["runs", "import", &with, "-o", &run]);
    assert!(output.status.success(), "{}", shown(&output));
    let listed = elsewhere(&cache, &["runs"]);
    assert!(shown(&listed).contains("imported"), "{}", shown(&listed));
    let again = refused(&elsewhere(&cache, &["runs", "import", &with, "-o", &run]));
    assert!(again.contains("the folder is not empty"), "{again}");
    fs::remove_dir_all(&cache).unwrap();
    assert_eq!(trail(&elsewhere(&cache, &["--json", "replay", &run, "1", "-q"])), recorded);
    let regression = format!("{run}/regression-1.json");
    let commands: [&[&str]; 5] = [
        &["replay", &regression, "-q"],
        &["findings", &run],
        &["shrink", &run, "1"],
        &["report", &run, "--html"],
        &["causality", &run, "1", "--budget", "2s"],
    ];
    for command in commands {
        let output = elsewhere(&cache, command);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command:?}: {}", shown(&output));
    }
    // An imported finding can be exported again, and stays the same finding.
    let second = place.path("second");
    let output = elsewhere(&cache, &["runs", "export", &run, "1", "-o", &second]);
    assert!(output.status.success(), "{}", shown(&output));
    assert_eq!(trail(&elsewhere(&cache, &["--json", "replay", &second, "-q"])), recorded);

    // The error names a changed file of the imported world.
    let words = words_of(&PathBuf::from(&run).join("world"));
    fs::write(&words, "word=other").unwrap();
    let error = refused(&elsewhere(&cache, &["replay", &run, "1", "-q"]));
    assert!(error.contains("conf/words: the file has changed since the finding was exported"), "{error}");
    fs::write(&words, "word=number").unwrap();
    // The error also names a changed file of the images.
    let images = PathBuf::from(&run).join("world/everett.images");
    for entry in fs::read_dir(&images).unwrap() {
        let path = entry.unwrap().path();
        let mut content = fs::read(&path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        fs::write(&path, content).unwrap();
    }
    let error = refused(&elsewhere(&cache, &["replay", &run, "1", "-q"]));
    assert!(error.contains("everett.images") && error.contains("its content has changed"), "{error}");

    tampered(&place, &without);
}

/// Returns the path of `conf/words` in an unpacked world.
fn words_of(world: &Path) -> PathBuf {
    let folders = fs::read_dir(world).unwrap().map(|entry| entry.unwrap().path());
    let mut words = folders.map(|folder| folder.join("conf/words")).filter(|file| file.is_file());
    words.next().expect("the world has its files")
}

/// Checks that Everett refuses finding files with a changed byte, truncated files, files of another machine version,
/// and files whose manifest names a file that is not packed in them.
fn tampered(place: &TestFolder, file: &str) {
    let whole = fs::read(file).unwrap();
    let bad = place.path("bad");
    for at in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(&bad, bytes).unwrap();
        for command in [&["replay", &bad][..], &["runs", "import", &bad, "-o", &place.path("none")]] {
            let error = refused(&place.everett(command));
            assert!(error.contains("/bad"), "{error}");
        }
        fs::write(&bad, &whole[..at]).unwrap();
        let error = refused(&place.everett(&["replay", &bad]));
        assert!(error.contains("/bad"), "{error}");
    }
    assert!(!Path::new(&place.path("none")).exists(), "an import that fails leaves nothing");
    let older = repacked(&whole, "\"machine_version\": \"everett-", "\"machine_version\": \"everett-0");
    fs::write(&bad, older).unwrap();
    let error = refused(&place.everett(&["replay", &bad]));
    assert!(error.contains("/bad was made by machine version everett-0"), "{error}");
    // A finding file is a packed tar archive. It is refused if the manifest gives a file another name
    // than the tar archive does.
    let sneaky = repacked(&whole, "world/everett.absolute/tmp", "world/everett.absolute/tnp");
    fs::write(&bad, sneaky).unwrap();
    let error = refused(&place.everett(&["replay", &bad]));
    assert!(error.contains("/bad") && error.contains("damaged"), "{error}");
}

/// Replaces a text in the manifest of a finding file, and packs the file again. `to` is as long as `from`, or one
/// character longer.
fn repacked(file: &[u8], from: &str, to: &str) -> Vec<u8> {
    let tar = zstd::decode_all(file).unwrap();
    let mut archive = tar::Archive::new(&tar[..]);
    let mut out = tar::Builder::new(Vec::new());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let (mut header, mut content) = (entry.header().clone(), Vec::new());
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        if header.path_bytes().as_ref() == b"manifest.json" {
            let text = String::from_utf8(content).unwrap();
            assert!(text.contains(from), "{text}");
            content = text.replacen(from, to, 1).into_bytes();
            header.set_size(content.len() as u64);
            header.set_cksum();
        }
        out.append(&header, &content[..]).unwrap();
    }
    zstd::encode_all(&out.into_inner().unwrap()[..], 1).unwrap()
}
