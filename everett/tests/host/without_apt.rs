//! Test that a world of container images runs on a host without apt as it does on a host with apt. The test makes a
//! root file system that contains only the `everett` program and its libraries, and runs the world there, too.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use everett_guest_image::apt::Apt;
use everett_guest_image::apt::sources::Sources;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::trials::{Lacking, Ran};

/// Debian's mirror.
const MIRROR: &str = "http://deb.debian.org/debian";
const MIRROR_HOST: &str = "deb.debian.org";

/// Environment variables that name a proxy.
const PROXIES: [&str; 8] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// Program of the image. It prints some lines and does not end.
const PROGRAM: &str = r#"
fn main() {
    println!("{}", std::fs::read_to_string("/proc/version").unwrap().trim());
    for line in 0..20 {
        println!("line {line}, {}", std::process::id());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    loop { std::thread::park(); }
}
"#;

/// Runs a world of a container image on this host and in a root without apt. Both runs use the same kernel, and their
/// timelines are equal.
pub(crate) fn a_root_without_apt_runs_the_same_world() -> Ran {
    if !Apt::is_on_host() {
        return Err(Lacking::new("this host has no apt-get to compare with"));
    }
    let is_proxied = PROXIES.iter().any(|name| std::env::var_os(name).is_some());
    if !is_proxied && let Err(error) = TcpStream::connect((MIRROR_HOST, 80)) {
        return Err(Lacking::new(format!("{MIRROR_HOST} cannot be reached: {error}")));
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    make_root(&root);
    let mut probe = inside(&root);
    match probe.arg("--version").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            return Err(Lacking::new(format!("cannot change the root: {}", text(&output.stderr).trim())));
        }
        Err(error) => return Err(Lacking::new(format!("cannot change the root: {error}"))),
    }

    // Writes the same world twice: outside the root for a run on the host, and inside the root.
    let here = folder.path().join("world");
    let there = root.join("world");
    for place in [&here, &there] {
        fs::create_dir_all(place).unwrap();
        fs::write(place.join("image.tar"), image(folder.path())).unwrap();
        fs::write(place.join("world.toml"), world()).unwrap();
    }
    let arguments = ["--seed", "1", "--for", "1s"];
    let with_apt = Command::new(env!("CARGO_BIN_EXE_everett"))
        .args(["run", here.join("world.toml").to_str().unwrap()])
        .args(arguments)
        .output()
        .unwrap();
    let without_apt = inside(&root).args(["run", "/world/world.toml"]).args(arguments).output().unwrap();
    let (with_apt, without_apt) = (said(&with_apt), said(&without_apt));
    assert!(with_apt.contains("line 19, "), "{with_apt}");
    assert_eq!(timeline(&with_apt), timeline(&without_apt));
    let lock = |place: &Path| fs::read_to_string(place.join("world.lock")).unwrap();
    assert!(lock(&here).contains("name = \"linux-image-"), "{}", lock(&here));
    assert_eq!(lock(&here), lock(&there));

    // Worlds with packages need apt. The error comes before anything is downloaded.
    fs::write(there.join("packages.toml"), "[[node]]\nname = \"a\"\npackages = [\"redis-server\"]\n")
        .unwrap();
    let refused = inside(&root).args(["image", "build", "/world/packages.toml"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let error = text(&refused.stderr);
    assert!(error.contains("packages.toml: apt-get is not on this host"), "{error}");
    assert_eq!(error.trim().lines().count(), 1, "{error}");
    Ok(())
}

/// Returns the world file. If the host's apt uses other mirrors, the file names Debian's mirror, so that both runs get
/// the same packages of the kernel.
fn world() -> String {
    let sources = Sources::of_host("bookworm", None);
    let is_debian = |uri: &str| uri.contains(&format!("//{MIRROR_HOST}/"));
    let mirror = match sources.sources.iter().all(|source| is_debian(&source.uri)) {
        true => String::new(),
        false => format!("[image]\nmirror = \"{MIRROR}\"\n"),
    };
    format!("{mirror}[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"docker-archive:image.tar\"\n")
}

/// Makes a root with the program, its shared libraries, and the files that configure name servers.
fn make_root(root: &Path) {
    for name in ["etc", "tmp", "cache", "world"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_everett");
    fs::copy(program, root.join("everett")).unwrap();
    let libraries = Command::new("ldd").arg(program).output().expect("ldd starts");
    for word in text(&libraries.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(word.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(word, to).unwrap();
    }
    for name in ["resolv.conf", "hosts", "nsswitch.conf"] {
        let _ = fs::copy(Path::new("/etc").join(name), root.join("etc").join(name));
    }
}

/// Returns a command that runs the program inside the root.
fn inside(root: &Path) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("chroot");
        command.arg(root);
        command
    } else {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user"]).arg(format!("--root={}", root.display()));
        command
    };
    command
        .arg("/everett")
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("EVERETT_CACHE", "/cache");
    command.envs(PROXIES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

/// Builds the image: an archive in Docker's format, with one layer that has a static program.
fn image(folder: &Path) -> Vec<u8> {
    let mut layer = tar::Builder::new(Vec::new());
    add(&mut layer, "program", 0o755, &fs::read(static_program(folder)).unwrap());
    let layer = layer.into_inner().unwrap();
    let digest =
        |bytes: &[u8]| -> String { Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect() };
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Cmd": ["/program"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))] },
    })
    .to_string();
    let name = format!("{}.json", digest(config.as_bytes()));
    let manifest = json!([{ "Config": name, "RepoTags": ["it:1"], "Layers": ["layer.tar"] }]).to_string();
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in
        [(name.as_str(), config.as_bytes()), ("layer.tar", &layer), ("manifest.json", manifest.as_bytes())]
    {
        add(&mut archive, name, 0o644, content);
    }
    archive.into_inner().unwrap()
}

fn add(builder: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    builder.append_data(&mut header, path, content).unwrap();
}

/// Compiles the image's program at the first call. Returns its path.
fn static_program(folder: &Path) -> PathBuf {
    let (from, to) = (folder.join("program.rs"), folder.join("program"));
    if to.exists() {
        return to;
    }
    fs::write(&from, PROGRAM).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let flags = ["-O", "--edition", "2024", "-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
    let output =
        Command::new(rustc).args(flags).arg("-o").arg(&to).arg(&from).output().expect("rustc starts");
    said(&output);
    to
}

/// Returns the standard output of a command that must have succeeded.
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Returns the lines of the output that depend on the timeline: lines with a vtime, the timeline's name, and the digest
/// of the timeline's trail.
fn timeline(output: &str) -> Vec<String> {
    // A timeline's name begins with the machine version, such as `e3:`.
    let is_name = |line: &str| {
        let version = line.split(':').next().and_then(|word| word.strip_prefix('e'));
        version.is_some_and(|version| version.parse::<u32>().is_ok())
    };
    let without_speed = |line: &str| match line.split_once(" in ") {
        Some((counted, _)) if is_name(line) => counted.to_owned(),
        _ => line.to_owned(),
    };
    let is_of_timeline = |line: &&str| {
        let start = line.trim_start();
        start.starts_with(|c: char| c.is_ascii_digit()) || start.starts_with("trail ") || is_name(start)
    };
    let lines: Vec<String> = output.lines().filter(is_of_timeline).map(without_speed).collect();
    assert!(lines.iter().any(|line| line.starts_with("trail ")), "{output}");
    lines
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
