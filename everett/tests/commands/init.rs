//! `everett init`, and commands that find their world file in the current folder. No machine boots here.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use everett_world_file as world_file;
use tempfile::TempDir;

/// Runs the program in a folder, which also holds the program's cache.
fn everett(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    command.args(args).current_dir(folder).env("EVERETT_CACHE", folder.join("cache"));
    command.output().expect("the program starts")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Runs a command that must succeed. Returns its standard output.
fn fine(folder: &Path, args: &[&str]) -> String {
    let output = everett(folder, args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs a command that must fail with one line on standard error. Returns that line.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = everett(folder, args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn a_package_becomes_a_world_and_the_next_commands_are_told() {
    let folder = folder();
    let said = fine(folder.path(), &["init", "memcached"]);
    assert_eq!(
        said,
        "world.toml: a world of one machine: memcached\nnext:\n    everett run\n    everett explore --budget 10m\n"
    );
    // The world file for Redis has a client that never ends, so the suggested run has a duration.
    let said = fine(folder.path(), &["init", "redis-server", "--nodes", "2", "-o", "my world.toml"]);
    assert_eq!(
        said,
        "my world.toml: a world of machines: redis-server-1, redis-server-2\nnext:\n    everett run 'my world.toml' --for \
         10s\n    everett explore 'my world.toml' --budget 10m\n"
    );
    for name in ["world.toml", "my world.toml"] {
        let file = folder.path().join(name);
        world_file::load(&file).unwrap_or_else(|error| panic!("{error}"));
        // Draws faults for the world file that `init` wrote. This shows that its node names and kinds of faults are
        // valid.
        let plan = fine(folder.path(), &["plan", name, "--seed", "1", "--for", "60s"]);
        assert!(plan.contains("\"power_loss\""), "{plan}");
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder();
    fs::write(folder.path().join("world.toml"), "mine").unwrap();
    let error = refused(folder.path(), &["init", "memcached"]);
    assert_eq!(
        error,
        "everett: world.toml exists already, and init does not overwrite it; name another file with -o\n"
    );
    assert_eq!(fs::read_to_string(folder.path().join("world.toml")).unwrap(), "mine");
    std::os::unix::fs::symlink("nowhere", folder.path().join("link.toml")).unwrap();
    assert!(refused(folder.path(), &["init", "memcached", "-o", "link.toml"]).contains("link.toml exists"));
    assert!(refused(folder.path(), &["init", "memcached", "-o", "world.yaml"]).contains("must end in .toml"));
    assert!(refused(folder.path(), &["init", "memcached", "-o", "no/world.toml"]).contains("no/world.toml"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_compose_file_is_found_and_completed() {
    let folder = folder();
    assert!(refused(folder.path(), &["init"]).contains("no compose file in the current folder"));
    let project = folder.path().join("shop");
    fs::create_dir(&project).unwrap();
    let text = "services:\n  web: { image: shop, ports: ['80:8000'] }\n  db: { image: 'postgres:15' }\n";
    fs::write(project.join("docker-compose.yml"), text).unwrap();
    let said = fine(&project, &["init"]);
    assert!(said.starts_with("world.toml: a world of machines: web, db\n"), "{said}");
    let world = world_file::load(&project.join("world.toml")).unwrap();
    assert!(world.nodes.iter().all(|node| node.services[0].ready.is_some()));
    fs::remove_file(project.join("world.toml")).unwrap();
    let said = fine(folder.path(), &["init", "shop/docker-compose.yml"]);
    assert!(said.contains("    everett run shop/world.toml\n"), "{said}");
    assert!(refused(folder.path(), &["init", "no.yaml"]).contains("no.yaml: no such file or folder"));
}

#[test]
fn a_program_becomes_a_world() {
    let folder = folder();
    // The server is the C library's loader. It needs no shared libraries, and every host that builds Everett has it.
    fs::copy("/lib64/ld-linux-x86-64.so.2", folder.path().join("server")).unwrap();
    let said = fine(folder.path(), &["init", "./server", "--port", "8080", "--", "--listen", "0.0.0.0"]);
    assert!(said.starts_with("world.toml: a world of one machine: server\n"), "{said}");
    let world = world_file::load(&folder.path().join("world.toml")).unwrap();
    assert_eq!(world.nodes[0].services[0].command.argv, ["/opt/server", "--listen", "0.0.0.0"]);
    let error = refused(folder.path(), &["init", "server", "-o", "w.toml"]);
    assert!(error.contains("write ./server or --package server"), "{error}");
    assert!(
        refused(folder.path(), &["init", "memcached", "-o", "w.toml", "--", "-v"])
            .contains("arguments after --")
    );
}

/// Writes an image archive as `docker save` does.
fn archive(path: &Path, config: &str) {
    let mut archive = tar::Builder::new(fs::File::create(path).unwrap());
    let manifest = r#"[{"Config":"config.json","RepoTags":["shop:1"],"Layers":[]}]"#;
    for (name, text) in [("manifest.json", manifest), ("config.json", config)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap();
}

#[test]
fn an_image_is_asked_for_its_ports() {
    let folder = folder();
    let config = r#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},
        "config":{"Cmd":["/shop"],"ExposedPorts":{"53/udp":{},"8081/tcp":{},"8080":{}}}}"#;
    archive(&folder.path().join("shop.tar"), config);
    let said = fine(folder.path(), &["init", "shop.tar", "--json"]);
    let record: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(record["next"][0], "everett run");
    assert_eq!(record["nodes"][0], "shop");
    let text = fs::read_to_string(folder.path().join("world.toml")).unwrap();
    assert!(text.contains("image = \"./shop.tar\"\n") && text.contains("ready = { tcp = 8080 }"), "{text}");
    let error = refused(folder.path(), &["init", "--image", "oci:no", "-o", "w.toml"]);
    assert!(error.contains("oci:no") && error.contains("no such file or folder"), "{error}");
    archive(&folder.path().join("bad.tar"), "{");
    assert!(refused(folder.path(), &["init", "bad.tar", "-o", "w.toml"]).contains("bad.tar"));
    assert!(!folder.path().join("w.toml").exists());
}

#[test]
fn commands_find_the_world_of_the_current_folder() {
    let folder = folder();
    for command in ["run", "verify", "explore"] {
        assert_eq!(
            refused(folder.path(), &[command]),
            "everett: no world.toml and no compose file in the current folder; name one, or write one with everett init\n"
        );
    }
    // Each world file has an error, so the message shows which file was read.
    for name in ["docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml", "world.toml"] {
        fs::write(folder.path().join(name), "nodes = 3\n").unwrap();
        for command in ["run", "verify", "explore"] {
            let error = refused(folder.path(), &[command]);
            assert!(error.starts_with(&format!("everett: {name}:1: ")), "{name}: {error}");
        }
    }
    assert!(refused(folder.path(), &["run", "compose.yml"]).starts_with("everett: compose.yml:1: "));
    assert!(!folder.path().join("run").exists());
}
