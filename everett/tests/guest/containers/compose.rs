//! Compose files whose services run one static program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use everett_streams::Seed;

use super::tools::{program_image, text, tools};
use super::{launcher_of, run_file_under, verify_file};
use crate::support::{MS, findings, lines, run_to_end, shown};

/// Program of all services. Its first argument selects the service's task.
const PROGRAM: &str = r#"
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;
fn read(path: &str) -> String { fs::read_to_string(path).unwrap_or_else(|error| error.to_string()).trim().replace('\n', ";") }
fn reach(address: SocketAddr) -> String {
    match TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
        Ok(_) => "reached".to_owned(),
        Err(error) => error.kind().to_string(),
    }
}
/// Asks the name server in /etc/resolv.conf for the IPv4 addresses of a name.
fn ask(name: &str) -> String {
    let mut query = vec![1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.len() as u8];
    query.extend(name.as_bytes());
    query.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let server = read("/etc/resolv.conf").replace("nameserver ", "");
    socket.send_to(&query, (server.as_str(), 53)).unwrap();
    let mut answer = [0; 512];
    let Ok((length, _)) = socket.recv_from(&mut answer) else { return "no answer".to_owned() };
    let records = answer[query.len()..length].chunks(16).map(|record| format!("{}.{}", record[14], record[15]));
    format!("code {} {:?}", answer[3] & 15, records.collect::<Vec<_>>())
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words[1].as_str() {
        "job" => { println!("the job is done"); return; }
        "healthy" => std::process::exit(i32::from(!fs::exists("/healthy").unwrap())),
        "serve" => {
            let listener = TcpListener::bind("0.0.0.0:80").unwrap();
            std::thread::sleep(Duration::from_secs(2));
            fs::write("/healthy", "").unwrap();
            println!("healthy");
            for client in listener.incoming() { drop(client); }
        }
        _ => {}
    }
    println!("hosts {}", read("/etc/hosts"));
    println!("env {}", std::env::var("TEXT").unwrap());
    for path in ["/conf/a", "/conf/sub/b", "/c", "/run/secrets/s", "/proc/sys/net/core/somaxconn", "/etc/hostname"] {
        println!("{path} {}", read(path));
    }
    for line in read("/proc/self/limits").split(';').filter(|line| line.starts_with("Max open files")) {
        println!("{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    println!("write {}", fs::write("/conf/new", "").unwrap_err().kind());
    for path in ["/own", "/v/file", "/memory/file"] {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(b"+").unwrap();
        file.sync_all().unwrap();
        println!("{path} {}", read(path));
    }
    for name in ["back", "alias", "far"] {
        match (name, 80).to_socket_addrs() {
            Ok(mut found) => println!("{name} {}", reach(found.next().unwrap())),
            Err(_) => println!("{name} unknown"),
        }
        println!("{name} asked: {}", ask(name));
    }
    println!("several {}", ask("several"));
    println!("far by its address: {}", reach("10.0.0.3:80".parse().unwrap()));
    println!("end");
    loop { std::thread::park(); }
}
"#;

const COMPOSE: &str = r#"
services:
  front:
    image: own/image:1
    command: probe
    environment:
      TEXT: "${TEXT:-a $$b}"
    volumes:
      - ./conf:/conf:ro
      - ./own:/own
      - v:/v
    tmpfs: /memory:size=1m
    configs: [c]
    secrets: [s]
    hostname: first
    ulimits: { nofile: { soft: 11, hard: 22 } }
    sysctls: { net.core.somaxconn: 77 }
    depends_on:
      back: { condition: service_healthy }
      job: { condition: service_completed_successfully }
    networks: [near]
  back:
    image: own/image:1
    command: serve
    healthcheck: { test: [CMD, /program, healthy] }
    networks:
      near: { aliases: [alias] }
      other:
  far:
    image: own/image:1
    command: serve
    networks: [other]
  job:
    image: own/image:1
    command: job
    depends_on: [back]
    networks: [other]
  several:
    image: own/image:1
    command: serve
    scale: 2
    networks: [near]
volumes: { v: }
networks: { near: , other: }
configs: { c: { content: config } }
secrets: { s: { file: ./secret } }
x-everett:
  images: { own/image:1: "oci:layout:it" }
"#;

/// Makes the project: its image, files and compose file.
fn project(folder: &Path, compose: &str) {
    project_of(folder, PROGRAM, compose);
}

/// Makes a project whose image contains `program`.
pub(super) fn project_of(folder: &Path, program: &str, compose: &str) {
    program_image(folder, &folder.join("layout"), "it", program, &["--config.entrypoint", "/program"]);
    fs::create_dir_all(folder.join("conf/sub")).unwrap();
    for (path, content) in [("conf/a", "A"), ("conf/sub/b", "B"), ("own", "own"), ("secret", "hidden")] {
        fs::write(folder.join(path), content).unwrap();
    }
    fs::write(folder.join("compose.yaml"), compose).unwrap();
}

#[test]
fn services_are_machines_with_names_mounts_order_and_networks() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path(), COMPOSE);
    let launcher = launcher_of(&folder.path().join("compose.yaml"));
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, 2_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    assert_eq!(
        lines(&events, "front"),
        [
            "hosts 127.0.0.1 localhost;::1 localhost ip6-localhost ip6-loopback;10.0.0.1 front first;10.0.0.2 back alias;10.0.0.5 several-1 several;10.0.0.6 several-2 several",
            "env a $b",
            "/conf/a A",
            "/conf/sub/b B",
            "/c config",
            "/run/secrets/s hidden",
            "/proc/sys/net/core/somaxconn 77",
            "/etc/hostname first",
            "Max open files 11 22 files",
            "write read-only filesystem or storage medium",
            "/own own+",
            "/v/file +",
            "/memory/file +",
            "back reached",
            "back asked: code 0 [\"0.2\"]",
            "alias reached",
            "alias asked: code 0 [\"0.2\"]",
            "far unknown",
            "far asked: code 3 []",
            "several code 0 [\"0.5\", \"0.6\"]",
            // The address is on the same subnet, but no machine has it.
            "far by its address: timed out",
            "end",
        ]
    );
    let at = |wanted: &str| {
        let line = |event: &&everett_session::world::event::Event| matches!(&event.what, everett_session::world::event::What::Line { text, .. } if text.starts_with(wanted));
        events.iter().find(line).map(|event| event.vtime_ns).unwrap()
    };
    assert!(at("healthy") < at("hosts") && at("the job is done") < at("hosts"));
    verify_file(&folder.path().join("compose.yaml"), "300ms");
}

#[test]
fn volumes_and_changed_files_survive_a_loss_of_power() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path(), COMPOSE);
    let plan = "{\"at\":\"3s\",\"for\":\"50ms\",\"fault\":\"power_loss\",\"node\":\"front\"}\n\
                {\"at\":\"3s\",\"for\":\"50ms\",\"fault\":\"power_loss\",\"node\":\"job\"}\n";
    let events = run_file_under(&folder.path().join("compose.yaml"), plan, 8_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let own = lines(&events, "front");
    let of = |start: &str| own.iter().copied().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    assert_eq!(of("/own"), ["/own own+", "/own own++"]);
    assert_eq!(of("/v/file"), ["/v/file +", "/v/file ++"]);
    assert_eq!(of("/memory/file"), ["/memory/file +", "/memory/file +"]);
    // Finished jobs do not run again.
    assert_eq!(lines(&events, "job"), ["the job is done"]);
}

/// Runs `everett image build` with the script `docker` as the program `docker`. `None` runs it without any container
/// engine in `PATH`.
fn build(folder: &Path, docker: Option<&str>) -> std::process::Output {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    if let Some(script) = docker {
        fs::write(bin.join("docker"), script).unwrap();
        fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    // Links all of the host's programs except container engines.
    for entry in fs::read_dir("/usr/bin").unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("docker") && !name.starts_with("podman") {
            let _ = std::os::unix::fs::symlink(&path, bin.join(name));
        }
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command.args(["image", "build", text(&folder.join("compose.yaml"))]).env("PATH", &bin);
    command.output().unwrap()
}

#[test]
fn docker_builds_what_has_a_build() {
    let folder = tempfile::tempdir().unwrap();
    project(
        folder.path(),
        "name: shop\nservices:\n  web:\n    build: { context: ./web, args: [A=1], target: last }\n    command: job\n",
    );
    fs::create_dir_all(folder.path().join("web")).unwrap();
    let without = build(folder.path(), None);
    assert_eq!(without.status.code(), Some(2), "{}", shown(&without));
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(said.contains("building it needs docker or podman, which this host does not have"), "{said}");
    let at = text(&folder.path()).to_owned();
    tools().run(
        "skopeo",
        &[
            "copy",
            "--insecure-policy",
            &format!("oci:{at}/layout:it"),
            &format!("docker-archive:{at}/built.tar:shop-web:latest"),
        ],
    );
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {at}/log\ncase \"$1\" in\n  build) ;;\n  image) echo sha256:{} ;;\n  save) cp {at}/built.tar \"$3\" ;;\nesac\n",
        blake3::hash(at.as_bytes()).to_hex()
    );
    let built = build(folder.path(), Some(&script));
    assert!(built.status.success(), "{}", shown(&built));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let real = folder.path().canonicalize().unwrap();
    let first = format!("build --tag shop-web --build-arg A=1 --target last {}/web", text(&real));
    assert_eq!(log.lines().next(), Some(first.as_str()), "{log}");
}

#[test]
fn wrong_files_end_with_status_2_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("compose.yml");
    for (compose, what) in [
        (
            "services:\n  a:\n    image: i\n    privileged: true\n",
            ":4: services.a.privileged: refused: only the host",
        ),
        ("services:\n  a:\n    imge: i\n", ":3: services.a.imge: unknown key; did you mean \"image\"?"),
        ("services: [\n", "not YAML"),
    ] {
        fs::write(&file, compose).unwrap();
        for command in ["run", "verify", "plan", "explore"] {
            let mut arguments = vec![command, text(&file), "--seed", "1"];
            if command == "explore" {
                arguments.extend(["-o", "/nonexistent/run"]);
            }
            let output = crate::support::everett(&arguments);
            assert_eq!(output.status.code(), Some(2), "{command} {}", shown(&output));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.lines().count() == 1 && said.contains(what), "{said}");
        }
    }
}
