//! Tests of `everett init`: how it classifies its argument, and which world file it drafts. Each draft loads and has
//! the expected content.

use std::path::Path;

use everett_input::causes::with_causes;
use tempfile::TempDir;

use self::elf_program::{program, program_of_versions};
use super::{Draft, Error, ImageFacts, Listening, Machines, Subject, UnitFile, Wanted, draft, servers, text};
use crate::{CheckKind, Ready, Talk, World};

/// Small ELF programs.
#[path = "../../../elf/tests/elf/program.rs"]
pub(super) mod elf_program;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn wanted(folder: &TempDir, nodes: Option<usize>, port: Option<u16>) -> Wanted {
    Wanted { output: folder.path().join("world.toml"), nodes, port }
}

/// Returns the draft of these machines, and checks that the draft can be loaded from a file.
fn made(machines: &Machines, wanted: &Wanted) -> Draft {
    let draft = draft(machines, wanted).unwrap_or_else(|error| panic!("{error}"));
    std::fs::write(&wanted.output, &draft.text).unwrap();
    assert_eq!(crate::load(&wanted.output).unwrap(), draft.world);
    draft
}

fn image(text: &str, facts: ImageFacts) -> Machines {
    let image = crate::parse_image(Path::new("."), text).unwrap();
    Machines::Image { image, text: text.to_owned(), facts }
}

fn ready(world: &World, node: usize) -> Option<&Ready> {
    world.nodes[node].services[0].ready.as_ref()
}

fn tcp(port: u16) -> Ready {
    Ready::Tcp(Talk { tcp: port, send: String::new(), expect: String::new() })
}

#[test]
fn words_name_one_thing_or_are_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("server"), program(None, &[])).unwrap();
    std::fs::write(at("script"), "#!/bin/sh\n").unwrap();
    std::fs::create_dir_all(at("project/oci")).unwrap();
    std::fs::create_dir(at("empty")).unwrap();
    std::fs::write(at("project/compose.yml"), "").unwrap();
    std::fs::write(at("project/docker-compose.yaml"), "").unwrap();
    std::fs::write(at("project/oci/oci-layout"), "").unwrap();
    let of = |words: &str| Subject::of(words, folder.path());
    let name = |words: &str| Subject::Image(words.to_owned());
    assert_eq!(of("a.yaml").unwrap(), Subject::Compose(at("a.yaml")));
    assert_eq!(of("./project").unwrap(), Subject::Compose(at("./project/compose.yml")));
    for image in
        ["./project/oci", "redis:7", "docker://r/i", "oci:x", "library/redis", "i@sha256:0", "i.tar.gz"]
    {
        assert_eq!(of(image).unwrap(), name(image), "{image}");
    }
    assert_eq!(of("./server").unwrap(), Subject::Program(at("./server")));
    assert_eq!(of("redis-server").unwrap(), Subject::Package("redis-server".to_owned()));
    assert_eq!(of("memcached").unwrap(), Subject::Package("memcached".to_owned()));
    assert_eq!(of("libfoo++").unwrap(), Subject::Package("libfoo++".to_owned()));

    let wrong = |words: &str| with_causes(&of(words).unwrap_err());
    assert_eq!(
        wrong("server"),
        "\"server\" is a file here, and can be a Debian package; write ./server or --package server"
    );
    assert_eq!(
        wrong("redis"),
        "\"redis\" can be the container image or the Debian package redis-server; write --image redis or redis-server"
    );
    assert!(
        wrong("./script")
            .ends_with("not an ELF program; name a program, a compose file, or an archive of an image")
    );
    assert!(wrong("./nothing").ends_with("/nothing: no such file or folder"));
    assert!(wrong("./empty").ends_with("this folder has neither a compose file nor an OCI layout"));
    assert!(wrong("world.toml").starts_with("world.toml: init writes a world file"));
    for nothing in ["", "two words", "UPPER", "a\nb"] {
        assert!(matches!(of(nothing), Err(Error::Nothing(_))), "{nothing:?}");
    }
}

#[test]
fn each_well_known_server_gives_a_world_with_readiness_and_a_check() {
    let folder = folder();
    for server in servers::SERVERS {
        for package in server.packages {
            for nodes in [None, Some(3)] {
                let draft = made(&Machines::Package((*package).to_owned()), &wanted(&folder, nodes, None));
                let world = &draft.world;
                assert_eq!(world.nodes.len(), nodes.unwrap_or(1), "{package}");
                assert!(draft.notes.is_empty(), "{package}");
                assert!(!draft.text.contains(servers::NODES), "{package}");
                for (number, node) in world.nodes.iter().enumerate() {
                    assert_eq!(node.packages, [*package]);
                    assert!(ready(world, number).is_some(), "{package}");
                    let check = &world.workload.checks[number];
                    assert!(
                        matches!(&check.what, CheckKind::Talk(talk) if check.node == node.name && talk.tcp == server.port),
                        "{package}: {check:?}"
                    );
                }
                let kinds = world.faults.only.as_ref().unwrap();
                let has = |name: &str| kinds.iter().any(|kind| kind.name() == name);
                assert!(has("power_loss") && has("stalls"));
                assert_eq!(has("partition") && has("loss"), nodes.is_some(), "{package}");
                assert_eq!(has("disk_latency"), !world.nodes[0].disks.is_empty(), "{package}");
            }
        }
        for image_name in server.images {
            let draft = made(
                &image(&format!("r.example/{image_name}:1"), ImageFacts::default()),
                &wanted(&folder, None, None),
            );
            assert_eq!(draft.world.nodes[0].name, *image_name);
            assert!(ready(&draft.world, 0).is_some(), "{image_name}");
        }
    }
}

#[test]
fn members_of_an_etcd_cluster_know_each_other() {
    let folder = folder();
    let draft = made(&Machines::Package("etcd-server".to_owned()), &wanted(&folder, Some(2), None));
    let argv = &draft.world.nodes[1].services[0].command.argv;
    assert!(argv[2].contains("for name in etcd-server-1 etcd-server-2; do"), "{argv:?}");
}

#[test]
fn an_unknown_package_boots_and_is_said_to_be_unknown() {
    let folder = folder();
    let draft =
        made(&Machines::Package("beanstalkd=1.12-2".to_owned()), &wanted(&folder, Some(2), Some(11300)));
    assert_eq!(draft.world.nodes[1].name, "beanstalkd-2");
    assert!(draft.world.nodes[0].services.is_empty());
    assert!(
        draft.notes[0].starts_with("Everett does not know the server in beanstalkd=1.12-2"),
        "{:?}",
        draft.notes
    );
    let error = draft_error(&Machines::Package("a b".to_owned()), &wanted(&folder, None, None));
    assert_eq!(error, "\"a b\" is not the name of a Debian package");
}

#[test]
fn an_installed_package_starts_as_its_unit_says_and_keeps_its_folder_of_state() {
    let folder = folder();
    let installed = |unit: &str, found: Option<Listening>| {
        let unit = UnitFile::parse("pack.service", &format!("[Service]\nExecStart=/bin/x\n{unit}")).unwrap();
        let pack = Machines::Installed { package: "pack=1".to_owned(), unit: Box::new(unit), found };
        made(&pack, &wanted(&folder, Some(2), None))
    };
    let found = |everywhere| Some(Listening { port: 77, everywhere });
    let Draft { text, world, notes } =
        installed("User=u\nStateDirectory=pack\nRestart=always\n", found(true));
    assert!(notes.is_empty() && !text.contains("# disk"), "{text}");
    assert_eq!((ready(&world, 1), world.workload.checks.len()), (Some(&tcp(77)), 2));
    let disk = &world.nodes[1].disks[0];
    assert_eq!((disk.guest_path.as_str(), disk.owner.as_deref()), ("/var/lib/pack", Some("u")));

    let Draft { text, world, notes } = installed("Type=forking\n", found(false));
    assert!(world.nodes[1].disks.is_empty() && text.contains("\n# disk = "), "{text}");
    assert!(world.workload.checks.is_empty(), "other machines do not reach it");
    assert!(
        notes[0].contains("leaves the foreground") && notes[1].contains("of its own machine only"),
        "{notes:?}"
    );

    let Draft { world, notes, .. } = installed("", None);
    assert_eq!(ready(&world, 1), None);
    assert!(notes[0].starts_with("no TCP port was open in a trial boot"), "{notes:?}");
}

fn draft_error(machines: &Machines, wanted: &Wanted) -> String {
    with_causes(&draft(machines, wanted).unwrap_err())
}

#[test]
fn an_images_readiness_is_its_healthcheck_or_its_port() {
    let folder = folder();
    let facts = |ports: &[u16], has_healthcheck| ImageFacts { ports: ports.to_vec(), has_healthcheck };
    let draft = made(&image("r/app:1", facts(&[80, 8080], false)), &wanted(&folder, None, None));
    assert_eq!(ready(&draft.world, 0), Some(&tcp(80)));
    assert_eq!(draft.world.workload.checks.len(), 1);
    let draft = made(&image("r/app:1", facts(&[80], true)), &wanted(&folder, Some(2), None));
    assert_eq!(ready(&draft.world, 0), None);
    assert!(draft.world.nodes[0].services[0].image.as_ref().unwrap().healthcheck);
    assert_eq!(draft.world.workload.checks.len(), 2);
    let draft = made(&image("r/app:1", facts(&[80], true)), &wanted(&folder, None, Some(9)));
    assert_eq!(ready(&draft.world, 0), Some(&tcp(9)));
    let draft = made(&image("r/app:1", facts(&[], false)), &wanted(&folder, None, None));
    assert_eq!(ready(&draft.world, 0), None);
    assert!(draft.notes[0].starts_with("the image declares no port"), "{:?}", draft.notes);
    // The Redis is at an unusual port, so the check only connects to it.
    let draft = made(&image("redis:7", facts(&[7000], false)), &wanted(&folder, None, None));
    assert_eq!(ready(&draft.world, 0), Some(&tcp(7000)));
    let draft = made(&image("postgres", facts(&[5432], false)), &wanted(&folder, None, None));
    assert!(matches!(ready(&draft.world, 0), Some(Ready::Command(argv)) if argv[0] == "pg_isready"));
    assert_eq!(draft.world.nodes[0].services[0].command.env["POSTGRES_PASSWORD"], "everett");
}

#[test]
fn images_in_files_are_named_from_the_world_files_folder() {
    let (folder, other) = (folder(), self::folder());
    for place in [&folder, &other] {
        std::fs::create_dir(place.path().join("Box.1")).unwrap();
        std::fs::write(place.path().join("Box.1/oci-layout"), "").unwrap();
    }
    let of = |place: &TempDir, transport: &str, tag: &str| {
        let text = format!("{transport}{}{tag}", place.path().join("Box.1").display());
        made(&image(&text, ImageFacts::default()), &wanted(&folder, None, None))
    };
    let draft = of(&folder, "", "");
    assert!(draft.text.contains("image = \"./Box.1\"\n"), "{}", draft.text);
    assert_eq!(draft.world.nodes[0].name, "box");
    let draft = of(&folder, "oci:", ":a:2");
    assert!(draft.text.contains("image = \"oci:Box.1:a:2\"\n"), "{}", draft.text);
    assert!(of(&other, "", "").text.contains(&format!("image = \"{}/Box.1\"\n", other.path().display())));
}

#[test]
fn a_program_is_copied_into_its_machines() {
    let folder = folder();
    let path = folder.path().join("My Server\"\n#.x");
    let glibc = Some("/lib64/ld-linux-x86-64.so.2");
    std::fs::write(&path, program(glibc, &["libgcc_s.so.1", "libc.so.6", "lib\n.so"])).unwrap();
    let arguments = vec!["--name=\"a\nb\"".to_owned(), "''' # x".to_owned()];
    let server = Machines::Program { path: path.clone(), arguments: arguments.clone() };
    let draft = made(&server, &wanted(&folder, Some(2), Some(8080)));
    let node = &draft.world.nodes[1];
    assert_eq!(node.name, "my-server-x-2");
    assert_eq!(node.files[0].guest_path, "/opt/My Server\"\n#.x");
    assert_eq!(node.files[0].mode(), 0o755);
    assert_eq!(node.services[0].command.argv[1..], arguments);
    assert_eq!(node.services[0].ready, Some(tcp(8080)));
    assert_eq!(node.packages, ["libgcc-s1"]);
    assert_eq!(draft.notes, ["add the Debian packages of these libraries to packages: \"lib\\n.so\""]);
    std::fs::write(&path, program(Some("/lib/ld-musl-x86_64.so.1"), &[])).unwrap();
    assert_eq!(made(&server, &wanted(&folder, None, None)).world.nodes[0].packages, ["musl"]);
    std::fs::write(&path, program(None, &[])).unwrap();
    let draft = made(&server, &wanted(&folder, None, None));
    assert_eq!(ready(&draft.world, 0), None);
    assert!(draft.world.nodes[0].packages.is_empty() && draft.notes.is_empty());

    std::fs::write(&path, b"\x7fELF\x01\x01").unwrap();
    assert!(
        draft_error(&server, &wanted(&folder, None, None))
            .ends_with("another processor; machines are x86-64, 64 bits")
    );
    std::fs::File::create(&path).unwrap().set_len(crate::files::FILE_BYTES_MAX + 1).unwrap();
    assert!(draft_error(&server, &wanted(&folder, None, None)).contains("put it into a container image"));
}

#[test]
fn a_program_that_needs_a_newer_glibc_than_its_machines_have_is_named() {
    let folder = folder();
    let path = folder.path().join("server");
    let glibc = Some("/lib64/ld-linux-x86-64.so.2");
    let libraries = ["libstdc++.so.6", "libc.so.6"];
    let notes = |versions: &[(&str, &[&str])]| {
        std::fs::write(&path, program_of_versions(glibc, &libraries, versions)).unwrap();
        let server = Machines::Program { path: path.clone(), arguments: Vec::new() };
        made(&server, &wanted(&folder, None, None)).notes
    };
    let end = "and cannot start it; build it on bookworm or statically, or set a newer suite in [image]";
    // The newest version is chosen by number: 2.4 is older than 2.36.
    let newer: &[&str] = &["GLIBC_2.2.5", "GLIBC_2.38", "GLIBC_2.4"];
    assert_eq!(
        notes(&[("libc.so.6", newer)]),
        [format!("the program needs GLIBC_2.38, but machines of suite bookworm have glibc 2.36 {end}")]
    );
    let old: &[&str] = &["GLIBC_2.36", "GLIBC_2.4", "GLIBC_ABI_DT_RELR", "GLIBC_PRIVATE"];
    assert_eq!(
        notes(&[("libc.so.6", old), ("libstdc++.so.6", &["GLIBCXX_3.4.31", "CXXABI_1.3.13"])]),
        [format!(
            "the program needs GLIBCXX_3.4.31, but machines of suite bookworm have the libstdc++ of GCC 12 {end}"
        )]
    );
    assert!(notes(&[("libc.so.6", old), ("libstdc++.so.6", &["GLIBCXX_3.4.30"])]).is_empty());
}

const COMPOSE: &str = r#"
services:
  web:
    image: "r.example/shop:1"
    ports: ["8080:80/tcp", "53:53/udp"]
    deploy: { replicas: 2 }
  db:
    image: postgres:15
    healthcheck: { test: [CMD, pg_isready] }
  cache:
    image: redis:7
    command: redis-server --save ""
  client:
    image: redis:7
    command: redis-cli ping
  admin:
    image: "r.example/admin"
    expose: [9000]
    ports: [{ target: 9001, protocol: udp }]
  migrate:
    image: postgres:15
  app:
    image: "r.example/app"
    depends_on: { migrate: { condition: service_completed_successfully } }
"#;

#[test]
fn a_compose_file_gets_the_readiness_that_it_lacks() {
    let folder = folder();
    let file = folder.path().join("compose \"é\n.yaml");
    std::fs::write(&file, COMPOSE).unwrap();
    let draft = made(&Machines::Compose(file.clone()), &wanted(&folder, None, None));
    let ready = |name: &str| draft.world.node(name).unwrap().services[0].ready.clone();
    assert_eq!(ready("web-1"), Some(tcp(80)));
    assert_eq!(ready("web-2"), Some(tcp(80)));
    assert_eq!(ready("db"), Some(Ready::Command(vec!["pg_isready".to_owned()])));
    assert!(matches!(ready("cache"), Some(Ready::Tcp(talk)) if talk.expect == "+PONG"));
    assert_eq!(ready("client"), None);
    assert_eq!(ready("admin"), Some(tcp(9000)));
    assert_eq!(ready("migrate"), None);
    let checked: Vec<&str> = draft.world.workload.checks.iter().map(|check| check.node.as_str()).collect();
    assert_eq!(checked, ["web-1", "web-2"], "only published ports are asked from outside");
    assert_eq!(
        draft.notes,
        [
            "these services count as ready when they have started, unless their images have a healthcheck: client, app"
        ]
    );

    let compose = Machines::Compose(file.clone());
    assert!(draft_error(&compose, &wanted(&folder, Some(2), None)).starts_with("--nodes: "));
    assert!(draft_error(&compose, &wanted(&folder, None, Some(2))).starts_with("--port: "));
    std::fs::write(&file, format!("{COMPOSE}x-everett: {{ seed: 1 }}\n")).unwrap();
    assert!(draft_error(&compose, &wanted(&folder, None, None)).contains("x-everett says already"));
    std::fs::write(&file, "services:\n  a: { imag: i }\n").unwrap();
    assert!(draft_error(&compose, &wanted(&folder, None, None)).contains(":2: services.a.imag: unknown key"));
}

#[test]
fn readiness_in_a_world_file_is_of_machines_that_exist_and_stay() {
    let folder = folder();
    std::fs::write(folder.path().join("compose.yaml"), COMPOSE).unwrap();
    let file = folder.path().join("world.toml");
    let wrong = |lines: &str| {
        let text = format!("compose = \"compose.yaml\"\n[ready]\n{lines}\n");
        let error = crate::parse(&text, &file).unwrap_err();
        format!("{:?} {}: {}", error.line, error.key, error.what)
    };
    assert_eq!(wrong("web = { tcp = 1 }"), "Some(3) ready.\"web\": there is no machine \"web\"");
    assert!(wrong("migrate = { tcp = 1 }").contains("does its work once"));
    assert!(wrong("app = { tcp = 0 }").contains("a TCP port is between 1 and 65535"));
    let error = crate::parse("[[node]]\nname = \"a\"\n[ready]\n", &file).unwrap_err();
    assert!(error.what.starts_with("unknown key"), "{error}");
}

#[test]
fn any_text_becomes_a_string_of_toml_and_any_name_a_host_name() {
    use proptest::prelude::*;
    proptest!(|(value in any::<String>())| {
        let line = format!("a = {}", text::quoted(&value));
        prop_assert_eq!(line.lines().count(), 1);
        let table: toml::Table = toml::from_str(&line).unwrap();
        prop_assert_eq!(table["a"].as_str(), Some(value.as_str()));
        let world = format!("[[node]]\nname = \"{}-64\"\n", text::label(&value));
        prop_assert!(crate::parse(&world, Path::new("w.toml")).is_ok(), "{}", world);
    });
}
