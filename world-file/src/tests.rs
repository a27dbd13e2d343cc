//! Tests of valid and invalid world files.

use std::path::Path;

use everett_vmm::disk::SectorSize;
use everett_vmm::virtio::blk::Latency;

use super::*;

const GOOD: &str = r#"
epoch = "2026-01-01T00:00:00Z"
cpu = "v2"
clock = "insn"
seed = 7
boot_seed = 3
[image]
suite = "bookworm"
packages = ["ca-certificates", "adduser"]
cmdline = "quiet"
[[node]]
name = "a"
memory = "128M"
packages = ["redis-server"]
disk = { path = "/var/lib/redis/", size = "256M" }
[[node.service]]
argv = ["/usr/bin/redis-server", "--port", "6379"]
env = { LANG = "C.UTF-8" }
cwd = "/tmp"
ready = { tcp = 6379 }
ready_timeout = "30s"
[[workload.driver]]
name = "load"
argv = ["redis-benchmark"]
repeat = true
[[workload.check]]
name = "alive"
node = "a"
argv = ["redis-cli", "ping"]
"#;

fn read_text(text: &str) -> Result<World, Error> {
    parse(text, Path::new("w.toml"))
}

/// Returns the error, which is one line, of a minimal world that has `lines` in its node.
fn node_error(lines: &str) -> String {
    read_text(&format!("[[node]]\nname = \"a\"\n{lines}\n")).unwrap_err().to_string()
}

#[test]
fn a_full_world() {
    let world = read_text(GOOD).unwrap();
    assert_eq!(world.epoch_unix_s, 1_767_225_600);
    assert_eq!((world.seed, world.boot_seed), (Some(Seed::new(7)), BootSeed::new(3)));
    assert_eq!(world.image.cmdline, "quiet");
    let Root::Packages { suite, packages } = &world.image.root else { panic!("{:?}", world.image.root) };
    assert_eq!((suite.as_str(), packages.len()), ("bookworm", 2));
    let node = world.node("a").unwrap();
    assert_eq!(node.memory_bytes, 128 << 20);
    assert_eq!(
        node.disks,
        [DataDisk {
            guest_path: "/var/lib/redis".to_owned(),
            size_bytes: 256 << 20,
            owner: None,
            filesystem: Filesystem::Ext4,
            sector: SectorSize::Bytes4096,
            latency: Latency::default(),
        }]
    );
    let service = &node.services[0];
    assert_eq!(service.name, "redis-server");
    let talk = Talk { tcp: 6379, send: String::new(), expect: String::new() };
    assert_eq!(service.ready, Some(Ready::Tcp(talk)));
    assert_eq!(service.ready_timeout_ns, 30_000_000_000);
    assert_eq!(service.command.env["LANG"], "C.UTF-8");
    assert!(world.workload.drivers[0].repeat);
    assert_eq!(world.workload.drivers[0].node, "a");
    assert_eq!(world.workload.checks[0].name, "alive");
}

#[test]
fn a_cpu_model_is_a_level_with_extras() {
    let cpu =
        |text: &str| read_text(&format!("cpu = \"{text}\"\n[[node]]\nname = \"a\"\n")).map(|world| world.cpu);
    assert_eq!(read_text("[[node]]\nname = \"a\"\n").unwrap().cpu, CpuModel::V2);
    for name in ["v2", "v2+aes", "v3", "v3+aes+sha"] {
        let model = cpu(name).unwrap();
        assert_eq!(model.to_string(), name);
        assert_eq!(serde_json::to_string(&model).unwrap(), format!("\"{name}\""));
    }
    assert_eq!(
        cpu("v4").unwrap_err().to_string(),
        "w.toml:1: cpu: the CPU model \"v4\" does not exist: a CPU model is v2 or v3, and may add +aes and +sha, e.g. v3+aes+sha"
    );
}

#[test]
fn a_check_is_a_command_or_a_talk() {
    let check = |text: &str| {
        read_text(&format!("[[node]]\nname = \"a\"\n[[workload.check]]\nname = \"c\"\n{text}\n"))
            .map(|world| world.workload.checks[0].what.clone())
            .map_err(|error| error.to_string())
    };
    let talk = |tcp, send: &str, expect: &str| {
        Ok(CheckKind::Talk(Talk { tcp, send: send.to_owned(), expect: expect.to_owned() }))
    };
    assert_eq!(check("tcp = 80"), talk(80, "", ""));
    assert_eq!(check("tcp = 80\nsend = \"a\\r\\n\"\nexpect = \"b\""), talk(80, "a\r\n", "b"));
    assert!(matches!(check("argv = [\"true\"]"), Ok(CheckKind::Command(_))));
    let refused = |text: &str| check(text).unwrap_err();
    assert_eq!(refused("tcp = 0"), "w.toml:5: workload.check[0].tcp: a TCP port is between 1 and 65535");
    assert_eq!(
        refused("tcp = 80\nargv = [\"true\"]"),
        "w.toml:6: workload.check[0].argv: \"argv\" is for a command on the node, \"tcp\" for a check from outside"
    );
    assert_eq!(
        refused("send = \"x\"\nargv = [\"true\"]"),
        "w.toml:5: workload.check[0].send: \"send\" needs \"tcp\", the node's port"
    );
    assert!(refused(&format!("tcp = 80\nsend = \"{}\"", "x".repeat(20_000))).contains("at most 16384"));
    assert_eq!(refused(""), "w.toml:3: workload.check[0]: \"argv\" is missing");
}

#[test]
fn a_template_is_a_folder_of_the_guests() {
    let template = |template: &str| {
        read_text(&format!("[workload]\ntemplate = \"{template}\"\n[[node]]\nname = \"a\"\n"))
            .map(|world| world.workload.template)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        template("/opt//antithesis/./test/v1/main/"),
        Ok(Some("/opt/antithesis/test/v1/main".to_owned()))
    );
    for (wrong, why) in [
        ("main", "\"main\" is not an absolute path in the guest"),
        ("/a/../b", "\"/a/../b\" contains \"..\""),
        ("/proc/a", "\"/proc/a\" lies in /proc, which the guest's kernel provides"),
    ] {
        assert_eq!(template(wrong), Err(format!("w.toml:2: workload.template: {why}")));
    }
}

#[test]
fn a_small_world_has_defaults() {
    let world = read_text("[[node]]\nname = \"a\"\nservice = [\"sleep\", \"1\"]\n").unwrap();
    assert_eq!(world.nodes[0].memory_bytes, node::MEMORY_BYTES_DEFAULT);
    assert_eq!(world.nodes[0].services[0].name, "sleep");
    assert_eq!(world.clock, Clock::Insn);
    assert_eq!((world.seed, world.boot_seed), (None, BootSeed::new(0)));
}

#[test]
fn a_disk_with_all_settings() {
    let disk =
        r#"disk = { path = "/d", size = "300M", fs = "xfs", sector = "4K", write = "30us", flush = "5ms" }"#;
    let world = read_text(&format!("[[node]]\nname = \"a\"\n{disk}\n")).unwrap();
    let disk = &world.nodes[0].disks[0];
    assert_eq!((disk.filesystem, disk.sector), (Filesystem::Xfs, SectorSize::Bytes4096));
    let latency = Latency { write_ns: 30_000, flush_ns: 5_000_000, ..Latency::default() };
    assert_eq!(disk.latency, latency);
    assert_eq!(world.filesystems().collect::<Vec<_>>(), [Filesystem::Xfs]);
}

#[test]
fn errors_name_file_line_and_key() {
    assert_eq!(
        node_error("memroy = \"128M\""),
        "w.toml:3: node[0].memroy: unknown key; did you mean \"memory\"?"
    );
    assert_eq!(
        node_error("memory = \"128Q\""),
        "w.toml:3: node[0].memory: \"128Q\" has the unknown unit \"Q\"; the units are B, K, M, G, T"
    );
    for (line, what) in [
        ("memory = 128", "node[0].memory: 128 needs a unit, e.g. \"128M\""),
        ("memory = true", "node[0].memory: expected a string, found a boolean"),
        ("disk = { path = \"/d\", size = 64 }", "node[0].disk.size: 64 needs a unit, e.g. \"64M\""),
        ("[[link]]\nlatency = 1.5", "link[0].latency: 1.5 needs a unit, e.g. \"1.5s\""),
        ("[workload]\nsettle = 2", "workload.settle: 2 needs a unit, e.g. \"2s\""),
        ("[faults.loss]\nevery = 1", "faults.loss.every: 1 needs a unit, e.g. \"1s\""),
        ("[explore]\nlog = 64", "explore.log: 64 needs a unit, e.g. \"64M\""),
    ] {
        let error = node_error(line);
        assert_eq!(error.split_once(": ").unwrap().1, what);
    }
    assert_eq!(
        node_error("[[node]]\nname = \"a\""),
        "w.toml:4: node[1].name: node[0] is already named \"a\""
    );
    assert_eq!(node_error("[[node]]\n"), "w.toml:3: node[1]: \"name\" is missing");
    assert_eq!(
        node_error("[faults]\nloss = 1"),
        "w.toml:4: faults.loss: invalid type: integer `1`, expected a table"
    );
    let unknown = node_error("[faults.pause]\nevery = \"2s\"\nevrey = \"1s\"");
    assert!(unknown.starts_with("w.toml:5: faults.pause.evrey: unknown field `evrey`"), "{unknown}");
    assert_eq!(
        node_error("[explore]\nsegment = \"1ms\""),
        "w.toml:3: explore: segment: must be from 100ms to 3600s, in whole steps of 20ms"
    );
    assert_eq!(node_error("[[property]]\nnever = \"x\""), "w.toml:3: property[0]: missing field `name`");
    let model = node_error("[workload.history]\nmodel = \"stack\"");
    assert!(model.starts_with("w.toml:4: workload.history.model: unknown variant `stack`"), "{model}");
    assert_eq!(
        node_error("files = { \"/etc/x\" = \"../secret\" }"),
        "w.toml:3: node[0].files.\"/etc/x\": \"../secret\" contains \"..\" or leaves the file's folder; a world file can name absolute paths"
    );
    assert_eq!(
        node_error("files = { \"/etc/x\" = \"no-such-file\" }"),
        "w.toml:3: node[0].files.\"/etc/x\": ./no-such-file: no such file or folder"
    );
    assert_eq!(read_text("").unwrap_err().to_string(), "w.toml:1: a world needs at least one [[node]]");
    assert_eq!(read_text("clock = \"exit\"\n[[node]]\nname = \"a\"\n").unwrap().clock, Clock::Exit);
    assert_eq!(read_text("clock = \"branch\"\n[[node]]\nname = \"a\"\n").unwrap().clock, Clock::Branch);
    for mode in ["branches", "wall"] {
        assert_eq!(read_text(&format!("clock = \"{mode}\"")).unwrap_err().key, "clock");
    }
    assert_eq!(read_text("\n\nx = = 1").unwrap_err().line, Some(3));
    assert_eq!(read_text("seed = 1\nseed = 2").unwrap_err().line, Some(2));
}

#[test]
fn bad_values_are_refused() {
    for lines in [
        "memory = \"16M\"",
        "memory = \"4G\"",
        "memory = \"33000001B\"",
        "packages = [\"Bad Name\"]",
        "packages = [\"-o\"]",
        "packages = \"redis\"",
        "disk = { path = \"/\", size = \"64M\" }",
        "disk = { path = \"/data\" }",
        "disk = { path = \"/data\", size = \"299M\", fs = \"xfs\" }",
        "disk = { path = \"/data\", size = \"64M\", fs = \"vfat\" }",
        "disk = { path = \"/data\", size = \"64M\", sector = \"1K\" }",
        "disk = { path = \"/data\", size = \"64M\", flush = \"11s\" }",
        "disk = { path = \"/data\", size = \"1K\" }",
        "files = { \"relative\" = \"Cargo.toml\" }",
        "files = { \"/proc/x\" = \"Cargo.toml\" }",
        "files = { \"/a/../b\" = \"Cargo.toml\" }",
        "service = []",
        "service = [\"\"]",
        "service = [\"a\\u0000b\"]",
        "service = [{ argv = [\"x\"], ready = {} }]",
        "service = [{ argv = [\"x\"], ready = { tcp = 0 } }]",
        "service = [{ argv = [\"x\"], ready = { tcp = 70000 } }]",
        "service = [{ argv = [\"x\"], ready = { tcp = 80, send = \"x\" } }]",
        "service = [{ argv = [\"x\"], ready = { command = [\"y\"], expect = \"x\" } }]",
        "service = [{ argv = [\"x\"], ready = { send = \"x\", expect = \"y\" } }]",
        "service = [{ argv = [\"x\"] }, { argv = [\"/bin/x\"] }]",
        "service = [{ argv = [\"x\"], env = { \"A=B\" = \"1\" } }]",
        "[workload]\ndriver = [{ name = \"x\", argv = [\"y\"], node = \"b\" }]",
        "[workload]\ndriver = [{ argv = [\"y\"] }]",
        "[workload]\ndriver = [{ name = \"x\", argv = [\"y\"] }, { name = \"x\", argv = [\"y\"] }]",
        "[image]\nrootfs = \"src\"\nsuite = \"bookworm\"",
        "[image]\nsuite = \"../x\"",
        "[image]\ncmdline = \"a\\nb\"",
        "[image]\nkernel = \"src\"",
    ] {
        let text = format!("[[node]]\nname = \"a\"\n{lines}\n");
        let error = read_text(&text).expect_err(lines).to_string();
        assert!(!error.contains('\n') && error.starts_with("w.toml:"), "{error}");
    }
    for name in ["", "A", "-a", "a-", "a.b", "localhost", "a b"] {
        assert!(read_text(&format!("[[node]]\nname = \"{name}\"\n")).is_err(), "{name}");
    }
}

#[test]
fn a_symbolic_link_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    std::fs::write(folder.path().join("inside"), "x").unwrap();
    let file = folder.path().join("w.toml");
    let world = |name: &str| format!("[[node]]\nname = \"a\"\nfiles = {{ \"/etc/x\" = \"{name}\" }}\n");
    assert!(parse(&world("inside"), &file).is_ok());
    assert!(parse(&world("link"), &file).unwrap_err().what.contains("leaves the file's folder"));
}

#[test]
fn the_first_bytes_decide_whether_a_file_is_a_program() {
    let mode = |content: &[u8]| FileEntry::of_root("/f".to_owned(), content.into()).mode();
    assert_eq!((mode(b"#!/bin/sh\n"), mode(b"#!"), mode(b"\x7fELF\x02")), (0o755, 0o755, 0o755));
    for content in [&b""[..], b"#", b"# !", b" #!/bin/sh", b"\n#!/bin/sh", b"\x7fEL", b"echo"] {
        assert_eq!(mode(content), 0o644, "{content:?}");
    }
}

#[test]
fn a_service_is_ready_when_it_answers() {
    let ready = |text: &str| {
        let text =
            format!("[[node]]\nname = \"a\"\nservice = [{{ argv = [\"x\"], ready = {{ {text} }} }}]\n");
        read_text(&text).map(|world| world.nodes[0].services[0].ready.clone()).map_err(|error| error.what)
    };
    let talk = Talk { tcp: 6379, send: "PING\r\n".to_owned(), expect: "+PONG".to_owned() };
    let answers = "tcp = 6379, send = \"PING\\r\\n\", expect = \"+PONG\"";
    assert_eq!(ready(answers), Ok(Some(Ready::Tcp(talk))));
    assert!(ready("tcp = 25, expect = \"220\"").is_ok(), "the server speaks first");
    let refused = ready("tcp = 80, send = \"x\"").unwrap_err();
    assert_eq!(
        refused,
        "\"send\" needs \"expect\"; without \"expect\" nothing is sent, and an open port is enough"
    );
    let long = "x".repeat((16 << 10) + 1);
    assert!(ready(&format!("tcp = 80, expect = \"{long}\"")).unwrap_err().contains("at most 16384"));
}

#[test]
fn a_file_can_have_an_owner_and_a_mode() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s"), "x").unwrap();
    let entry = |value: &str| {
        let text = format!("[[node]]\nname = \"a\"\nfiles = {{ \"/s\" = {value} }}\n");
        let world = parse(&text, &folder.path().join("w.toml")).map_err(|error| error.to_string())?;
        let file = &world.nodes[0].files[0];
        Ok::<_, String>((file.agent_owner(), format!("{:04o}", file.mode())))
    };
    let file = |owner: Option<&str>, mode: &str| Ok((owner.map(str::to_owned), mode.to_owned()));
    assert_eq!(entry("\"s\""), file(None, "0644"));
    assert_eq!(entry("{ from = \"s\" }"), file(None, "0644"));
    assert_eq!(entry("{ from = \"s\", owner = \"b\", mode = \"400\" }"), file(Some("b"), "0400"));
    assert_eq!(entry("{ from = \"s\", owner = \"b\", group = \"c\" }"), file(Some("b:c"), "0644"));
    assert_eq!(entry("{ from = \"s\", group = \"c\", mode = \"4750\" }"), file(Some("root:c"), "4750"));
    let refused = |value: &str| {
        let error = entry(value).unwrap_err();
        error.split_once("w.toml:3: ").unwrap().1.to_owned()
    };
    for mode in ["", "0999", "00400", "u=r", "+400"] {
        assert_eq!(
            refused(&format!("{{ from = \"s\", mode = \"{mode}\" }}")),
            format!(
                "node[0].files.\"/s\".mode: \"{mode}\" is not a mode of up to four octal digits, such as \"0400\""
            )
        );
    }
    assert_eq!(
        refused("{ from = \"s\", mode = 400 }"),
        "node[0].files.\"/s\".mode: expected a string, found an integer; write the mode as a string, such as \"0400\""
    );
    assert_eq!(refused("{ owner = \"b\" }"), "node[0].files.\"/s\": \"from\" is missing");
    assert!(refused("{ from = \"s\", owner = \"a b\" }").contains("is not the name of a user"));
    assert!(refused("{ from = \"no\" }").contains("no such file"));
    assert!(refused("{ form = \"s\" }").contains("did you mean \"from\"?"));
}

#[test]
fn mode_bits_on_the_host_have_no_effect() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let text = "[[node]]\nname = \"a\"\nfiles = { \"/f\" = \"f\" }\n";
    let mode = |content: &str, on_host| {
        std::fs::write(folder.path().join("f"), content).unwrap();
        let permissions = std::fs::Permissions::from_mode(on_host);
        std::fs::set_permissions(folder.path().join("f"), permissions).unwrap();
        parse(text, &folder.path().join("w.toml")).unwrap().nodes[0].files[0].mode()
    };
    assert_eq!((mode("echo\n", 0o600), mode("echo\n", 0o755)), (0o644, 0o644));
    assert_eq!((mode("#!/bin/sh\n", 0o600), mode("#!/bin/sh\n", 0o755)), (0o755, 0o755));
}

#[test]
fn unreadable_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.toml");
    assert!(load(&file).unwrap_err().what.contains("no such file"));
    assert!(load(folder.path()).unwrap_err().what.contains("folder"));
    std::fs::write(&file, b"a = 1\n\xff\xfe").unwrap();
    assert_eq!(load(&file).unwrap_err().line, Some(2));
    std::fs::write(&file, vec![b'#'; FILE_BYTES_MAX as usize + 1]).unwrap();
    assert!(load(&file).unwrap_err().what.contains("at most"));
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_world_or_a_one_line_error(text in "\\PC{0,200}") {
        if let Err(error) = read_text(&text) {
            proptest::prop_assert!(!error.to_string().contains('\n'));
        }
    }

    /// Replaces a range of a valid world file, because the result passes the syntax check more often than random text.
    #[test]
    fn any_change_gives_a_world_or_a_one_line_error(
        from in 0..GOOD.len(), length in 0usize..40, text in "[a-z0-9\"= \\[\\]{}.,\\n/-]{0,20}"
    ) {
        let to = (from + length).min(GOOD.len());
        let changed = format!("{}{text}{}", &GOOD[..from], &GOOD[to..]);
        if let Err(error) = read_text(&changed) {
            proptest::prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

/// Reads the first node of a world whose file contains `lines` in this node. The world's folder contains an archive, an
/// OCI layout and a text file.
fn image_node(lines: &str) -> Result<Node, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("layout")).unwrap();
    for file in ["a.tar", "layout/oci-layout"] {
        std::fs::write(folder.path().join(file), "x").unwrap();
    }
    let world = parse(&format!("[[node]]\nname = \"a\"\n{lines}\n"), &folder.path().join("w.toml"));
    world.map(|mut world| world.nodes.remove(0)).map_err(|error| error.what)
}

#[test]
fn images_are_named_by_path_or_transport() {
    let image = |text: &str| image_node(&format!("image = \"{text}\"")).map(|node| node.image.unwrap());
    let ends = |path: &Path, name: &str, tag: &Option<String>, wanted: Option<&str>| {
        path.ends_with(name) && tag.as_deref() == wanted
    };
    for (text, tag) in [
        ("a.tar", None),
        ("./a.tar", None),
        ("docker-archive:a.tar", None),
        ("oci-archive:a.tar:x/y:7", Some("x/y:7")),
    ] {
        let ImageOrigin::Archive { path, tag: found } = image(text).unwrap() else { panic!("{text}") };
        assert!(ends(&path, "a.tar", &found, tag), "{text}");
    }
    for (text, tag) in [("layout", None), ("oci:layout", None), ("oci:layout:latest", Some("latest"))] {
        let ImageOrigin::Layout { path, tag: found } = image(text).unwrap() else { panic!("{text}") };
        assert!(ends(&path, "layout", &found, tag), "{text}");
    }
    assert_eq!(image("docker-daemon:redis:7"), Ok(ImageOrigin::Docker("redis:7".to_owned())));
    assert_eq!(
        image("containers-storage:localhost/x@sha256:00"),
        Ok(ImageOrigin::Podman("localhost/x@sha256:00".to_owned()))
    );
    let registry = "docker://quay.io/x/y:1";
    assert_eq!(image(registry), Ok(ImageOrigin::Registry("quay.io/x/y:1".to_owned())));
    for name in ["redis", "redis:7", "x/y", "localhost:5000/x/y:1"] {
        assert_eq!(image(name), Ok(ImageOrigin::Named(name.to_owned())));
    }
    let error = |text: &str| image(text).unwrap_err();
    assert!(error("b.tar").contains("no such file"));
    assert!(error("oci:a.tar").contains("is not an OCI layout"), "{}", error("oci:a.tar"));
    assert!(error("oci-archive:layout").contains("is not a file"));
    assert!(error("../a.tar").contains("leaves the file's folder"));
    assert!(error("").contains("an image has a path or a name"));
    for name in ["docker-daemon:", "docker-daemon:--all", "containers-storage:a b", "oci:layout:-x"] {
        assert!(error(name).contains("is not the name of an image"), "{name}");
    }
}

#[test]
fn a_node_with_an_image_runs_the_images_command_unless_it_has_services() {
    let node = |lines: &str| image_node(&format!("image = \"a.tar\"\n{lines}"));
    let plain = node("").unwrap();
    assert_eq!(plain.services.len(), 1);
    assert_eq!(
        (plain.services[0].name.as_str(), &plain.services[0].image),
        ("a", &Some(ImageProcess::default()))
    );
    assert_eq!(plain.volumes_bytes, Some(1 << 30));
    assert!(node("service = []").unwrap().services.is_empty());
    let own = node("service = [\"/bin/x\"]").unwrap();
    assert_eq!((own.services[0].name.as_str(), &own.services[0].image), ("x", &None));
    let both = node("volumes = \"64M\"\n[[node.service]]\ncommand = [\"c\"]\nhealthcheck = false\n").unwrap();
    let image = ImageProcess { entrypoint: None, command: Some(vec!["c".to_owned()]), healthcheck: false };
    assert_eq!((&both.services[0].image, both.volumes_bytes), (&Some(image), Some(64 << 20)));
    let with_user = node("[[node.service]]\nuser = \"1000:app\"\n").unwrap();
    assert_eq!(with_user.services[0].command.user.as_deref(), Some("1000:app"));
    let error = |lines: &str| node(lines).unwrap_err();
    assert!(error("[[node.service]]\nuser = \"a:b:c\"\n").contains("neither a user nor"));
    assert!(error("packages = [\"redis-server\"]").contains("cannot be added to a container image"));
    assert!(error("volumes = \"1M\"").contains("between 8M and 64G"));
    assert!(error("[[node.service]]\nargv = [\"x\"]\ncommand = [\"c\"]").contains("no effect with argv"));
    assert!(image_node("volumes = \"1G\"").unwrap_err().contains("no effect without image"));
    assert!(image_node("[[node.service]]\ncommand = [\"c\"]").unwrap_err().contains("unknown key"));
}
