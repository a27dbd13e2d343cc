//! Writes drafts of world files for compose files: readiness checks of services without a healthcheck, workload,
//! faults, exploration.

use std::fmt::Write as _;
use std::path::Path;

use everett_image_origin::ImageOrigin;

use super::common::{Answering, faults, head, properties, ready, workload};
use super::error::Error;
use super::servers::{self, Server};
use super::text::quoted;
use super::{Parts, Wanted, named_from};
use crate::Node;

/// Returns a draft whose machines are those of a compose file.
pub(super) fn draft(file: &Path, wanted: &Wanted) -> Result<Parts, Error> {
    if wanted.nodes.is_some() {
        return Err(Error::NodesOfCompose);
    }
    if wanted.port.is_some() {
        return Err(Error::PortOfCompose);
    }
    let files = crate::compose::files(file).unwrap_or_else(|| vec![file.to_owned()]);
    let texts = crate::read_files(&files).map_err(Error::Compose)?;
    if crate::compose::has_block(&crate::compose_texts(&texts)).map_err(Error::Compose)? {
        return Err(Error::HasBlock(file.to_owned()));
    }
    let world = crate::load(file).map_err(Error::Compose)?;
    let servers: Vec<Found<'_>> = world.nodes.iter().filter_map(serving).collect();

    let mut text = head("The machines of a compose file, with readiness checks, a workload and faults.");
    let names = files.iter().map(|file| Ok(quoted(&named_from(&wanted.output, file)?)));
    let names = names.collect::<Result<Vec<_>, Error>>()?;
    let names = if names.len() == 1 { names.concat() } else { format!("[{}]", names.join(", ")) };
    let _ = writeln!(text, "compose = {names}         # each replica of a service is a machine\n");
    let without: Vec<&Found<'_>> = servers.iter().filter(|found| found.needs_ready).collect();
    if !without.is_empty() {
        text += "# Ports at which services without a healthcheck answer when they are ready. Remove a line if its port is wrong.\n\
                 [ready]\n";
        for found in without {
            let _ = writeln!(text, "{} = {}", quoted(found.node), ready(found.port, found.server));
        }
        text.push('\n');
    }
    let published = servers.iter().filter(|found| found.is_published);
    let answering: Vec<Answering<'_>> = published
        .map(|found| Answering { node: found.node, port: found.port, server: found.server })
        .collect();
    text += &workload(&answering, None);
    text += &faults(world.nodes.len() > 1, true);
    let mut units: Vec<String> = world
        .nodes
        .iter()
        .flat_map(|node| node.services.iter().map(|service| service.name.clone()))
        .collect();
    units.sort_unstable();
    units.dedup();
    text += &properties(&units);
    let silent = |node: &&Node| {
        let service = node.services.first();
        let is_known = servers.iter().any(|found| found.node == node.name);
        service.is_some_and(|service| service.ready.is_none() && !service.is_job) && !is_known
    };
    let silent: Vec<&str> = world.nodes.iter().filter(silent).map(|node| node.name.as_str()).collect();
    let notes = match silent.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "these services count as ready when they have started, unless their images have a healthcheck: {}",
            silent.join(", ")
        )],
    };
    Ok(Parts { text, notes })
}

/// A service that listens on a known port.
struct Found<'w> {
    node: &'w str,
    port: u16,
    server: Option<&'static Server>,
    /// True if the compose file publishes the port, so that clients from outside reach it.
    is_published: bool,
    needs_ready: bool,
}

/// Returns the service of a node, with its port. `None` if the service does its work once and ends, or if its command
/// line does not come from a container image. Also `None` if neither the compose file nor the image's name tells the
/// port.
fn serving(node: &Node) -> Option<Found<'_>> {
    let service = node.services.first().filter(|service| !service.is_job)?;
    let process = service.image.as_ref()?;
    let ports = node.composed.as_ref().map_or(&[][..], |composed| &composed.ports);
    // A service with a command of its own may be a client, although it uses a server's image.
    let runs = |server: &Server| {
        let first = process.command.as_ref().and_then(|words| words.first());
        let program = first.and_then(|word| word.rsplit('/').next());
        process.entrypoint.is_none()
            && program.is_none_or(|word| word.starts_with('-') || server.programs.contains(&word))
    };
    let server = match node.image.as_ref()? {
        ImageOrigin::Named(name)
        | ImageOrigin::Registry(name)
        | ImageOrigin::Docker(name)
        | ImageOrigin::Podman(name) => servers::of_image(name).filter(|server| runs(server)),
        _ => None,
    };
    let usual = server.map(|server| server.port);
    let named = ports.iter().find(|port| usual == Some(port.number)).or_else(|| ports.first());
    let port = named.map(|port| port.number).or(usual)?;
    Some(Found {
        node: &node.name,
        port,
        server: server.filter(|server| server.port == port),
        is_published: named.is_some_and(|port| port.is_published),
        needs_ready: service.ready.is_none() && process.healthcheck,
    })
}
