//! Processes of nodes whose root filesystem is a container image.
//!
//! The agent (Everett's program in the guest) starts the shim (`everett_guest_image::shim`) in place of each program.
//! The shim prepares the machine as a container engine would, and then executes the program. The image has the
//! program's configuration, and the world file completes and overrides it.

use std::collections::BTreeMap;

use everett_guest_image::init::INIT_PATH;
use everett_guest_image::oci::RootDisk;
use everett_guest_image::oci::config::ImageConfig;
use everett_guest_image::shim::{RESOLVER, SHIM_PATH, VOLUMES_PATH};
use everett_input::signal;
use everett_protocol as protocol;
use everett_protocol::limits;
use everett_vmm::disk::{Disk, DiskError, FilePart};
use everett_world_file::{Command, Composed, Node, Ready, STOP_GRACE_NS, Service};

use crate::guest::programs::{INIT, SHIM};

/// Pause between attempts of an image's healthcheck, in milliseconds of vtime. Container engines pause for seconds,
/// because attempts cost host time. With Everett's short pause, nodes become ready at an earlier vtime.
const HEALTH_INTERVAL_MS: u64 = 200;

/// Serial number of the disk that holds the volumes of a container image.
pub const VOLUMES_SERIAL: &str = "everett-volumes";

const NS_PER_MS: u64 = 1_000_000;

/// The container image of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeImage {
    /// Name of the image in the world file.
    pub name: String,
    /// The disk with the root filesystem.
    pub disk: RootDisk,
    /// Configuration of the image: command, environment, user, volumes, healthcheck.
    pub config: ImageConfig,
    /// Digest of the image, in hexadecimal.
    pub digest: String,
}

/// Way to stop the services of a node before a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// Signal that asks a service to exit.
    pub signal: i32,
    /// Time from this signal to `SIGKILL`, in nanoseconds of vtime.
    pub grace_ns: u64,
    /// True if each service runs under a supervisor, a program of Everett that starts the service. Everett then signals
    /// the service through its supervisor.
    pub supervised: bool,
}

impl NodeImage {
    /// Opens the disk with the root filesystem.
    ///
    /// # Errors
    /// Returns an error if a file in the cache cannot be mapped.
    pub fn open_disk(&self) -> Result<Disk, DiskError> {
        let part = |part: &everett_guest_image::oci::RootPart| FilePart {
            path: part.path.clone(),
            offset: part.offset,
            bytes: part.bytes,
        };
        Disk::open_parts(&self.disk.parts.iter().map(part).collect::<Vec<_>>(), self.disk.digest)
    }

    /// Returns the words that Everett puts before each command that is not from the world file, e.g. before a command
    /// of a test template in the image. They are the shim and its options. The options set environment, user, folder and volumes, with values
    /// from the image. If the node comes from a compose file, the values of its service override the image's values, as
    /// with `docker compose exec`.
    #[must_use]
    pub fn prefix(&self, node: &Node) -> Vec<String> {
        let plain = Command { argv: Vec::new(), env: BTreeMap::new(), cwd: None, user: None };
        let service = node.composed.as_ref().and(node.services.first());
        self.command_line(node, service.map_or(&plain, |service| &service.command), Vec::new())
    }

    /// Returns the command line with which the agent starts the program `argv`: the shim, its options and `argv`.
    #[must_use]
    pub fn command_line(&self, node: &Node, command: &Command, argv: Vec<String>) -> Vec<String> {
        let mut words = vec![SHIM_PATH.to_owned()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        let mut env = self.config.env.clone();
        env.extend(command.env.clone());
        for (name, value) in env {
            option("--env", format!("{name}={value}"));
        }
        if let Some(user) = command.user.as_ref().or(self.config.user.as_ref()) {
            option("--user", user.clone());
        }
        if let Some(cwd) = command.cwd.as_ref().or(self.config.cwd.as_ref()) {
            option("--cwd", cwd.clone());
        }
        for (number, path) in self.volumes(node).into_iter().enumerate() {
            option("--volume", format!("{number}:{path}"));
        }
        if let Some(composed) = &node.composed {
            for (name, value) in of_compose(composed) {
                option(name, value);
            }
        }
        words.push("--".to_owned());
        words.extend(argv);
        words
    }

    /// Returns the mount points of the image's volumes, then those of the compose file's volumes. A volume of the image
    /// is left out if the node mounts something else at its path.
    fn volumes<'n>(&'n self, node: &'n Node) -> Vec<&'n str> {
        let composed = node.composed.as_ref();
        let is_own = |path: &str| {
            node.disks.iter().any(|disk| disk.guest_path == path)
                || composed.is_some_and(|composed| {
                    composed.volumes.iter().any(|volume| volume == path)
                        || composed.binds.iter().any(|bind| bind.path == path)
                        || composed.tmpfs.iter().any(|tmpfs| tmpfs.path == path)
                })
        };
        let of_image = self.config.volumes.iter().map(String::as_str).filter(|path| !is_own(path));
        let of_compose =
            composed.into_iter().flat_map(|composed| composed.volumes.iter().map(String::as_str));
        of_image.chain(of_compose).collect()
    }

    /// Returns the command line of a service without the shim. It is empty if neither the world file nor the image has
    /// a command.
    #[must_use]
    pub fn argv(&self, service: &Service) -> Vec<String> {
        let Some(process) = &service.image else { return service.command.argv.clone() };
        // An entrypoint in the world file replaces the image's command too.
        let own: &[String] = if process.entrypoint.is_some() { &[] } else { &self.config.command };
        let entrypoint = process.entrypoint.as_deref().unwrap_or(&self.config.entrypoint);
        [entrypoint, process.command.as_deref().unwrap_or(own)].concat()
    }

    /// Returns the service for the agent. `plain` is the service without the image's configuration.
    pub(crate) fn service(
        &self,
        node: &Node,
        service: &Service,
        plain: protocol::Service,
    ) -> protocol::Service {
        let line = |argv: Vec<String>| self.command_line(node, &service.command, argv);
        let ready = match (&service.ready, plain.ready) {
            (Some(Ready::Command(argv)), Some(ready)) => Some(protocol::Readiness {
                check: protocol::ReadyCheck::Command { argv: line(argv.clone()) },
                ..ready
            }),
            (None, _) if service.image.as_ref().is_some_and(|process| process.healthcheck) => {
                self.config.healthcheck.as_ref().map(|check| protocol::Readiness {
                    check: protocol::ReadyCheck::Command { argv: line(check.argv.clone()) },
                    interval_ms: HEALTH_INTERVAL_MS,
                    limit_ms: (check.limit_ns.max(service.ready_timeout_ns) / NS_PER_MS)
                        .min(limits::INTERVAL_MS_MAX),
                })
            }
            (_, ready) => ready,
        };
        protocol::Service {
            argv: supervised(node, service, line(self.argv(service))),
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            ready,
            ..plain
        }
    }
}

/// Returns true if the node's services run under supervisors. Only a node from a compose file can have them.
#[must_use]
pub fn is_supervised(node: &Node) -> bool {
    node.composed.as_ref().is_some_and(Composed::is_supervised)
}

/// Puts the supervisor's command line before the command line of a service, if the node has supervisors.
fn supervised(node: &Node, service: &Service, line: Vec<String>) -> Vec<String> {
    if !is_supervised(node) {
        return line;
    }
    let has_init = node.composed.as_ref().is_some_and(|composed| composed.init);
    let init = has_init.then_some("--init");
    let words = [INIT_PATH, "run", &service.name].into_iter().chain(init).chain(["--"]);
    words.map(str::to_owned).chain(line).collect()
}

/// Returns the way to stop the services of a node. The compose file overrides the image.
#[must_use]
pub fn stop(node: &Node, image: Option<&NodeImage>) -> Stop {
    let composed = node.composed.as_ref();
    let of_image = image.and_then(|image| image.config.stop_signal);
    Stop {
        signal: composed.and_then(|composed| composed.stop_signal).or(of_image).unwrap_or(signal::TERM),
        grace_ns: composed.and_then(|composed| composed.stop_grace_ns).unwrap_or(STOP_GRACE_NS),
        supervised: is_supervised(node),
    }
}

/// Returns the shim's options for the settings of a compose file.
fn of_compose(composed: &Composed) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    for (number, bind) in composed.binds.iter().enumerate() {
        let mode = if bind.writable { "rw" } else { "ro" };
        options.push(("--bind", format!("{number}:{mode}:{}:{}", bind.from, bind.path)));
    }
    options.extend(composed.tmpfs.iter().map(|one| ("--tmpfs", format!("{}:{}", one.options, one.path))));
    for (name, limit) in &composed.ulimits {
        let value = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |n| n.to_string());
        options.push(("--ulimit", format!("{name}={}:{}", value(limit.soft), value(limit.hard))));
    }
    options.extend(composed.sysctls.iter().map(|(name, value)| ("--sysctl", format!("{name}={value}"))));
    options.extend(composed.cap_drop.iter().map(|name| ("--cap-drop", name.clone())));
    options.extend(composed.cap_add.iter().map(|name| ("--cap-add", name.clone())));
    options
}

/// Service name of the DNS server on nodes from compose files.
const RESOLVER_UNIT: &str = "everett-dns";

/// Returns the DNS server as a service for the agent.
#[must_use]
pub fn resolver() -> protocol::Service {
    service(RESOLVER_UNIT, vec![SHIM_PATH.to_owned(), RESOLVER.to_owned()])
}

/// Returns a service that has only a name and a command line.
pub(crate) fn service(name: &str, argv: Vec<String>) -> protocol::Service {
    protocol::Service {
        name: name.to_owned(),
        argv,
        env: BTreeMap::new(),
        cwd: None,
        user: None,
        ready: None,
        restart: protocol::Restart::Never,
        history: false,
    }
}

/// Returns the shim's program file, in pieces for the agent.
#[must_use]
pub fn shim_files() -> Vec<protocol::PutFile> {
    program_files(SHIM_PATH, SHIM)
}

/// Returns the supervisor's program file, in pieces for the agent.
#[must_use]
pub fn init_files() -> Vec<protocol::PutFile> {
    program_files(INIT_PATH, INIT)
}

fn program_files(path: &str, program: &[u8]) -> Vec<protocol::PutFile> {
    let piece = |(number, data): (usize, &[u8])| protocol::PutFile {
        path: path.to_owned(),
        mode: 0o755,
        owner: None,
        append: number > 0,
        data: protocol::Bytes(data.to_vec()),
    };
    program.chunks(limits::PUT_FILE_BYTES_MAX).enumerate().map(piece).collect()
}

/// Returns the disk with a node's volumes. The agent does not format it, because [`formatted`] already has.
#[must_use]
pub fn volumes_disk() -> protocol::DataDisk {
    protocol::DataDisk {
        serial: VOLUMES_SERIAL.to_owned(),
        path: VOLUMES_PATH.to_owned(),
        filesystem: "ext4".to_owned(),
        format_blank: false,
        owner: None,
    }
}

/// Writes an empty ext4 filesystem to a new disk. Everett does this because the image may lack `mkfs.ext4`.
#[must_use]
pub fn formatted(mut disk: Disk, serial: &str) -> Disk {
    let hash = blake3::hash(serial.as_bytes());
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash.as_bytes()[..16]);
    // UUID version 8 (RFC 9562) leaves the other bits free.
    uuid[6] = (uuid[6] & 0x0f) | 0x80;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    // The world file accepts only sizes that an ext4 filesystem can have.
    for block in everett_guest_image::ext4::empty(disk.len(), uuid).unwrap_or_default() {
        disk.write(block.offset, &block.content);
    }
    disk
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use everett_world_file::World;

    use super::*;

    const CONFIG: &str = r#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},
        "config":{"Entrypoint":["entry"],"Cmd":["a","b"],"Env":["PATH=/bin","X=image"],"User":"7:8",
        "WorkingDir":"/w","Volumes":{"/v":{},"/own":{}},
        "Healthcheck":{"Test":["CMD","check"],"Timeout":1000000000,"Interval":1000000000,"Retries":1}}}"#;

    fn image() -> NodeImage {
        NodeImage {
            name: "i".to_owned(),
            disk: RootDisk { parts: Vec::new(), digest: [0; 32] },
            config: ImageConfig::parse(CONFIG.as_bytes()).unwrap(),
            digest: String::new(),
        }
    }

    /// Returns a world whose node has an image. `lines` are added to the node's table.
    fn world(lines: &str) -> (tempfile::TempDir, World) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("i.tar"), "").unwrap();
        let text = format!("[[node]]\nname = \"n\"\nimage = \"i.tar\"\n{lines}");
        let world = everett_world_file::parse(&text, &folder.path().join("w.toml"));
        (folder, world.unwrap_or_else(|error| panic!("{error}")))
    }

    fn argv(lines: &str) -> Vec<String> {
        let (_folder, world) = world(lines);
        image().argv(&world.nodes[0].services[0])
    }

    #[test]
    fn the_world_file_replaces_the_parts_of_the_command_line_as_engines_do() {
        assert_eq!(argv(""), ["entry", "a", "b"]);
        assert_eq!(argv("[[node.service]]\ncommand = [\"c\"]\n"), ["entry", "c"]);
        assert_eq!(argv("[[node.service]]\ncommand = []\n"), ["entry"]);
        assert_eq!(argv("[[node.service]]\nentrypoint = [\"e\"]\n"), ["e"]);
        assert_eq!(argv("[[node.service]]\nentrypoint = [\"e\"]\ncommand = [\"c\"]\n"), ["e", "c"]);
        assert_eq!(argv("[[node.service]]\nentrypoint = []\ncommand = [\"c\"]\n"), ["c"]);
        assert_eq!(argv("service = [\"x\", \"y\"]\n"), ["x", "y"]);
    }

    #[test]
    fn the_world_file_overrides_the_configuration() {
        let (_folder, world) = world(
            "disk = { path = \"/own\", size = \"8M\" }\n[[node.service]]\nenv = { X = \"own\", Y = \"1\" }\nuser = \"u\"\n",
        );
        let node = &world.nodes[0];
        let line = image().command_line(node, &node.services[0].command, vec!["p".to_owned()]);
        assert_eq!(
            line[1..],
            [
                "--env",
                "PATH=/bin",
                "--env",
                "X=own",
                "--env",
                "Y=1",
                "--user",
                "u",
                "--cwd",
                "/w",
                "--volume",
                "0:/v",
                "--",
                "p"
            ]
        );
        assert_eq!(line[0], SHIM_PATH);
    }

    #[test]
    fn the_healthcheck_is_the_readiness_check_unless_there_is_another() {
        let ready = |lines: &str| {
            let (_folder, world) = world(lines);
            let script = crate::guest::agent_script::AgentScript::new(
                &world,
                &world.nodes[0],
                protocol::Root::None,
                Some(&image()),
            );
            script.services[0].ready.clone()
        };
        let health = ready("").unwrap();
        let protocol::ReadyCheck::Command { argv } = &health.check else { panic!("{health:?}") };
        assert_eq!(argv.last().map(String::as_str), Some("check"));
        // The default limit of 60 s is longer than the image's: an interval and a timeout of 1 s each.
        assert_eq!((health.interval_ms, health.limit_ms), (HEALTH_INTERVAL_MS, 60_000));
        assert_eq!(ready("[[node.service]]\nhealthcheck = false\n"), None);
        assert_eq!(ready("service = [\"x\"]\n"), None);
        let tcp = ready("[[node.service]]\nready = { tcp = 80 }\n").unwrap();
        assert!(matches!(tcp.check, protocol::ReadyCheck::Tcp { port: 80, .. }));
        let own = ready("[[node.service]]\nready = { command = [\"own\"] }\n").unwrap();
        let protocol::ReadyCheck::Command { argv } = &own.check else { panic!("{own:?}") };
        assert_eq!((argv[0].as_str(), argv.last().map(String::as_str)), (SHIM_PATH, Some("own")));
    }

    #[test]
    fn a_node_has_the_shim_before_its_files_and_the_volumes_after_its_disks() {
        let (_folder, world) = world(
            "disk = { path = \"/own\", size = \"8M\" }\n[[workload.driver]]\nname = \"d\"\nargv = [\"p\"]\n\
             [[workload.check]]\nname = \"c\"\nargv = [\"q\"]\n",
        );
        assert_eq!(world.names().node("n").unwrap().disks, 2);
        let image = image();
        let script = crate::guest::agent_script::AgentScript::new(
            &world,
            &world.nodes[0],
            protocol::Root::None,
            Some(&image),
        );
        assert_eq!(script.files[0].path, SHIM_PATH);
        let serials: Vec<&str> = script.disks.iter().map(|disk| disk.serial.as_str()).collect();
        assert_eq!(serials, ["everett-data0", VOLUMES_SERIAL]);
        for argv in [&script.drivers[0].service.argv, &script.checks[0].exec.argv, &script.services[0].argv] {
            assert!(argv.starts_with(&script.prefix[..1]), "{argv:?}");
        }
        let world = everett_world_file::parse("[[node]]\nname = \"n\"\n", Path::new("w")).unwrap();
        let plain =
            crate::guest::agent_script::AgentScript::new(&world, &world.nodes[0], protocol::Root::None, None);
        assert!(plain.prefix.is_empty() && plain.files.is_empty() && plain.disks.is_empty());
    }
}
