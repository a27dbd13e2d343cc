//! `everett cache`: listing, pruning, and items that pruning keeps. Each test has its own cache.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Folder with a cache and with a world whose image is built without booting a machine.
struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        let lab = Lab(tempfile::tempdir().unwrap());
        fs::write(lab.path("vmlinux"), crate::kernel::vmlinux()).unwrap();
        fs::create_dir_all(lab.path("root/bin")).unwrap();
        fs::write(lab.path("root/bin/tool"), "tool").unwrap();
        let world = "[image]\nkernel = \"vmlinux\"\nrootfs = \"root\"\n[[node]]\nname = \"a\"\n";
        fs::write(lab.path("world.toml"), world).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn everett(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command.current_dir(self.0.path()).env("EVERETT_CACHE", self.path("cache"));
        command.args(arguments).output().unwrap()
    }

    fn build(&self) {
        let output = self.everett(&["image", "build", "world.toml"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the records of `everett cache`, without the total.
    fn records(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.everett(&[&["--json", "cache"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(records.pop().unwrap()["kind"], "cache_total");
        records
    }

    /// Returns the kinds and paths of all listed items.
    fn listed(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let records = self.records(&[]);
        records.iter().map(|one| (text(&one["item"]["kind"]), text(&one["item"]["path"]))).collect()
    }
}

const ALL: [&str; 3] = ["prune", "--older-than", "0s"];

#[test]
fn an_image_is_listed_with_its_world_and_pruned() {
    let lab = Lab::new();
    lab.build();
    let records = lab.records(&[]);
    assert_eq!(records.len(), 3, "kernel, initramfs, root: {records:?}");
    for record in &records {
        let item = &record["item"];
        assert_eq!((item["kind"].as_str(), item["running"].as_bool()), (Some("image"), Some(false)));
        let world = lab.path("world.toml").canonicalize().unwrap();
        assert_eq!(item["worlds"], serde_json::json!([world]));
        assert!(item["bytes"].as_u64() > Some(0) && item["used_unix_s"].as_u64() > Some(1_700_000_000));
    }
    assert_eq!(lab.records(&["prune"]).len(), 0, "no item is a week old, so none may be removed");
    let tried = lab.records(&["prune", "--older-than", "0s", "--dry-run"]);
    assert_eq!((tried.len(), lab.listed().len()), (3, 3));
    assert_eq!(lab.records(&ALL).len(), 3);
    assert_eq!(lab.listed(), []);
    assert_eq!(fs::read_dir(lab.path("cache/uses")).unwrap().count(), 0);
    lab.build();
    assert_eq!(lab.listed().len(), 3);
    let output = lab.everett(&["cache"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("world.toml") && text.contains("just now"), "{text}");
}

#[test]
fn items_in_use_are_kept() {
    let lab = Lab::new();
    lab.build();
    // Locks the usage note, a file that says which items of the cache a world used. A process holds this lock for as
    // long as it uses the image.
    let note = fs::read_dir(lab.path("cache/uses")).unwrap().next().unwrap().unwrap().path();
    let held = File::open(&note).unwrap();
    held.lock_shared().unwrap();
    let kept = lab.records(&ALL);
    assert!(kept.len() == 3 && kept.iter().all(|record| record["kind"] == "cache_kept"), "{kept:?}");
    assert_eq!(lab.listed().len(), 3);
    drop(held);
    // Locks the file `gate`, as a process does while it builds an image.
    let gate = File::open(lab.path("cache/gate")).unwrap();
    gate.lock_shared().unwrap();
    let output = lab.everett(&["cache", "prune", "--older-than", "0s"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("another process is building or looking up an image"), "{error}");
    assert_eq!(lab.listed().len(), 3);
    drop(gate);
    assert_eq!(lab.records(&ALL).len(), 3);
}

#[test]
fn saved_moments_are_removed_only_on_request() {
    let lab = Lab::new();
    for file in ["moments/one/ready.moment", "moments/two/ready.moment", "moments/two/saved/t/mine.moment"] {
        let path = lab.path("cache").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "moment").unwrap();
    }
    let listed = |items: &[(&str, &str)]| -> Vec<(String, String)> {
        items.iter().map(|(kind, path)| ((*kind).to_owned(), (*path).to_owned())).collect()
    };
    assert_eq!(lab.listed(), listed(&[("boot", "moments/one"), ("saved", "moments/two")]));
    assert_eq!(lab.records(&["prune", "--keep", "0B"]).len(), 1);
    assert_eq!(lab.listed(), listed(&[("saved", "moments/two")]));
    assert_eq!(lab.records(&["prune", "--keep", "0B", "--saved-moments"]).len(), 1);
    assert_eq!(lab.listed(), []);
}

#[test]
fn images_of_worlds_with_saved_moments_are_kept() {
    let lab = Lab::new();
    lab.build();
    for file in ["moments/one/saved/t/mine.moment", "moments/two/saved/t/mine.moment"] {
        let path = lab.path("cache").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "moment").unwrap();
    }
    let note = |name: &str, world: PathBuf, item: &str| {
        let text = serde_json::json!({ "world": world, "items": [item] }).to_string();
        fs::write(lab.path("cache/uses").join(name), text).unwrap();
    };
    let kinds = || -> Vec<String> { lab.listed().into_iter().map(|(kind, _)| kind).collect() };
    let world = lab.path("world.toml").canonicalize().unwrap();
    note("one.json", world, "moments/one");
    note("two.json", lab.path("other.toml"), "moments/two");
    assert_eq!(lab.records(&ALL).len(), 0, "images of a world with a saved moment must be kept");
    assert_eq!(lab.records(&["prune", "--keep", "0B"]).len(), 0);
    assert_eq!(kinds(), ["image", "image", "image", "saved", "saved"]);
    // The remaining saved moment belongs to another world, so pruning removes the images.
    fs::remove_dir_all(lab.path("cache/moments/one")).unwrap();
    assert_eq!(lab.records(&ALL).len(), 3);
    assert_eq!(kinds(), ["saved"]);
}

#[test]
fn a_moment_is_removed_before_the_images_that_it_needs() {
    let lab = Lab::new();
    lab.build();
    let moment = lab.path("cache/moments/one/saved/t/mine.moment");
    fs::create_dir_all(moment.parent().unwrap()).unwrap();
    fs::write(moment, vec![7; 16 << 20]).unwrap();
    let world = lab.path("world.toml").canonicalize().unwrap();
    let text = serde_json::json!({ "world": world, "items": ["moments/one"] }).to_string();
    fs::write(lab.path("cache/uses/one.json"), text).unwrap();
    // Pruning removes the least recently used items first. The moment was used most recently, but it would be useless
    // without its images, so pruning removes it before them. The images alone fit into 12 MiB.
    let removed = lab.records(&["prune", "--keep", "12M", "--saved-moments"]);
    let removed: Vec<&str> = removed.iter().map(|one| one["item"]["path"].as_str().unwrap()).collect();
    assert_eq!(removed, ["moments/one"]);
    assert_eq!(lab.listed().len(), 3);
}

/// Grants or removes write permission for a folder and its contents.
fn writable(folder: &Path, writable: bool) {
    let mode = if writable { "u+w" } else { "a-w" };
    let status = Command::new("chmod").args(["-R", mode]).arg(folder).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_read_only_cache_can_be_used() {
    let lab = Lab::new();
    let tar = Command::new("tar").current_dir(lab.path("root")).args(["-cf", "../root.tar", "."]).status();
    assert!(tar.unwrap().success());
    let world = fs::read_to_string(lab.path("world.toml")).unwrap();
    fs::write(lab.path("world.toml"), world.replace("\"root\"", "\"root.tar\"")).unwrap();
    lab.build();
    // Root may write whatever the file modes say. So the test runs as another user, who must be able to reach the
    // program and the world.
    let program = lab.path("everett");
    fs::copy(env!("CARGO_BIN_EXE_everett"), &program).unwrap();
    fs::set_permissions(lab.0.path(), Permissions::from_mode(0o755)).unwrap();
    let nobody = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        command.current_dir(lab.0.path()).env("EVERETT_CACHE", lab.path("cache"));
        command.args(arguments).output().unwrap()
    };
    // In the first round, the cache has the file `gate` and the usage notes of its owner. In the second round it has
    // neither, like caches of earlier versions.
    for _ in 0..2 {
        writable(&lab.path("cache"), false);
        let output = nobody(&["image", "build", "world.toml"]);
        let prune = nobody(&["cache", "prune"]);
        writable(&lab.path("cache"), true);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(prune.status.code(), Some(2));
        let _ = fs::remove_dir_all(lab.path("cache/uses"));
        let _ = fs::remove_file(lab.path("cache/gate"));
    }
    // The image is gone and must be built again, which needs write permission.
    fs::remove_dir_all(lab.path("cache/entries")).unwrap();
    fs::create_dir(lab.path("cache/entries")).unwrap();
    writable(&lab.path("cache"), false);
    let output = nobody(&["image", "build", "world.toml"]);
    writable(&lab.path("cache"), true);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("cannot use the cache at"), "{error}");
}

#[test]
fn least_recently_used_items_are_removed_first() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("cache/packages")).unwrap();
    for (name, day) in [("new", 30), ("old", 10), ("middle", 20)] {
        let path = lab.path("cache/packages").join(name);
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        let status = Command::new("touch").arg("-d").arg(format!("2024-01-{day}")).arg(&path).status();
        assert!(status.unwrap().success());
    }
    let paths = |records: &[Value]| -> Vec<String> {
        records.iter().map(|one| one["item"]["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&lab.records(&["prune", "--keep", "2500K"])), ["packages/old"]);
    assert_eq!(paths(&lab.records(&["prune", "--keep", "1G"])), [] as [String; 0]);
    assert_eq!(paths(&lab.records(&["prune", "--older-than", "7d"])), ["packages/middle", "packages/new"]);
}
