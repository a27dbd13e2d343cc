//! Images from a container registry that runs on this host: pulling, locking by digest, and passwords.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use super::tools::{cache, program_image, text, tools};
use super::{run, verify};
use crate::support::{MS, everett, findings, lines, shown};

/// Registry process. Dropping the value ends it.
struct Registry {
    process: Child,
    address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Line of a password file (bcrypt): user `everett`, password `secret`.
const PASSWORD: &str = "everett:$2b$04$YD6rAFbvPesGg5zb6qgDTu.E0DFFa8zMasaulFfVG5A4c5KmF9RDa\n";

impl Registry {
    /// Starts a registry that stores its content in `folder`, and waits until it listens.
    fn start(folder: &Path, with_password: bool) -> Registry {
        // Finds a free port. Another process is unlikely to take it before the registry does.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let at = text(&folder).to_owned();
        let mut config = format!(
            "version: 0.1\nlog:\n  level: info\nstorage:\n  filesystem:\n    rootdirectory: {at}/content\nhttp:\n  addr: {address}\n"
        );
        if with_password {
            fs::write(folder.join("passwords"), PASSWORD).unwrap();
            config += &format!("auth:\n  htpasswd:\n    realm: test\n    path: {at}/passwords\n");
        }
        fs::write(folder.join("config.yml"), config).unwrap();
        let mut command = tools().command("docker-registry");
        command.arg("serve").arg(folder.join("config.yml")).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the registry starts");
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "the registry ended");
        }
        // Keeps reading the registry's output, so that it never blocks on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Registry { process, address }
    }
}

/// Pushes an image with a program that prints `line`.
fn push(folder: &Path, registry: &Registry, name: &str, line: &str, credentials: Option<&str>) {
    let source = format!("fn main() {{ println!(\"{line}\"); loop {{ std::thread::park(); }} }}");
    let layout = folder.join("layout");
    let _ = fs::remove_dir_all(&layout);
    let image = program_image(folder, &layout, "it", &source, &["--config.cmd", "/program"]);
    let (from, to) = (format!("oci:{image}"), format!("docker://{}/{name}", registry.address));
    let mut arguments = vec!["copy", "--insecure-policy", "--dest-tls-verify=false"];
    arguments.extend(credentials.iter().flat_map(|credentials| ["--dest-creds", *credentials]));
    arguments.extend([from.as_str(), to.as_str()]);
    tools().run("skopeo", &arguments);
}

fn world(image: &str) -> String {
    format!("[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"{image}\"\n")
}

#[test]
fn an_image_is_pulled_once_and_then_locked() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path(), false);
    push(folder.path(), &registry, "some/tool:1", "first", None);
    let world = world(&format!("docker://{}/some/tool:1", registry.address));
    let printed = || {
        let events = run(folder.path(), &world, 100 * MS);
        assert_eq!(findings(&events), Vec::<&str>::new());
        lines(&events, "a").join(" ")
    };
    assert_eq!(printed(), "first");
    let lock = folder.path().join("world.lock");
    let locked = fs::read_to_string(&lock).unwrap();
    assert!(locked.contains("[[image]]") && locked.contains("digest = \"sha256:"), "{locked}");
    // The tag now names another image, but `world.lock` still names the first one.
    push(folder.path(), &registry, "some/tool:1", "second", None);
    assert_eq!(printed(), "first");
    let first = fs::read_to_string(&lock).unwrap();
    fs::remove_file(&lock).unwrap();
    assert_eq!(printed(), "second");
    // The cache has both images, and `world.lock` names one of them, so Everett needs no registry.
    drop(registry);
    assert_eq!(printed(), "second");
    fs::write(&lock, first).unwrap();
    assert_eq!(printed(), "first");
    verify(folder.path(), "100ms");
}

#[test]
fn a_registry_that_wants_a_password_gets_the_operators() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path(), true);
    push(folder.path(), &registry, "secret:1", "third", Some("everett:secret"));
    let file = folder.path().join("world.toml");
    fs::write(&file, world(&format!("docker://{}/secret:1", registry.address))).unwrap();
    let build = |config: &str| {
        let docker = folder.path().join("docker");
        fs::create_dir_all(&docker).unwrap();
        fs::write(docker.join("config.json"), config).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_everett"));
        command.args(["image", "build", text(&file)]).env("DOCKER_CONFIG", &docker);
        command.env("REGISTRY_AUTH_FILE", docker.join("none")).output().unwrap()
    };
    let refused = build("{}");
    assert_eq!(refused.status.code(), Some(2), "{}", shown(&refused));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("it refuses access (401 Unauthorized); log in with docker login"), "{said}");
    // `everett:secret` in base64, as `docker login` stores it.
    let auths = format!("{{\"auths\":{{\"{}\":{{\"auth\":\"ZXZlcmV0dDpzZWNyZXQ=\"}}}}}}", registry.address);
    let built = build(&auths);
    assert!(built.status.success(), "{}", shown(&built));
}

#[test]
fn a_registry_without_the_image_is_named_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path(), false);
    let file = folder.path().join("world.toml");
    let refused = |image: &str| {
        fs::write(&file, world(image)).unwrap();
        let output = everett(&["image", "build", text(&file)]);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let address = &registry.address;
    let said = refused(&format!("docker://{address}/nosuch:1"));
    assert!(
        said.contains(&format!("the registry {address}: it has no such image (404 Not Found)")),
        "{said}"
    );
    let said = refused("docker://127.0.0.1:9/x");
    assert!(said.contains("the registry 127.0.0.1:9: "), "{said}");
    let said = refused(&format!("{address}/x@sha256:{}", "0".repeat(64)));
    assert!(said.contains("404"), "{said}");
    assert!(cache().folder().is_dir());
}
