//! Container image whose root file system has only a static program, no shell and no libraries.

use std::fs;
use std::path::Path;

use super::tools::{static_program, text, tools};
use super::{run, run_under, verify};
use crate::support::{MS, findings, lines};

/// Program that prints what a process in a container sees, writes to its volume, and answers on a port.
const PROGRAM: &str = r#"
use std::fs;
use std::io::{Read as _, Write as _};
fn read(path: &str) -> String { fs::read_to_string(path).unwrap_or_else(|error| error.to_string()) }
fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == "count") {
        // The workload's driver runs this program with the argument `count`, to read the number that the service wrote.
        print!("counted {}", read("/data/count"));
        return;
    }
    println!("words {words:?}");
    for (name, value) in std::env::vars() { println!("env {name}={value}"); }
    println!("cwd {}", std::env::current_dir().unwrap().display());
    for key in ["Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:"] {
        let status = read("/proc/self/status");
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        println!("{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    println!("hostname {}", read("/etc/hostname").trim());
    println!("hosts {}", read("/etc/hosts").replace('\n', ";"));
    println!("resolv.conf {:?}", read("/etc/resolv.conf"));
    for path in ["/dev/null", "/dev/shm", "/dev/pts", "/dev/stdout", "/sys/kernel", "/proc/1", "/tmp", "/run/x/y"] {
        println!("{path} {}", fs::symlink_metadata(path).is_ok());
    }
    println!("seed {}", read("/data/seed").trim());
    let count: u64 = read("/data/count").trim().parse().unwrap_or(0);
    let mut file = fs::File::create("/data/count").unwrap();
    writeln!(file, "{}", count + 1).unwrap();
    file.sync_all().unwrap();
    fs::File::open("/data").unwrap().sync_all().unwrap();
    println!("start {}", count + 1);
    for client in std::net::TcpListener::bind("0.0.0.0:80").unwrap().incoming() {
        let mut client = client.unwrap();
        let _ = client.read(&mut [0; 4]);
        let _ = client.write_all(b"+OK\n");
    }
}
"#;

/// Makes an OCI image layout with `umoci`. The image has the compiled [`PROGRAM`], a file in the volume, a folder in
/// /run, and users.
fn layout(folder: &Path) -> String {
    let program = static_program(folder, PROGRAM);
    let layout = format!("{}/layout", text(&folder));
    let image = format!("{layout}:it");
    let source = folder.join("source");
    fs::create_dir_all(source.join("data")).unwrap();
    fs::create_dir_all(source.join("run/x")).unwrap();
    fs::create_dir_all(source.join("etc")).unwrap();
    fs::write(source.join("data/seed"), "seeded\n").unwrap();
    fs::write(source.join("run/x/y"), "y").unwrap();
    fs::write(source.join("etc/passwd"), "root:x:0:0::/root:/x\nweb:x:1000:1001::/home/web:/x\n").unwrap();
    fs::write(source.join("etc/group"), "web:x:1001:\nextra:x:1002:web\n").unwrap();
    fs::write(source.join("removed"), "x").unwrap();
    for path in ["data", "data/seed"] {
        std::os::unix::fs::chown(source.join(path), Some(1000), Some(1001)).unwrap();
    }
    let umoci = |arguments: &[&str]| tools().run("umoci", arguments);
    umoci(&["init", "--layout", &layout]);
    umoci(&["new", "--image", &image]);
    umoci(&["insert", "--image", &image, text(&source), "/"]);
    umoci(&["insert", "--image", &image, text(&program), "/program"]);
    umoci(&["insert", "--image", &image, "--whiteout", "/removed"]);
    umoci(&[
        "config",
        "--image",
        &image,
        "--config.entrypoint",
        "/program",
        "--config.cmd",
        "one",
        "--config.cmd",
        "two words",
        "--config.env",
        "NAME=a value",
        "--config.user",
        "web",
        "--config.workingdir",
        "/work/deep",
        "--config.volume",
        "/data",
        "--config.stopsignal",
        "SIGINT",
    ]);
    "oci:layout:it".to_owned()
}

fn world(image: &str) -> String {
    format!(
        "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"{image}\"\n[[node.service]]\n\
         ready = {{ tcp = 80, send = \"ping\", expect = \"+OK\" }}\n\
         [[workload.driver]]\nname = \"count\"\nargv = [\"/program\", \"count\"]\nrepeat = true\n"
    )
}

#[test]
fn a_static_program_sees_what_it_would_see_in_a_container() {
    let folder = tempfile::tempdir().unwrap();
    let image = layout(folder.path());
    let events = run(folder.path(), &world(&image), 200 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    assert_eq!(
        lines(&events, "a"),
        [
            "words [\"/program\", \"one\", \"two words\"]",
            "env HOME=/home/web",
            "env HOSTNAME=a",
            "env NAME=a value",
            "env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "cwd /work/deep",
            "Uid: 1000 1000 1000 1000",
            "Gid: 1001 1001 1001 1001",
            "Groups: 1002",
            "CapEff: 0000000000000000",
            // Docker's fourteen default capabilities.
            "CapBnd: 00000000a80425fb",
            "hostname a",
            "hosts 127.0.0.1 localhost;::1 localhost ip6-localhost ip6-loopback;10.0.0.1 a;",
            "resolv.conf \"\"",
            "/dev/null true",
            "/dev/shm true",
            "/dev/pts true",
            "/dev/stdout true",
            "/sys/kernel true",
            "/proc/1 true",
            "/tmp true",
            "/run/x/y true",
            "seed seeded",
            "start 1",
        ]
    );
    assert_eq!(lines(&events, "count").first(), Some(&"counted 1"));
    verify(folder.path(), "200ms");
}

#[test]
fn a_volume_survives_a_loss_of_power_and_is_filled_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&layout(folder.path()));
    let plan = "{\"at\":\"500ms\",\"for\":\"50ms\",\"fault\":\"power_loss\",\"node\":\"a\"}\n";
    let events = run_under(folder.path(), &world, plan, 3_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let own = lines(&events, "a");
    let of = |start: &str| own.iter().copied().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    assert_eq!(of("start"), ["start 1", "start 2"]);
    assert_eq!(of("seed"), ["seed seeded", "seed seeded"]);
    assert_eq!(of("/run/x/y"), ["/run/x/y true", "/run/x/y true"]);
}

#[test]
fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let image = layout(folder.path());
    for (service, line) in [
        ("user = \"nosuch\"", "everett: there is no user nosuch in /etc/passwd"),
        ("entrypoint = [\"nosuch\"]", "everett: cannot start nosuch: no such program in PATH"),
        (
            "entrypoint = [\"/etc/passwd\"]",
            "everett: cannot start /etc/passwd: Permission denied (os error 13)",
        ),
    ] {
        let text = format!(
            "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"{image}\"\n[[node.service]]\n{service}\n"
        );
        let events = run(folder.path(), &text, 100 * MS);
        assert!(lines(&events, "a").contains(&line), "{:?}", lines(&events, "a"));
        assert!(!findings(&events).is_empty(), "{service}");
    }
}
