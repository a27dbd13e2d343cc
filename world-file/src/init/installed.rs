//! Writes drafts of world files for machines with a Debian package that contains a systemd unit for its server.

use std::fmt::Write as _;

use super::common::{Answering, faults, head, image_table, properties, workload};
use super::machines::{HAS_PEERS, MAY_HAVE_DISK, MEMORY, names};
use super::text::{label, list, quoted};
use super::unit::UnitFile;
use super::{Listening, Parts, Wanted};

/// Time within which the server must become ready.
const READY_TIMEOUT: &str = "120s";

/// Returns a draft whose service starts as `unit` says. `found` is the port at which the server listened in a trial
/// boot.
pub(super) fn draft(package: &str, unit: &UnitFile, found: Option<Listening>, wanted: &Wanted) -> Parts {
    let names = names(&label(package.split('=').next().unwrap_or(package)), wanted);
    let port = wanted.port.or(found.map(|found| found.port));
    let mut text = head("A server from a Debian package, started as its systemd unit says.") + &image_table();
    for node in &names {
        if node == &names[0] && names.len() > 1 {
            text += HAS_PEERS;
        }
        let _ = writeln!(
            text,
            "[[node]]\nname = {}\nmemory = \"{MEMORY}\"\npackages = {}",
            quoted(node),
            list(&[package])
        );
        match unit.state_folder() {
            Some(folder) => {
                let owner = unit.user().map_or(String::new(), |user| format!(", owner = {}", quoted(user)));
                let _ = writeln!(
                    text,
                    "disk = {{ path = {}, size = \"256M\"{owner} }} # its files survive a power loss",
                    quoted(folder)
                );
            }
            None => text += MAY_HAVE_DISK,
        }
        let _ = write!(
            text,
            "\n[[node.service]]\nname = \"server\"\nargv = {}\nrestart = \"{}\"\n",
            list(&["sh", "-c", &unit.script()]),
            unit.restart
        );
        match port {
            Some(port) => {
                let _ = writeln!(text, "ready = {{ tcp = {port} }}\nready_timeout = \"{READY_TIMEOUT}\"\n");
            }
            None => {
                text += "# ready = { tcp = PORT }           # without this key, the service counts as ready when it has started\n\n"
            }
        }
    }
    let is_reached = wanted.port.is_none() && found.is_some_and(|found| found.everywhere);
    let answering: Vec<Answering<'_>> = match port.filter(|_| is_reached) {
        Some(port) => names.iter().map(|node| Answering { node, port, server: None }).collect(),
        None => Vec::new(),
    };
    text += &workload(&answering, None);
    text += &faults(names.len() > 1, unit.state_folder().is_some());
    text += &properties(&["server".to_owned()]);
    let mut notes = Vec::new();
    if unit.forks {
        notes.push(format!(
            "the unit {} leaves the foreground, so Everett does not see its server end; give its command the option that keeps it in the foreground",
            unit.name
        ));
    }
    match (port, is_reached || wanted.port.is_some()) {
        (None, _) => notes.push(
            "no TCP port was open in a trial boot: the service counts as ready when it has started, and nothing checks whether it answers"
                .to_owned(),
        ),
        (Some(port), false) => notes.push(format!(
            "the server listens at port {port} of its own machine only; change its configuration if other machines need it"
        )),
        _ => {}
    }
    Parts { text, notes }
}
