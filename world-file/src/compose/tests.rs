//! Tests of valid, invalid and hostile compose files.

use std::fs;
use std::path::Path;

use super::*;
use crate::composed::{HostOf, Ulimit};
use crate::{Node, Ready, Restart};

/// A temporary folder for the files of a project.
pub(super) struct Project(pub(super) tempfile::TempDir);

impl Project {
    pub(super) fn new() -> Project {
        Project(tempfile::tempdir().unwrap())
    }

    pub(super) fn write(&self, path: &str, text: &str) -> &Project {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn read_with(&self, text: &str, process: &dyn Fn(&str) -> Option<String>) -> Result<World, String> {
        let file = self.0.path().join("compose.yaml");
        parse(&[Text { file: &file, text }], process).map_err(|error| {
            let error = error.to_string();
            assert!(!error.contains('\n'), "{error}");
            error.replace(&format!("{}/", self.0.path().display()), "")
        })
    }

    pub(super) fn read(&self, text: &str) -> Result<World, String> {
        self.read_with(text, &|_| None)
    }

    pub(super) fn world(&self, text: &str) -> World {
        self.read(text).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn world(text: &str) -> World {
    Project::new().world(text)
}

fn error(text: &str) -> String {
    Project::new().read(text).expect_err(text)
}

/// Returns the world whose only service has these lines.
fn service(lines: &str) -> World {
    world(&format!("services:\n  a:\n    image: i\n{lines}"))
}

fn service_error(lines: &str) -> String {
    error(&format!("services:\n  a:\n    image: i\n{lines}"))
}

const WHOLE: &str = r#"
name: shop
x-common: &common
  restart: unless-stopped
  environment: &env
    LOG: info
services:
  web:
    <<: *common
    image: "web:${TAG:-1}"
    command: serve --name "two words"
    environment:
      <<: *env
      PORT: 80
      PASSED:
    ports: ["8080:80"]
    depends_on:
      db: { condition: service_healthy }
      migrate: { condition: service_completed_successfully }
    networks:
      front:
      back: { aliases: [api] }
    user: "1000:1000"
    working_dir: /srv/
    mem_limit: 100m
    ulimits:
      nofile: { soft: 10, hard: 20 }
      core: -1
    sysctls: [net.core.somaxconn=1024]
    cap_add: [CAP_NET_ADMIN]
    extra_hosts: ["other=192.0.2.1"]
  migrate:
    image: web:1
    depends_on: [db]
    networks: [back]
  db:
    image: db:1
    container_name: database
    volumes: ["data:/var/lib/db", "/anonymous"]
    tmpfs: /tmp:size=64m
    networks: [back]
    healthcheck:
      test: [CMD-SHELL, "ready | grep yes"]
      interval: 10s
      timeout: 5s
      retries: 5
      start_period: 1m
  proxy_1:
    image: proxy
    deploy: { replicas: 2 }
    networks: [front]
volumes:
  data:
networks:
  front: {}
  back:
"#;

#[test]
fn a_whole_file() {
    let project = Project::new();
    let process = |name: &str| (name == "PASSED").then(|| "here".to_owned());
    let world = project.read_with(WHOLE, &process).unwrap();
    let names: Vec<&str> = world.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["web", "migrate", "db", "proxy-1-1", "proxy-1-2"]);
    let web = &world.nodes[0];
    let process = &web.services[0];
    assert_eq!(web.image, Some(ImageOrigin::Named("web:1".to_owned())));
    let image = process.image.as_ref().unwrap();
    assert_eq!(image.command.as_deref(), Some(&["serve", "--name", "two words"].map(str::to_owned)[..]));
    let env: Vec<(&str, &str)> =
        process.command.env.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(env, [("LOG", "info"), ("PASSED", "here"), ("PORT", "80")]);
    assert_eq!(process.restart, Restart::Always);
    assert_eq!(process.command.user.as_deref(), Some("1000:1000"));
    assert_eq!(process.command.cwd.as_deref(), Some("/srv"));
    assert_eq!(web.memory_bytes, (100 + 96) << 20);
    let composed = web.composed.as_ref().unwrap();
    assert_eq!(composed.ulimits["nofile"], Ulimit { soft: Some(10), hard: Some(20) });
    assert_eq!(composed.ulimits["core"], Ulimit { soft: None, hard: None });
    assert_eq!(composed.sysctls["net.core.somaxconn"], "1024");
    assert_eq!(composed.cap_add, ["NET_ADMIN"]);
    let after: Vec<(&str, bool)> = composed.after.iter().map(|one| (one.node.as_str(), one.ready)).collect();
    assert_eq!(after, [("db", true), ("migrate", true)]);
    assert!(world.nodes[1].services[0].is_job && !process.is_job);
    let db = &world.nodes[2];
    assert_eq!(
        db.services[0].ready,
        Some(Ready::Command(["/bin/sh", "-c", "ready | grep yes"].map(str::to_owned).to_vec()))
    );
    assert_eq!(db.services[0].ready_timeout_ns, (60 + 5 * 15) * 1_000_000_000);
    let composed = db.composed.as_ref().unwrap();
    assert_eq!(composed.volumes, ["/var/lib/db", "/anonymous"]);
    assert_eq!((composed.tmpfs[0].path.as_str(), composed.tmpfs[0].options.as_str()), ("/tmp", "size=64m"));
    assert_eq!(
        hosts(web),
        "web|web api;migrate|migrate;db|db database;proxy-1-1|proxy-1-1 proxy_1;proxy-1-2|proxy-1-2 proxy_1;192.0.2.1|other"
    );
    assert_eq!(hosts(db), "web|web api;migrate|migrate;db|db database");
    assert_eq!(hosts(&world.nodes[3]), "web|web;proxy-1-1|proxy-1-1 proxy_1;proxy-1-2|proxy-1-2 proxy_1");
    let apart: Vec<String> = world.links.apart.iter().map(|(a, b)| format!("{a} {b}")).collect();
    assert_eq!(apart, ["migrate proxy-1-1", "migrate proxy-1-2", "db proxy-1-1", "db proxy-1-2"]);
    assert_eq!(world.notes.len(), 1);
    assert!(world.notes[0].ends_with(
        "no effect: ports (nothing listens on the host; machines reach each other at every port)"
    ));
}

fn hosts(node: &Node) -> String {
    let hosts = &node.composed.as_ref().unwrap().hosts;
    let line = |host: &crate::HostNames| {
        let of = match &host.of {
            HostOf::Node(name) => name.clone(),
            HostOf::Address(address) => address.to_string(),
        };
        format!("{of}|{}", host.names.join(" "))
    };
    hosts.iter().map(line).collect::<Vec<_>>().join(";")
}

#[test]
fn the_block_says_what_a_world_file_says() {
    let text = "services:\n  a: { image: i, environment: { X: 1 }, user: app }\n  b: { image: i }\nx-everett:\n  \
                epoch: 2026-02-01T00:00:00Z\n  images: { i: \"docker://r/i:1\" }\n  link:\n    - latency: 1ms\n  \
                workload:\n    settle: 3s\n    driver:\n      - { name: load, node: a, argv: [load, \"1\"], \
                repeat: true, env: { Y: \"2\" } }\n  faults:\n    loss: { every: 1s }\n  property:\n    \
                - { name: said, sometimes: \"x\" }\n";
    let world = world(text);
    assert_eq!(world.epoch_unix_s, 1_769_904_000);
    assert_eq!(world.nodes[1].image, Some(ImageOrigin::Registry("r/i:1".to_owned())));
    let driver = &world.workload.drivers[0];
    assert_eq!(
        (driver.name.as_str(), driver.repeat, world.workload.settle_ns),
        ("load", true, 3_000_000_000)
    );
    // A driver (a client program of the workload) gets the environment and the user of the service on its machine.
    let env: Vec<String> = driver.command.env.iter().map(|(name, text)| format!("{name}={text}")).collect();
    assert_eq!((env.join(" ").as_str(), driver.command.user.as_deref()), ("X=1 Y=2", Some("app")));
    assert_eq!(world.properties.len(), 1);
    let wrong = |from: &str, to: &str| error(&text.replace(from, to));
    assert_eq!(
        wrong("settle: 3s", "settle: 3"),
        "compose.yaml:10: x-everett.workload.settle: 3 needs a unit, e.g. \"3s\""
    );
    assert_eq!(
        wrong("node: a", "node: c"),
        "compose.yaml:12: x-everett.workload.driver[0].node: no node is named \"c\"; the nodes are a, b"
    );
    assert!(wrong("every: 1s", "evry: 1s").starts_with("compose.yaml:14: x-everett.faults.loss"));
    assert!(wrong("epoch", "epcoh").contains("x-everett.epcoh: unknown key; did you mean \"epoch\"?"));
}

#[test]
fn a_world_file_can_name_a_compose_file() {
    let project = Project::new();
    project.write("compose.yaml", "services:\n  a:\n    image: i\n");
    let file = project.0.path().join("world.toml");
    let read = |text: &str| crate::parse(text, &file).map_err(|error| error.what);
    let world =
        read("compose = \"compose.yaml\"\n[[link]]\nlatency = \"2ms\"\n[images]\ni = \"docker://r\"\n")
            .unwrap();
    assert_eq!((world.nodes.len(), &world.nodes[0].image), (1, &Some(ImageOrigin::Registry("r".to_owned()))));
    assert_eq!(world.file, file);
    assert!(
        read("compose = \"compose.yaml\"\n[[node]]\nname = \"b\"\n").unwrap_err().contains("unknown key")
    );
    project.write("compose.yaml", "services:\n  a:\n    image: i\nx-everett: { seed: 1 }\n");
    assert!(
        read("compose = \"compose.yaml\"\n").unwrap_err().contains("a world file names this compose file")
    );
}

#[test]
fn extends_joins_services() {
    let project = Project::new();
    project.write(
        "common/base.yaml",
        "services:\n  base:\n    image: base\n    command: [a]\n    environment: [A=1, B=1]\n    cap_add: [NET_ADMIN]\n    \
         env_file: vars\n    volumes: [\"./f:/f\", /v]\n",
    );
    project.write("common/vars", "C=3\n").write("common/f", "content").write("g", "other");
    let world = project.world(
        "services:\n  a:\n    extends: { file: common/base.yaml, service: base }\n    command: [b]\n    \
         environment: { B: 2 }\n    cap_add: [SYS_TIME]\n    volumes: [\"./g:/f:ro\"]\n  b:\n    extends: a\n",
    );
    for node in &world.nodes {
        let process = &node.services[0];
        assert_eq!(process.image.as_ref().unwrap().command, Some(vec!["b".to_owned()]));
        let env: Vec<String> =
            process.command.env.iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(env, ["A=1", "B=2", "C=3"]);
        let composed = node.composed.as_ref().unwrap();
        assert_eq!(composed.cap_add, ["NET_ADMIN", "SYS_TIME"]);
        assert_eq!(composed.volumes, ["/v"]);
        assert_eq!(node.files.iter().map(|file| &*file.content).collect::<Vec<_>>(), [b"other"]);
    }
    let error = |text: &str| project.read(text).unwrap_err();
    assert_eq!(
        error("services:\n  a: { extends: b }\n  b: { extends: a }\n"),
        "compose.yaml:2: services.a.extends: services extend each other in a cycle, or more than 16 deep"
    );
    assert_eq!(
        error("services:\n  a: { extends: { file: ../x.yaml, service: b } }\n"),
        "compose.yaml:2: services.a.extends.file: \"../x.yaml\" is outside of the compose file's folder"
    );
    assert_eq!(
        error("services:\n  a: { extends: c }\n"),
        "compose.yaml:2: services.a.extends: there is no service \"c\" in compose.yaml"
    );
}

#[test]
fn files_of_the_project_are_mounted() {
    let project = Project::new();
    project
        .write("conf/a.conf", "A")
        .write("conf/sub/b.conf", "B")
        .write("one", "1")
        .write("secret.txt", "S");
    let world = project.world(
        "services:\n  a:\n    image: i\n    volumes:\n      - ./conf:/etc/conf:ro\n      - ./one:/etc/one\n      \
         - ./missing:/var/data\n    configs: [c]\n    secrets:\n      - { source: s, target: key, uid: \"5\", mode: 0400 }\n\
         configs:\n  c: { content: \"text\" }\nsecrets:\n  s: { file: ./secret.txt }\n",
    );
    let node = &world.nodes[0];
    let files: Vec<String> = node
        .files
        .iter()
        .map(|file| {
            format!("{} {} {:o}", file.guest_path, String::from_utf8_lossy(&file.content), file.mode())
        })
        .collect();
    assert_eq!(
        files,
        [
            "/run/everett/binds/0/a.conf A 644",
            "/run/everett/binds/0/sub/b.conf B 644",
            "/run/everett/binds/1/one 1 644",
            "/run/everett/binds/3/c text 444",
            "/run/everett/binds/4/key S 400",
        ]
    );
    assert_eq!(node.files[4].owner.as_deref(), Some("5"));
    let binds: Vec<String> = node
        .composed
        .as_ref()
        .unwrap()
        .binds
        .iter()
        .map(|bind| format!("{} {} {}", bind.from, bind.path, bind.writable))
        .collect();
    assert_eq!(
        binds,
        [
            "/run/everett/binds/0 /etc/conf false",
            "/run/everett/binds/1/one /etc/one true",
            "/run/everett/binds/2 /var/data true",
            "/run/everett/binds/3/c /c false",
            "/run/everett/binds/4/key /run/secrets/key false",
        ]
    );
}

#[test]
fn variables_come_from_the_process_and_from_files() {
    let project = Project::new();
    project.write(".env", "TAG=7\nNAME=file\n").write("more.env", "B=${NAME}\nC='$x'\n");
    let text = "services:\n  a:\n    image: \"i:${TAG}\"\n    env_file: [{ path: more.env }, { path: none, required: false }]\n    \
                environment: { A: \"${NAME}-$$\", D: \"${NONE}\" }\n";
    let world = project.read_with(text, &|name| (name == "NAME").then(|| "process".to_owned())).unwrap();
    assert_eq!(world.nodes[0].image, Some(ImageOrigin::Named("i:7".to_owned())));
    let env = &world.nodes[0].services[0].command.env;
    let env: Vec<String> = env.iter().map(|(name, text)| format!("{name}={text}")).collect();
    assert_eq!(env, ["A=process-$", "B=process", "C=$x", "D="]);
    assert!(world.notes[0].ends_with("variables that are not set became empty: NONE"));
    project.write(".env", "TAG=7\nNA ME=1\n");
    assert_eq!(project.read(text).unwrap_err(), ".env:2: \"NA ME\" is not the name of a variable");
    project.write(".env", "");
    assert_eq!(
        project.read("services:\n  a:\n    image: \"${TAG:?which}\"\n").unwrap_err(),
        "compose.yaml:3: services.a.image: the variable TAG must be set: which"
    );
}

#[test]
fn profiles_turn_services_on() {
    let text = "services:\n  a: { image: i }\n  b: { image: i, profiles: [debug] }\n";
    let project = Project::new();
    let names = |profiles: &'static str| {
        let world = project
            .read_with(text, &|name| (name == "COMPOSE_PROFILES").then(|| profiles.to_owned()))
            .unwrap();
        world.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        (names(""), names("x, debug"), names("*")),
        ("a".to_owned(), "a b".to_owned(), "a b".to_owned())
    );
    assert_eq!(
        error("services:\n  a: { image: i, depends_on: [b] }\n  b: { image: i, profiles: [debug] }\n"),
        "compose.yaml:2: services.a.depends_on[0]: the service \"b\" is in a profile that is off"
    );
    let optional = "services:\n  a: { image: i, depends_on: { b: { required: false } } }\n  b: { image: i, profiles: [d] }\n";
    assert!(world(optional).nodes[0].composed.as_ref().unwrap().after.is_empty());
}

#[test]
fn what_only_a_host_can_give_is_refused_by_key_and_line() {
    for (lines, key) in [
        ("privileged: true", "privileged"),
        ("network_mode: host", "network_mode"),
        ("network_mode: \"service:b\"", "network_mode"),
        ("pid: host", "pid"),
        ("ipc: host", "ipc"),
        ("devices: [/dev/kvm]", "devices"),
        ("gpus: all", "gpus"),
        ("runtime: nvidia", "runtime"),
        ("external_links: [x]", "external_links"),
        ("platform: linux/arm64", "platform"),
        ("extra_hosts: [\"h:host-gateway\"]", "extra_hosts[0]"),
        (
            "deploy: { resources: { reservations: { devices: [{ driver: nvidia }] } } }",
            "deploy.resources.reservations.devices",
        ),
    ] {
        let said = service_error(&format!("    {lines}\n"));
        let start = format!("compose.yaml:4: services.a.{key}: ");
        assert!(said.starts_with(&start), "{said}");
        assert!(said.contains("refused") || said.contains("machines are"), "{said}");
    }
    assert!(
        service("    privileged: false\n    ipc: private\n    runtime: runc\n    platform: linux/amd64\n")
            .notes
            .is_empty()
    );
}

#[test]
fn wrong_values_are_named_in_one_line() {
    for (lines, what) in [
        (
            "    stop_signal: SIGTEM\n",
            "compose.yaml:4: services.a.stop_signal: there is no signal \"SIGTEM\"",
        ),
        (
            "    stop_signal: SIGRTMIN+3\n",
            "compose.yaml:4: services.a.stop_signal: real-time signals are not supported",
        ),
        ("    stop_grace_period: 25h\n", "compose.yaml:4: services.a.stop_grace_period: at most a day"),
        (
            "    tmpfs: [/run]\n",
            "compose.yaml:4: services.a.tmpfs[0]: /run is in memory already, and has Everett's own programs; mount folders in it",
        ),
        ("    init: 5\n", "compose.yaml:4: services.a.init: expected true or false, found \"5\""),
        ("    imge: x\n", "compose.yaml:4: services.a.imge: unknown key; did you mean \"image\"?"),
        (
            "    wibble: x\n",
            "compose.yaml:4: services.a.wibble: unknown key; see docs/compose.md for those that there are",
        ),
        ("    environment: 5\n", "compose.yaml:4: services.a.environment: expected a mapping, found \"5\""),
        (
            "    environment: { A: [1] }\n",
            "compose.yaml:4: services.a.environment.A: expected a text, found a list",
        ),
        ("    command: { a: b }\n", "compose.yaml:4: services.a.command: expected a text, found a mapping"),
        (
            "    command: \"a 'b\"\n",
            "compose.yaml:4: services.a.command: a quote of the command line is not closed",
        ),
        ("    volumes: x\n", "compose.yaml:4: services.a.volumes: expected a list, found \"x\""),
        (
            "    volumes: [\"v:/x\"]\n",
            "compose.yaml:4: services.a.volumes[0]: there is no volume \"v\" in volumes",
        ),
        (
            "    volumes: [\"/proc\"]\n",
            "compose.yaml:4: services.a.volumes[0]: \"/proc\" lies in /proc, which the guest's kernel provides",
        ),
        (
            "    networks: [n]\n",
            "compose.yaml:4: services.a.networks[0]: there is no network \"n\" in networks",
        ),
        ("    scale: 65\n", "compose.yaml:4: services.a.scale: 65 machines; a world has at most 64"),
        ("    scale: -1\n", "compose.yaml:4: services.a.scale: expected a whole number, found \"-1\""),
        (
            "    scale: 0\n",
            "compose.yaml:3: services: with all replicas there are 0 machines; a world has 1 to 64",
        ),
        (
            "    restart: maybe\n",
            "compose.yaml:4: services.a.restart: expected no, always, unless-stopped or on-failure, found \"maybe\"",
        ),
        ("    depends_on: [b]\n", "compose.yaml:4: services.a.depends_on[0]: there is no service \"b\""),
        (
            "    depends_on: [a]\n",
            "compose.yaml:4: services.a.depends_on: services wait for each other: a -> a",
        ),
        (
            "    healthcheck: { test: [x] }\n",
            "compose.yaml:4: services.a.healthcheck.test: a list begins with CMD, CMD-SHELL or NONE, and has a command",
        ),
        (
            "    healthcheck: { interval: soon }\n",
            "compose.yaml:4: services.a.healthcheck.interval: expected a duration such as \"1m30s\", found \"soon\"",
        ),
        (
            "    mem_limit: much\n",
            "compose.yaml:4: services.a.mem_limit: expected a size such as \"512m\", found \"much\"",
        ),
        (
            "    ulimits: { nofiles: 1 }\n",
            "compose.yaml:4: services.a.ulimits.nofiles: unknown key; did you mean \"nofile\"?",
        ),
        ("    image: j\n", "compose.yaml:4: image: this key is here twice"),
        ("    user: \"a b\"\n", "compose.yaml:4: services.a.user: \"a b\" is neither a user nor USER:GROUP"),
        ("    configs: [c]\n", "compose.yaml:4: services.a.configs[0]: there is no \"c\" in configs"),
    ] {
        assert_eq!(service_error(lines), what);
    }
    for (text, what) in [
        ("", "compose.yaml:1: services: a compose file needs at least one service"),
        ("services: []\n", "compose.yaml:1: services: expected a mapping, found a list"),
        ("- a\n", "compose.yaml:1: expected a mapping, found a list"),
        (
            "services:\n  a:\n",
            "compose.yaml:2: services.a: \"image\" is missing; a service has an image or a build",
        ),
        ("services:\n  ? [a]\n  : b\n", "compose.yaml:2: a key is a list or a mapping"),
        ("services: *x\n", "compose.yaml:1: not YAML: while parsing node, found unknown anchor"),
        (
            "services: {a: {image: i}}\n---\nservices: {}\n",
            "compose.yaml:2: a second document begins here; a compose file has one",
        ),
        ("services: {a: !other null}\n", "compose.yaml:1: the tag \"!other\" has no meaning here"),
        (
            "include: [x]\nservices: {a: {image: i}}\n",
            "compose.yaml:1: include: refused: not supported; write the services into one file, or use extends",
        ),
    ] {
        assert_eq!(error(text), what, "{text}");
    }
    assert!(error("services:\n  a: [\n").starts_with("compose.yaml:"));
    assert_eq!(
        error(
            "services:\n  a: { image: i, depends_on: [b] }\n  b: { image: i, depends_on: [c] }\n  c: { image: i, depends_on: [b] }\n"
        ),
        "compose.yaml:3: services.b.depends_on: services wait for each other: b -> c -> b"
    );
    assert!(
        error("services:\n  a: { image: i, volumes: [\"v:/v\"] }\n  b: { image: i, volumes: [\"v:/v\"] }\nvolumes: { v: }\n")
            .ends_with("each service is a machine of its own, and machines share no disk")
    );
    assert!(
        error("services:\n  a_b: { image: i }\n  a-b: { image: i }\n")
            .contains("would have the name \"a-b\"")
    );
}

#[test]
fn hostile_files_are_refused_in_one_line() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..20 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","));
    }
    assert!(
        error(&bomb).contains("with its aliases and variables written out this has more than"),
        "{}",
        error(&bomb)
    );
    assert_eq!(
        error("a: &a [*a]\n"),
        "compose.yaml:1: this alias refers to a value that contains it, or that is reset"
    );
    let deep = format!("services: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(error(&deep).contains("more than 64 levels"), "{}", error(&deep));
    let many: String = (0..10_000).map(|number| format!("  s{number}: {{ image: i }}\n")).collect();
    assert_eq!(
        error(&format!("services:\n{many}")),
        "compose.yaml:2: services: 10000 services; a world has at most 64 machines"
    );
    let replicas: String = (0..60).map(|number| format!("  s{number}: {{ image: i, scale: 2 }}\n")).collect();
    assert!(error(&format!("services:\n{replicas}")).contains("with all replicas there are 120 machines"));
    // A key with line breaks is always shown with escapes.
    for text in [
        "\"a\\nb\": 1\n",
        "services:\n  \"a\\nb\": { image: i }\n",
        "services:\n  a: { image: i, \"a\\nb\": 1 }\n",
    ] {
        assert!(error(text).contains(r"a\nb"), "{}", error(text));
    }
    // Replacing variables can make a short text huge, so the length after the replacement has a bound.
    let doubled = format!("services:\n  a:\n    image: \"{}\"\n", "${A}".repeat(5000));
    let said = Project::new().read_with(&doubled, &|_| Some("x".repeat(100_000))).unwrap_err();
    assert!(said.contains("with its variables this has more than"), "{said}");
}

#[test]
fn the_content_of_everything_is_in_the_world() {
    let project = Project::new();
    project.write("f", "1");
    let text = "services:\n  a: { image: i, environment: { A: \"$A\" }, volumes: [\"./f:/f\"] }\n";
    let with = |value: &'static str| project.read_with(text, &move |_| Some(value.to_owned())).unwrap();
    let (one, two) = (with("1"), with("2"));
    assert_ne!(one.nodes, two.nodes);
    project.write("f", "2");
    assert_ne!(one.nodes[0].files, with("1").nodes[0].files);
}

#[test]
fn a_build_has_a_name() {
    let project = Project::new();
    project.write("web/Dockerfile", "FROM scratch\n");
    let world = project.world(
        "name: shop\nservices:\n  a: { build: ./web }\n  b:\n    image: own:1\n    build: { context: web, dockerfile: D, args: [V=1], target: t }\n",
    );
    let built = |node: &Node| match &node.image {
        Some(ImageOrigin::Built(build)) => build.clone(),
        other => panic!("{other:?}"),
    };
    let (a, b) = (built(&world.nodes[0]), built(&world.nodes[1]));
    assert_eq!((a.name.as_str(), a.file, a.context.ends_with("web")), ("shop-a", None, true));
    assert_eq!((b.name.as_str(), b.target.as_deref()), ("own:1", Some("t")));
    assert!(b.file.unwrap().ends_with("web/D"));
    assert_eq!(b.arguments, [("V".to_owned(), Some("1".to_owned()))]);
}

#[test]
fn a_service_says_how_it_is_stopped() {
    let stop = |lines: &str| {
        let composed = service(lines).nodes[0].composed.clone().unwrap();
        (composed.stop_signal, composed.stop_grace_ns, composed.init, composed.is_supervised())
    };
    assert_eq!(stop(""), (None, None, false, false));
    assert_eq!(stop("    stop_signal: SIGINT\n"), (Some(2), None, false, true));
    // The time is rounded down to whole seconds.
    assert_eq!(stop("    stop_grace_period: 1m1s999ms\n"), (None, Some(61_000_000_000), false, true));
    assert_eq!(stop("    init: true\n"), (None, None, true, true));
    assert_eq!(stop("    init: false\n"), (None, None, false, false));
    // A world without these keys must keep the identity that it had before the keys were supported.
    let stored = serde_json::to_string(&service("")).unwrap();
    for key in ["stop_signal", "stop_grace_ns", "init", "restart_service"] {
        assert!(!stored.contains(&format!("\"{key}\"")), "{key} in {stored}");
    }
}

#[test]
fn a_service_is_restarted_with_another_if_it_says_so() {
    let text = "services:\n  a: { image: i, scale: 2 }\n  b: { image: i, depends_on: { a: { condition: service_healthy, \
                restart: true } } }\n  c: { image: i, depends_on: [a] }\n";
    let world = world(text);
    let after = |node: usize| {
        let composed = world.nodes[node].composed.as_ref().unwrap();
        composed.after.iter().map(|one| (one.node.as_str(), one.restart)).collect::<Vec<_>>()
    };
    assert_eq!(after(2), [("a-1", true), ("a-2", true)]);
    assert_eq!(after(3), [("a-1", false), ("a-2", false)]);
    let stored =
        |node: usize| serde_json::to_string(&world.nodes[node].composed.as_ref().unwrap().after).unwrap();
    assert!(stored(2).contains("restart") && !stored(3).contains("restart"));
}

/// The page `docs/compose.md` must list every key with its effect.
#[test]
fn the_docs_list_every_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compose.md");
    let page = fs::read_to_string(page).unwrap();
    for (key, _) in keys::TOP.iter().chain(&keys::SERVICE) {
        assert!(page.contains(&format!("`{key}`")), "docs/compose.md does not mention `{key}`");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_world_or_a_one_line_error(text in "\\PC{0,200}") {
        let _ = Project::new().read(&text);
    }

    /// Replaces a range of a valid file, because the result passes the syntax check more often than random text.
    #[test]
    fn any_change_gives_a_world_or_a_one_line_error(
        from in 0..WHOLE.len(), length in 0usize..40, text in "[a-z0-9\"= \\[\\]{}:&*<>$!|,\\n/-]{0,20}"
    ) {
        let to = (from + length).min(WHOLE.len());
        let _ = Project::new().read(&format!("{}{text}{}", &WHOLE[..from], &WHOLE[to..]));
    }

    /// Every key of a service gets values of many types.
    #[test]
    fn any_value_of_any_key_gives_a_world_or_a_one_line_error(
        key in proptest::sample::select(keys::SERVICE.map(|(key, _)| key).to_vec()),
        value in "(\\[|\\{|)(a|b: c|1|-1|99999999999999999999|\\.\\./x|/|:|\\$\\{x|~|true|x=y|a:b:c|1s)(, (a|b: c|q=))?(\\]|\\}|)"
    ) {
        let _ = Project::new().read(&format!("services:\n  a:\n    image: i\n    {key}: {value}\n"));
    }
}
