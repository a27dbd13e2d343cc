//! Reads the keys `ports` and `expose`: the TCP ports on which a service listens.
//!
//! The keys have no effect on the world, but `everett init` makes readiness checks from them. Malformed entries are
//! ignored.

use super::value::Value;
use crate::composed::Port;

/// Returns the TCP ports of a service. Published ports come before ports that are only exposed.
pub(super) fn of(service: &Value) -> Vec<Port> {
    let list = |key: &str| match service.get(key) {
        Ok(Some(value)) => value.items().unwrap_or_default(),
        _ => Vec::new(),
    };
    let published = list("ports").into_iter().map(|value| (value, true));
    let exposed = list("expose").into_iter().map(|value| (value, false));
    let mut ports: Vec<Port> = Vec::new();
    for (value, is_published) in published.chain(exposed) {
        let Some(number) = number(&value) else { continue };
        if ports.iter().all(|port| port.number != number) {
            ports.push(Port { number, is_published });
        }
    }
    ports
}

/// Returns the port in the container. A range gives its first port. `None` for a port of another protocol, and for a
/// malformed entry.
fn number(entry: &Value) -> Option<u16> {
    let text = |key: &str| Some(entry.get(key).ok()??.text().ok()?.to_owned());
    let (target, protocol) = if entry.is_map() {
        (text("target")?, text("protocol").unwrap_or_else(|| "tcp".to_owned()))
    } else {
        let text = entry.text().ok()?;
        let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        (ports.rsplit(':').next()?.to_owned(), protocol.to_owned())
    };
    let first = target.split('-').next()?;
    first.parse().ok().filter(|port| *port != 0 && protocol == "tcp")
}
