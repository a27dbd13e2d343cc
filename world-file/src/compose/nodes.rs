//! Translates services into machines: their names, their order, and which machines can reach each other.

use std::collections::{BTreeMap, BTreeSet};

use everett_image_origin::ImageOrigin;

use super::document::Document;
use super::service::{self, Condition, Service};
use super::value::Value;
use crate::NODES_MAX;
use crate::composed::{After, Composed, HostNames, HostOf};
use crate::error::Error;
use crate::files::Reader;
use crate::node::Node;

/// Maximum length of a machine's name, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// All machines of a compose file.
pub(crate) struct Composition {
    pub(crate) nodes: Vec<Node>,
    /// Pairs of machines that have no network in common.
    pub(crate) apart: Vec<(String, String)>,
    /// Notes for the operator about keys that have no effect.
    pub(crate) notes: Vec<String>,
}

/// Translates a compose file into machines.
pub(super) fn of(
    document: &mut Document<'_>,
    images: &BTreeMap<String, ImageOrigin>,
) -> Result<Composition, Error> {
    service::check_networks(document)?;
    let mut reader = Reader::default();
    let mut services: Vec<Service> = Vec::new();
    for (name, value) in document.services.clone() {
        services.push(service::read(document, &name, &value, images, &mut reader)?);
    }
    let total: usize = services.iter().map(|service| service.replicas).sum();
    if total > NODES_MAX || total == 0 {
        let at = &services[0].value;
        return Err(at.at().error(
            "services",
            format!("with all replicas there are {total} machines; a world has 1 to {NODES_MAX}"),
        ));
    }
    follow_links(&mut services);
    check_order(&services, document)?;
    check_volumes(&services)?;
    let names = names(&services)?;
    let jobs = jobs(&services);
    let mut nodes = Vec::new();
    for (service, own) in services.iter().zip(&names) {
        for name in own {
            let mut process = service.process.clone();
            process.name.clone_from(name);
            process.is_job = jobs.contains(service.name.as_str());
            nodes.push(Node {
                name: name.clone(),
                memory_bytes: service.memory_bytes,
                packages: Vec::new(),
                image: Some(service.image.clone()),
                volumes_bytes: Some(service.volumes_bytes),
                files: service.mounts.files.clone(),
                disks: Vec::new(),
                services: vec![process],
                composed: Some(Composed {
                    hostname: service.hostname.clone(),
                    hosts: hosts(service, name, &services, &names),
                    after: after(service, &services, &names),
                    volumes: service.mounts.volumes.clone(),
                    binds: service.mounts.binds.clone(),
                    tmpfs: service.mounts.tmpfs.clone(),
                    ulimits: service.ulimits.clone(),
                    sysctls: service.sysctls.clone(),
                    cap_add: service.cap_add.clone(),
                    cap_drop: service.cap_drop.clone(),
                    stop_signal: service.stop_signal,
                    stop_grace_ns: service.stop_grace_ns,
                    init: service.init,
                    ports: service.ports.clone(),
                }),
            });
        }
    }
    Ok(Composition { nodes, apart: apart(&services, &names), notes: notes(document) })
}

/// Makes each service depend on the services that it links to.
fn follow_links(services: &mut [Service]) {
    for service in services {
        for (name, _) in &service.links {
            if !service.depends.iter().any(|one| one.service == *name) {
                service.depends.push(service::Depends {
                    service: name.clone(),
                    condition: Condition::Started,
                    required: true,
                    restart: false,
                    value: service.value.clone(),
                });
            }
        }
    }
}

/// Checks that the required services in `depends_on` exist, and that no services wait for each other in a cycle.
fn check_order(services: &[Service], document: &Document<'_>) -> Result<(), Error> {
    let find = |name: &str| services.iter().position(|service| service.name == name);
    for service in services {
        for one in &service.depends {
            if find(&one.service).is_some() || !one.required {
                continue;
            }
            let known = document.all.contains(&one.service);
            let name = one.service.escape_debug();
            return Err(one.value.error(if known {
                format!("the service \"{name}\" is in a profile that is off")
            } else {
                format!("there is no service \"{name}\"")
            }));
        }
    }
    // Each pass of the loop removes the services that wait for no service in `rest`. The services that no pass removes
    // are in a cycle, or wait for a service in a cycle.
    let mut rest: BTreeSet<usize> = (0..services.len()).collect();
    loop {
        let waits = |&index: &usize| {
            let mut depends = services[index].depends.iter().filter_map(|one| find(&one.service));
            depends.any(|other| rest.contains(&other))
        };
        let next: BTreeSet<usize> = rest.iter().copied().filter(waits).collect();
        if next.len() == rest.len() {
            break;
        }
        rest = next;
    }
    let Some(&first) = rest.first() else { return Ok(()) };
    let mut chain = vec![first];
    let mut at = first;
    loop {
        let mut depends = services[at].depends.iter().filter_map(|one| find(&one.service));
        let Some(next) = depends.find(|other| rest.contains(other)) else { break };
        let seen = chain.iter().position(|&earlier| earlier == next);
        chain.push(next);
        at = next;
        if let Some(start) = seen {
            chain.drain(..start);
            break;
        }
    }
    let names: Vec<&str> = chain.iter().map(|&index| services[index].name.as_str()).collect();
    let service = &services[chain[0]].value;
    let value = service.get("depends_on")?.unwrap_or_else(|| service.clone());
    Err(value.error(format!("services wait for each other: {}", names.join(" -> "))))
}

/// Checks that no named volume is used by several machines, because a volume is on the disk of one machine.
fn check_volumes(services: &[Service]) -> Result<(), Error> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for service in services {
        for (volume, value) in &service.mounts.named {
            let error = |who: String| {
                value.error(format!(
                    "the volume \"{volume}\" is also that of {who}; each service is a machine of its own, and machines \
                     share no disk"
                ))
            };
            if service.replicas > 1 {
                let count = service.replicas;
                return Err(error(format!("the other {} replicas (write an anonymous volume)", count - 1)));
            }
            if let Some(other) = owners.insert(volume, &service.name)
                && other != service.name
            {
                return Err(error(format!("\"{other}\"")));
            }
        }
    }
    Ok(())
}

/// Returns the names of each service's machines. A machine has the service's name in lower case, with dashes in place
/// of `_` and `.`. If there are several replicas, a number follows.
fn names(services: &[Service]) -> Result<Vec<Vec<String>>, Error> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    let mut all = Vec::new();
    for service in services {
        let plain: String = service.name.to_ascii_lowercase().replace(['_', '.'], "-");
        let plain = plain.trim_matches('-');
        let numbered = |number| format!("{plain}-{number}");
        let own: Vec<String> = match service.replicas {
            1 => vec![plain.to_owned()],
            count => (1..=count).map(numbered).collect(),
        };
        for name in &own {
            check_name(&service.value, name)?;
            if let Some(other) = taken.insert(name.clone(), &service.name) {
                let what =
                    format!("its machine would have the name \"{name}\", as that of the service \"{other}\"");
                return Err(service.value.error(what));
            }
        }
        all.push(own);
    }
    Ok(all)
}

fn check_name(value: &Value, name: &str) -> Result<(), Error> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(fine) || name == "localhost" {
        return Err(value.error(format!("\"{}\" cannot be the name of a machine", name.escape_debug())));
    }
    Ok(())
}

/// Returns the services that others wait for with `service_completed_successfully`.
fn jobs(services: &[Service]) -> BTreeSet<&str> {
    let depends = services.iter().flat_map(|service| &service.depends);
    depends.filter(|one| one.condition == Condition::Completed).map(|one| one.service.as_str()).collect()
}

fn after(service: &Service, services: &[Service], names: &[Vec<String>]) -> Vec<After> {
    let mut after = Vec::new();
    for one in &service.depends {
        let Some(index) = services.iter().position(|other| other.name == one.service) else { continue };
        let ready = one.condition != Condition::Started;
        let restart = one.restart;
        after.extend(names[index].iter().map(|node| After { node: node.clone(), ready, restart }));
    }
    after
}

/// Returns the lines of `/etc/hosts` for a machine: its own names, the machines on its networks, and `extra_hosts`.
fn hosts(service: &Service, own: &str, services: &[Service], names: &[Vec<String>]) -> Vec<HostNames> {
    let mut hosts = Vec::new();
    for (other, nodes) in services.iter().zip(names) {
        let common: Vec<&Vec<String>> =
            service.networks.keys().filter_map(|network| other.networks.get(network)).collect();
        let is_own = other.name == service.name;
        if common.is_empty() && !is_own {
            continue;
        }
        let aliases = common.into_iter().flatten();
        let linked = service.links.iter().filter(|(name, _)| *name == other.name).map(|(_, alias)| alias);
        let more: Vec<&String> =
            std::iter::once(&other.name).chain(&other.names).chain(aliases).chain(linked).collect();
        for node in nodes.iter().filter(|node| !is_own || !service.networks.is_empty() || *node == own) {
            let mut all = vec![node.clone()];
            for name in &more {
                if !all.contains(name) {
                    all.push((*name).clone());
                }
            }
            hosts.push(HostNames { of: HostOf::Node(node.clone()), names: all });
        }
    }
    let extra = service.extra_hosts.iter();
    hosts.extend(extra.map(|(name, at)| HostNames { of: HostOf::Address(*at), names: vec![name.clone()] }));
    hosts
}

/// Returns all pairs of machines that have no network in common.
fn apart(services: &[Service], names: &[Vec<String>]) -> Vec<(String, String)> {
    let mut all: Vec<(&Service, &String)> = Vec::new();
    for (service, own) in services.iter().zip(names) {
        all.extend(own.iter().map(|name| (service, name)));
    }
    let mut apart = Vec::new();
    for (index, (service, name)) in all.iter().enumerate() {
        for (other, other_name) in &all[index + 1..] {
            if !service.networks.keys().any(|network| other.networks.contains_key(network)) {
                apart.push(((*name).clone(), (*other_name).clone()));
            }
        }
    }
    apart
}

fn notes(document: &Document<'_>) -> Vec<String> {
    let file = document.file.display();
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, why) in &document.ignored {
        by_reason.entry(why).or_default().push(key);
    }
    let mut notes: Vec<String> = by_reason
        .iter()
        .map(|(why, keys)| format!("{file}: no effect: {} ({why})", keys.join(", ")))
        .collect();
    let missing = document.variables.missing();
    if !missing.is_empty() {
        notes.push(format!("{file}: variables that are not set became empty: {}", missing.join(", ")));
    }
    notes
}
