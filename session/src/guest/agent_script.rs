//! Requests to a node's agent (Everett's program in the guest), derived from the world file.

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

/// Agent script: all requests that Everett sends to one node's agent, in order. They are the same under every seed,
/// because Everett passes the seed to drivers and checks only when it starts them.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentScript {
    /// Name of the node.
    pub node: String,
    /// First request. It prepares the machine up to the restart point. A node can start again from this point after a
    /// power loss.
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
    /// Words that Everett puts before each command line that is not in the world file, e.g. before a test command. For
    /// a node with a container image, they are the shim, i.e. the program that prepares the machine as a container
    /// engine would, and its options. Other nodes have none.
    pub prefix: Vec<String>,
    /// Files that the agent writes before the services start, split into pieces.
    pub files: Vec<protocol::PutFile>,
    /// Services. The agent starts all of them after it has written the files.
    pub services: Vec<protocol::Service>,
    /// Nodes that must be started or ready before this node's services start at the first boot.
    pub after: Vec<world_file::After>,
    /// Names of services that run once. The node is ready after all of them ended with status 0. Later boots do not
    /// start them.
    pub jobs: Vec<String>,
    /// Names of the services that Everett can restart: the services in the world file.
    pub restartable: BTreeSet<String>,
    /// Way in which Everett stops the node's services.
    pub stop: Stop,
    /// Drivers (client programs of the workload), started when all services are ready.
    pub drivers: Vec<Driver>,
    /// Checks of this node, in the order of the world file. They run after the workload.
    pub checks: Vec<Check>,
    /// Folder of a test template, i.e. of test commands that Everett runs as part of the workload. The agent lists the
    /// commands in this folder before the machine counts as ready.
    pub template: Option<String>,
    /// The SDK in this node, if the world file has the section `[sdk]`.
    pub sdk: Option<Sdk>,
    /// Length of the pause after the workload, in nanoseconds of vtime. During the pause the world runs without drivers
    /// and faults. The checks, and the commands `eventually_…` or `finally_…` of the test template, run after it.
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

/// Check by the agent: a command in the guest.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Name of the check in the output.
    pub name: String,
    /// Command to run.
    pub exec: protocol::Exec,
}

/// A check, by either the agent or Everett.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldCheck {
    /// Check by an agent: index of its node, and index of the check among that node's checks.
    Agent(usize, usize),
    /// Check by Everett, over the wire.
    Host(Arc<HostCheck>),
}

/// Check in which Everett connects to a node from its own wire port and waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    /// Name of the check in the output.
    pub name: String,
    /// Index of the node that has to answer.
    pub node: usize,
    /// Address and port to connect to.
    pub to: SocketAddr,
    /// Everett's endpoint on the wire, from which it connects.
    pub host: EndpointConfig,
    /// Bytes to send.
    pub send: Vec<u8>,
    /// Bytes that must occur in the answer.
    pub expect: Vec<u8>,
    /// Time limit for the connection and the answer together, in nanoseconds of vtime.
    pub timeout_ns: u64,
}

/// Returns the checks of the nodes in `started`, in the order of the world file. Checks of other nodes are left out.
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
                    // A wire has at most PORTS_MAX ports, so the number fits.
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

/// Returns Everett's own port on the wire. Its name is not a valid node name.
#[must_use]
pub fn host_port() -> PortConfig {
    PortConfig { name: "_host".to_owned(), mac: [0x02, 0x65, 0x76, 0, 0xff, 0xfe] }
}

impl AgentScript {
    /// Creates the script for `node`. `root` is the root disk of the node's machine, `image` its container image.
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
        // Variables in the world file override the SDK's.
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
            // The shim starts the programs of a container image.
            if let Some(image) = image {
                service.argv = image.command_line(node, &driver.command, service.argv);
                (service.env, service.cwd, service.user) = Default::default();
            }
            with_sdk(&driver.name, &driver.command.env, &mut service.env);
            Driver { service, repeat: driver.repeat }
        };
        let check = |check: &world_file::Check| {
            let mut agent = agent_check(check)?;
            if let (Some(image), CheckKind::Command(command)) = (image, &check.what) {
                agent.exec.argv = image.command_line(node, command, agent.exec.argv);
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
        // Nodes of compose files get a DNS server, as containers do.
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
    /// Returns the request that the agent gets at the restart point. The node joins the world at `vtime_ns`.
    #[must_use]
    pub fn join(&self, entropy: Vec<u8>, vtime_ns: u64) -> protocol::Join {
        let seconds = self.epoch_unix_s.saturating_add(vtime_ns / NS_PER_S);
        protocol::Join {
            entropy: protocol::Bytes(entropy),
            clock: protocol::WallClock {
                seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
                // The remainder is less than 10^9 and fits.
                nanoseconds: (vtime_ns % NS_PER_S) as u32,
            },
            disks: self.disks.clone(),
            hosts: self.hosts.clone(),
            nameservers: self.nameservers.clone(),
            interfaces: self.interfaces.clone(),
        }
    }
}

/// Length of the network prefix, in bits. All nodes are in 10.0.0.0/16. They are numbered from 10.0.0.1 in the order of
/// the world file.
const NETWORK_PREFIX: u8 = 16;
/// Address of Everett's endpoint on the wire.
const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 255, 254);

fn address(world: &World, node: &Node) -> IpAddr {
    node_address(world.nodes.iter().position(|other| other.name == node.name).unwrap_or(0))
}

/// Returns the address of the node with this index in the world file.
#[must_use]
pub fn node_address(index: usize) -> IpAddr {
    // A world has at most NODES_MAX nodes, so the number fits in the last byte.
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap_or(u8::MAX)))
}

fn hosts(world: &World) -> Vec<protocol::HostEntry> {
    let entry =
        |node: &Node| protocol::HostEntry { address: address(world, node), names: vec![node.name.clone()] };
    world.nodes.iter().map(entry).collect()
}

/// Returns the lines of `/etc/hosts` for a node from a compose file.
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

/// Returns the serial number of the node's data disk with this index.
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
        // A service gets no history port (through which drivers and checks report operations), so it runs as on any
        // other machine.
        history: false,
    }
}

/// Pause between attempts of a readiness check, in milliseconds of vtime. The guest executes more instructions with a
/// shorter pause.
const READY_INTERVAL_MS: u64 = 20;

/// Environment variable that passes the timeline's seed to drivers, test commands and checks.
pub const SEED_VARIABLE: &str = "EVERETT_SEED";
/// Environment variable with the run number of a driver or test command. For a repeated driver, this is the number of
/// its earlier starts.
pub const ROUND_VARIABLE: &str = "EVERETT_ROUND";

fn driver_service(driver: &world_file::Driver) -> protocol::Service {
    protocol::Service {
        env: driver.command.env.clone(),
        cwd: driver.command.cwd.clone(),
        user: driver.command.user.clone(),
        history: true,
        ..containers::service(&driver.name, driver.command.argv.clone())
    }
}

/// Returns an empty file in the output folder of test commands. SDK libraries in the commands append their lines to it.
/// When the agent writes the file, it also creates the folder.
fn output_file() -> protocol::PutFile {
    protocol::PutFile {
        path: format!("{OUTPUT_FOLDER}/sdk.jsonl"),
        mode: 0o644,
        owner: None,
        append: false,
        data: protocol::Bytes(Vec::new()),
    }
}

/// Returns the service that runs the command `name` of a test template once. `script` is the agent script of the node.
#[must_use]
pub fn test_command(service: &str, script: &AgentScript, name: &str) -> protocol::Service {
    let folder = script.template.as_deref().unwrap_or_default();
    let mut env = BTreeMap::from([(OUTPUT_VARIABLE.to_owned(), OUTPUT_FOLDER.to_owned())]);
    if script.sdk.is_some() {
        env.extend(sdk::variables(name));
    }
    let argv = [&script.prefix[..], &[format!("{folder}/{name}")]].concat();
    protocol::Service { env, history: true, ..containers::service(service, argv) }
}

/// Returns the agent's check, if the check in the world file is a command. Returns `None` for a check over the wire.
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

    fn script(world: &World) -> AgentScript {
        AgentScript::new(world, &world.nodes[0], protocol::Root::None, None)
    }

    #[test]
    fn drivers_and_checks_get_the_history_port_and_services_do_not() {
        let script = script(&world());
        assert_eq!(script.services.iter().map(|service| service.history).collect::<Vec<_>>(), [false]);
        assert_eq!(script.drivers.iter().map(|driver| driver.service.history).collect::<Vec<_>>(), [true]);
        assert_eq!(script.checks.iter().map(|check| check.exec.history).collect::<Vec<_>>(), [true]);
    }

    #[test]
    fn commands_of_a_template_have_an_output_folder() {
        let mut world = world();
        assert_eq!((script(&world).template, script(&world).files), (None, Vec::new()));
        world.workload.template = Some("/t".to_owned());
        let script = script(&world);
        assert_eq!(script.template.as_deref(), Some("/t"));
        assert_eq!(
            script.files.iter().map(|file| &*file.path).collect::<Vec<_>>(),
            ["/tmp/antithesis/sdk.jsonl"]
        );
        let command = test_command("s", &script, "anytime_a b");
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
        let pieces = script(&world).files;
        let told: Vec<_> =
            pieces.iter().map(|piece| (piece.mode, piece.append, piece.data.0.len())).collect();
        let (max, rest) = (limits::PUT_FILE_BYTES_MAX, long.len() - limits::PUT_FILE_BYTES_MAX);
        assert_eq!(told, [(0o755, false, max), (0o755, true, rest), (0o644, false, 0)]);
        world.nodes[0].files[0].own_mode = Some(0o400);
        (world.nodes[0].files[1].owner, world.nodes[0].files[1].group) =
            (Some("b".to_owned()), Some("c".to_owned()));
        let told =
            script(&world).files.into_iter().map(|piece| (piece.mode, piece.owner)).collect::<Vec<_>>();
        assert_eq!(told, [(0o400, None), (0o400, None), (0o644, Some("b:c".to_owned()))]);
    }
}
