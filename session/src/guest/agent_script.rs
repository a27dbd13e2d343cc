//! Requests to a node's agent, derived from the world file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use everett_guest_image::shim::RESOLVER_ADDRESS;
use everett_protocol::{self as protocol, limits};
use everett_vmm::wire::PortConfig;
use everett_vmm::wire::endpoint::EndpointConfig;

use everett_world_file::{self as world_file, CheckKind, Node, World};

use crate::guest::containers::{self, NodeImage, Stop};
use crate::guest::sdk::{self, OUTPUT_FOLDER, OUTPUT_VARIABLE, Sdk};

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// All requests to a node's agent, in order: its script. The script is the same under every seed, because drivers and
/// checks get the seed when they are started.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentScript {
    /// Name of the node.
    pub node: String,
    /// First request: everything up to the restart point.
    pub mount: protocol::Mount,
    /// `CLOCK_REALTIME` at vtime 0, in seconds since 1970.
    pub epoch_unix_s: u64,
    /// Contents of `/etc/hosts`.
    pub hosts: Vec<protocol::HostEntry>,
    /// Addresses of DNS servers.
    pub nameservers: Vec<IpAddr>,
    /// Network interfaces.
    pub interfaces: Vec<protocol::Interface>,
    /// Data disks.
    pub disks: Vec<protocol::DataDisk>,
    /// Words before every command line: the shim of a node with a container image, with its options; otherwise none.
    pub prefix: Vec<String>,
    /// Files, split into pieces, to be written before the services start.
    pub files: Vec<protocol::PutFile>,
    /// Services, started together once the files are in place.
    pub services: Vec<protocol::Service>,
    /// Nodes that must be started or ready before the services start at the first boot.
    pub after: Vec<world_file::After>,
    /// Names of services that do their work once. The node is ready when they have ended with status 0, and later boots
    /// do not start them.
    pub jobs: Vec<String>,
    /// Names of the services that Everett can restart: those of the world.
    pub restartable: BTreeSet<String>,
    /// How Everett stops a service of the node.
    pub stop: Stop,
    /// Drivers, started when all services are ready.
    pub drivers: Vec<Driver>,
    /// Checks of this node, run at the end in the world's order.
    pub checks: Vec<Check>,
    /// Folder that may contain commands of a test template. They are listed before the machine is ready.
    pub template: Option<String>,
    /// The SDK in this node, if the world has it.
    pub sdk: Option<Sdk>,
    /// Pause before the last commands and the checks, in nanoseconds of vtime. Meanwhile the world runs without drivers
    /// and faults.
    pub settle_ns: u64,
}

/// Driver, as requested from the agent: a service without a readiness check.
#[derive(Debug, Clone, PartialEq)]
pub struct Driver {
    /// Service to start.
    pub service: protocol::Service,
    /// True if the driver is started again each time it ends.
    pub repeat: bool,
}

/// Check, as requested from the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Name of the check in the output.
    pub name: String,
    /// Command to run.
    pub exec: protocol::Exec,
}

/// Check of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldCheck {
    /// Check by a node's agent: the node's index, and the check's index among those of the node.
    Agent(usize, usize),
    /// Check by Everett itself, over the wire.
    Host(Arc<HostCheck>),
}

/// Check in which Everett connects to a node from its own port on the wire and waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    /// Name of the check in the output.
    pub name: String,
    /// Index of the node that has to answer.
    pub node: usize,
    /// Address and port to connect to.
    pub to: SocketAddr,
    /// Everett's endpoint on the wire.
    pub host: EndpointConfig,
    /// Bytes to send.
    pub send: Vec<u8>,
    /// Bytes that the answer has to contain.
    pub expect: Vec<u8>,
    /// Time limit for connection and answer, in nanoseconds of vtime.
    pub timeout_ns: u64,
}

/// Returns the checks of a world whose started nodes are `started`, in the world file's order.
#[must_use]
pub fn world_checks(world: &World, started: &[&Node]) -> Vec<WorldCheck> {
    let mut of_agents = vec![0; started.len()];
    let mut checks = Vec::new();
    for check in &world.workload.checks {
        let Some(node) = started.iter().position(|node| node.name == check.node) else { continue };
        checks.push(match &check.what {
            CheckKind::Command(_) => {
                of_agents[node] += 1;
                WorldCheck::Agent(node, of_agents[node] - 1)
            }
            CheckKind::Talk(talk) => WorldCheck::Host(Arc::new(HostCheck {
                name: check.name.clone(),
                node,
                to: SocketAddr::new(address(world, started[node]), talk.tcp),
                host: EndpointConfig {
                    // The wire has at most PORTS_MAX ports.
                    port: started.len() as u8,
                    node: host_port(),
                    ipv4: Some((HOST_ADDRESS, NETWORK_PREFIX)),
                    ipv6: None,
                },
                send: talk.send.clone().into_bytes(),
                expect: talk.expect.clone().into_bytes(),
                timeout_ns: check.timeout_ns,
            })),
        });
    }
    checks
}

/// Returns Everett's own port on the wire. No node can have its name.
#[must_use]
pub fn host_port() -> PortConfig {
    PortConfig { name: "_host".to_owned(), mac: [0x02, 0x65, 0x76, 0, 0xff, 0xfe] }
}

impl AgentScript {
    /// Creates the script for `node` of `world`; `root` is the root disk of its machine, `image` its container image.
    #[must_use]
    pub fn new(world: &World, node: &Node, root: protocol::Root, image: Option<&NodeImage>) -> AgentScript {
        let mut files = image.map(|_| containers::shim_files()).unwrap_or_default();
        if containers::is_supervised(node) {
            files.extend(containers::init_files());
        }
        for entry in &node.files {
            put_file(entry, &mut files);
        }
        if world.sdk.is_some() {
            files.extend(sdk::files());
        } else if world.workload.template.is_some() {
            files.push(output_file());
        }
        // Variables that the world file gives have precedence.
        let with_sdk = |unit: &str, own: &BTreeMap<String, String>, env: &mut BTreeMap<String, String>| {
            if world.sdk.is_some() {
                let variables = sdk::variables(unit).into_iter().filter(|(name, _)| !own.contains_key(name));
                env.extend(variables);
            }
        };
        let drivers = world.workload.drivers.iter().filter(|driver| driver.node == node.name);
        let checks = world.workload.checks.iter().filter(|check| check.node == node.name);
        let volumes = image.map(|_| containers::volumes_disk());
        let disks = node.disks.iter().enumerate().map(|(i, disk)| data_disk(i, disk));
        // Programs of a container image are started by its shim.
        let of_image = |command: &world_file::Command, argv: &mut Vec<String>| {
            if let Some(image) = image {
                *argv = image.command_line(node, command, command.argv.clone());
            }
        };
        let service = |one: &world_file::Service| {
            let mut service = match image {
                Some(image) => image.service(node, one, service(one)),
                None => service(one),
            };
            with_sdk(&one.name, &one.command.env, &mut service.env);
            service
        };
        let driver = |driver: &world_file::Driver| {
            let mut service = driver_service(driver);
            if image.is_some() {
                of_image(&driver.command, &mut service.argv);
                (service.env, service.cwd, service.user) = Default::default();
            }
            with_sdk(&driver.name, &driver.command.env, &mut service.env);
            Driver { service, repeat: driver.repeat }
        };
        let check = |check: &world_file::Check| {
            let mut agent = agent_check(check)?;
            if let (Some(_), CheckKind::Command(command)) = (image, &check.what) {
                of_image(command, &mut agent.exec.argv);
                (agent.exec.env, agent.exec.cwd, agent.exec.user) = Default::default();
            }
            if let CheckKind::Command(command) = &check.what {
                with_sdk(&check.name, &command.env, &mut agent.exec.env);
            }
            Some(agent)
        };
        let composed = node.composed.as_ref();
        let hostname = composed.and_then(|composed| composed.hostname.clone());
        let hostname = hostname.unwrap_or_else(|| node.name.clone());
        // Names are asked for where programs of containers ask for them.
        let resolver = composed.and(image).map(|_| containers::resolver());
        let nameservers = resolver.iter().map(|_| IpAddr::from(RESOLVER_ADDRESS)).collect();
        let jobs = node.services.iter().filter(|service| service.is_job);
        AgentScript {
            node: node.name.clone(),
            mount: protocol::Mount { root, hostname },
            epoch_unix_s: world.epoch_unix_s,
            hosts: composed.map_or_else(|| hosts(world), |composed| composed_hosts(world, composed)),
            interfaces: vec![protocol::Interface {
                name: "eth0".to_owned(),
                address: address(world, node),
                prefix: NETWORK_PREFIX,
                gateway: None,
            }],
            disks: disks.chain(volumes).collect(),
            prefix: image.map(|image| image.prefix(node)).unwrap_or_default(),
            files,
            services: resolver.into_iter().chain(node.services.iter().map(service)).collect(),
            nameservers,
            after: composed.map(|composed| composed.after.clone()).unwrap_or_default(),
            restartable: node.services.iter().map(|service| service.name.clone()).collect(),
            stop: containers::stop(node, image),
            jobs: jobs.map(|job| job.name.clone()).collect(),
            drivers: drivers.map(driver).collect(),
            checks: checks.filter_map(check).collect(),
            template: world.workload.template.clone(),
            sdk: world.sdk.as_ref().map(sdk::of_node),
            settle_ns: world.workload.settle_ns,
        }
    }
}

impl AgentScript {
    /// Returns the request at the restart point, for a node that joins the world at `vtime_ns`.
    #[must_use]
    pub fn join(&self, entropy: Vec<u8>, vtime_ns: u64) -> protocol::Join {
        let seconds = self.epoch_unix_s.saturating_add(vtime_ns / NS_PER_S);
        protocol::Join {
            entropy: protocol::Bytes(entropy),
            clock: protocol::WallClock {
                seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
                // Less than a second.
                nanoseconds: (vtime_ns % NS_PER_S) as u32,
            },
            disks: self.disks.clone(),
            hosts: self.hosts.clone(),
            nameservers: self.nameservers.clone(),
            interfaces: self.interfaces.clone(),
        }
    }
}

/// Length of the network prefix, in bits. All nodes are in 10.0.0.0/16, numbered from 10.0.0.1 in the world file's
/// order.
const NETWORK_PREFIX: u8 = 16;
/// Address of Everett's endpoint on the wire.
const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 255, 254);

fn address(world: &World, node: &Node) -> IpAddr {
    node_address(world.nodes.iter().position(|other| other.name == node.name).unwrap_or(0))
}

/// Returns the address of the node with this index in the world file.
#[must_use]
pub fn node_address(index: usize) -> IpAddr {
    // At most NODES_MAX nodes: the number fits in the last byte.
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap_or(u8::MAX)))
}

fn hosts(world: &World) -> Vec<protocol::HostEntry> {
    let entry =
        |node: &Node| protocol::HostEntry { address: address(world, node), names: vec![node.name.clone()] };
    world.nodes.iter().map(entry).collect()
}

/// Returns the lines of `/etc/hosts` of a node that a compose file describes.
fn composed_hosts(world: &World, composed: &world_file::Composed) -> Vec<protocol::HostEntry> {
    let entry = |host: &world_file::HostNames| {
        let address = match &host.of {
            world_file::HostOf::Node(name) => address(world, world.node(name)?),
            world_file::HostOf::Address(address) => *address,
        };
        Some(protocol::HostEntry { address, names: host.names.clone() })
    };
    composed.hosts.iter().filter_map(entry).collect()
}

/// Returns the serial number of a node's `index`th data disk.
#[must_use]
pub fn data_disk_serial(index: usize) -> String {
    format!("everett-data{index}")
}

fn data_disk(index: usize, disk: &world_file::DataDisk) -> protocol::DataDisk {
    protocol::DataDisk {
        serial: data_disk_serial(index),
        path: disk.guest_path.clone(),
        filesystem: disk.filesystem.name().to_owned(),
        format_blank: true,
        owner: disk.owner.clone(),
    }
}

fn put_file(file: &world_file::FileEntry, pieces: &mut Vec<protocol::PutFile>) {
    let piece = |append, data: &[u8]| protocol::PutFile {
        path: file.guest_path.clone(),
        mode: file.mode(),
        owner: file.agent_owner(),
        append,
        data: protocol::Bytes(data.to_vec()),
    };
    if file.content.is_empty() {
        pieces.push(piece(false, &[]));
    }
    for (i, data) in file.content.chunks(limits::PUT_FILE_BYTES_MAX).enumerate() {
        pieces.push(piece(i > 0, data));
    }
}

fn service(service: &world_file::Service) -> protocol::Service {
    let delay_ms = service.restart_delay_ns / NS_PER_MS;
    protocol::Service {
        name: service.name.clone(),
        argv: service.command.argv.clone(),
        env: service.command.env.clone(),
        cwd: service.command.cwd.clone(),
        user: service.command.user.clone(),
        ready: service.ready.as_ref().map(|ready| protocol::Readiness {
            check: match ready {
                world_file::Ready::Tcp(talk) => protocol::ReadyCheck::Tcp {
                    address: Ipv4Addr::LOCALHOST.into(),
                    port: talk.tcp,
                    send: talk.send.clone(),
                    expect: talk.expect.clone(),
                },
                world_file::Ready::Command(argv) => protocol::ReadyCheck::Command { argv: argv.clone() },
            },
            interval_ms: service.ready_interval_ns.map_or(READY_INTERVAL_MS, |ns| (ns / NS_PER_MS).max(1)),
            limit_ms: service.ready_timeout_ns / NS_PER_MS,
        }),
        restart: match service.restart {
            world_file::Restart::Never => protocol::Restart::Never,
            world_file::Restart::OnFailure => protocol::Restart::OnFailure { delay_ms },
            world_file::Restart::Always => protocol::Restart::Always { delay_ms },
        },
        // Services get no history port, so they run as they would on any other machine.
        history: false,
    }
}

/// Pause between attempts of a readiness check, in milliseconds of vtime. A shorter pause would cost more instructions.
const READY_INTERVAL_MS: u64 = 20;

/// Environment variable with the timeline's seed, for drivers and checks.
pub const SEED_VARIABLE: &str = "EVERETT_SEED";
/// Environment variable with the number of a repeated driver's earlier starts, or with the number of a test command's
/// run.
pub const ROUND_VARIABLE: &str = "EVERETT_ROUND";

fn driver_service(driver: &world_file::Driver) -> protocol::Service {
    protocol::Service {
        name: driver.name.clone(),
        argv: driver.command.argv.clone(),
        env: driver.command.env.clone(),
        cwd: driver.command.cwd.clone(),
        user: driver.command.user.clone(),
        ready: None,
        restart: protocol::Restart::Never,
        history: true,
    }
}

/// Returns the file to which libraries for test commands append. Writing it also creates its folder.
fn output_file() -> protocol::PutFile {
    protocol::PutFile {
        path: format!("{OUTPUT_FOLDER}/sdk.jsonl"),
        mode: 0o644,
        owner: None,
        append: false,
        data: protocol::Bytes(Vec::new()),
    }
}

/// Returns a command of a test template as a service that is started once, by this plan of its node.
#[must_use]
pub fn test_command(service: String, plan: &AgentScript, name: &str) -> protocol::Service {
    let folder = plan.template.as_deref().unwrap_or_default();
    let mut env = BTreeMap::from([(OUTPUT_VARIABLE.to_owned(), OUTPUT_FOLDER.to_owned())]);
    if plan.sdk.is_some() {
        env.extend(sdk::variables(name));
    }
    protocol::Service {
        name: service,
        argv: [&plan.prefix[..], &[format!("{folder}/{name}")]].concat(),
        env,
        cwd: None,
        user: None,
        ready: None,
        restart: protocol::Restart::Never,
        history: true,
    }
}

/// Returns the request for a check that is a command on its node; `None` for any other check.
fn agent_check(check: &world_file::Check) -> Option<Check> {
    let CheckKind::Command(command) = &check.what else { return None };
    let exec = protocol::Exec {
        env: command.env.clone(),
        cwd: command.cwd.clone(),
        user: command.user.clone(),
        limit_ms: Some(check.timeout_ns / NS_PER_MS),
        history: true,
        ..protocol::Exec::new(command.argv.clone())
    };
    Some(Check { name: check.name.clone(), exec })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const WORLD: &str = r#"
[[node]]
name = "a"
service = ["server"]
[[workload.driver]]
name = "load"
argv = ["load"]
[[workload.check]]
name = "alive"
argv = ["ping"]
"#;

    fn world() -> World {
        world_file::parse(WORLD, Path::new("w.toml")).unwrap()
    }

    fn plan(world: &World) -> AgentScript {
        AgentScript::new(world, &world.nodes[0], protocol::Root::None, None)
    }

    #[test]
    fn drivers_and_checks_get_the_history_port_and_services_do_not() {
        let plan = plan(&world());
        assert_eq!(plan.services.iter().map(|service| service.history).collect::<Vec<_>>(), [false]);
        assert_eq!(plan.drivers.iter().map(|driver| driver.service.history).collect::<Vec<_>>(), [true]);
        assert_eq!(plan.checks.iter().map(|check| check.exec.history).collect::<Vec<_>>(), [true]);
    }

    #[test]
    fn commands_of_a_template_have_an_output_folder() {
        let mut world = world();
        assert_eq!((plan(&world).template, plan(&world).files), (None, Vec::new()));
        world.workload.template = Some("/t".to_owned());
        let plan = plan(&world);
        assert_eq!(plan.template.as_deref(), Some("/t"));
        assert_eq!(
            plan.files.iter().map(|file| &*file.path).collect::<Vec<_>>(),
            ["/tmp/antithesis/sdk.jsonl"]
        );
        let command = test_command("s".to_owned(), &plan, "anytime_a b");
        assert_eq!(command.argv, ["/t/anytime_a b"]);
        assert_eq!(command.env.len(), 1, "there is no SDK");
        assert_eq!(command.env[OUTPUT_VARIABLE], OUTPUT_FOLDER);
        assert!(command.history);
    }

    #[test]
    fn all_pieces_of_a_file_have_its_mode() {
        let mut world = world();
        let put = |content: Vec<u8>| world_file::FileEntry::of_root("/f".to_owned(), content.into());
        let long = [b"#!/bin/sh\n".to_vec(), vec![b'x'; limits::PUT_FILE_BYTES_MAX]].concat();
        world.nodes[0].files = vec![put(long.clone()), put(Vec::new())];
        let pieces = plan(&world).files;
        let told: Vec<_> =
            pieces.iter().map(|piece| (piece.mode, piece.append, piece.data.0.len())).collect();
        let (max, rest) = (limits::PUT_FILE_BYTES_MAX, long.len() - limits::PUT_FILE_BYTES_MAX);
        assert_eq!(told, [(0o755, false, max), (0o755, true, rest), (0o644, false, 0)]);
        world.nodes[0].files[0].own_mode = Some(0o400);
        (world.nodes[0].files[1].owner, world.nodes[0].files[1].group) =
            (Some("b".to_owned()), Some("c".to_owned()));
        let told = plan(&world).files.into_iter().map(|piece| (piece.mode, piece.owner)).collect::<Vec<_>>();
        assert_eq!(told, [(0o400, None), (0o400, None), (0o644, Some("b:c".to_owned()))]);
    }
}
