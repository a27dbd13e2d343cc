//! Validation of requests and messages after decoding: bounds, and the form of paths, names and arguments.
//!
//! Both ends validate. The sender reports the error to its caller. The receiver does not trust the sender.

use crate::limits::{
    ARGUMENTS_MAX, ENTROPY_BYTES_MAX, ENTROPY_BYTES_MIN, INTERVAL_MS_MAX, LIST_ITEMS_MAX, LISTED_BYTES_MAX,
    LISTED_NAMES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX, PRIORITIES_MAX, PRIORITY_MAX, PUT_FILE_BYTES_MAX,
    READY_TEXT_BYTES_MAX, SERIAL_BYTES_MAX,
};
use crate::message::{Message, Reply, Response};
use crate::request::{
    DataDisk, Exec, Interface, Join, Mount, Operation, Readiness, ReadyCheck, Request, Restart, Root,
    Service, WallClock,
};
use crate::text::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Error that names the first invalid value of a request or a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Error {
    /// Path of the value, for example `services[1].argv`.
    pub field: String,
    /// Reason why the value is invalid.
    pub problem: String,
}

fn fail<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, Error> {
    Err(Error { field: field.into(), problem: problem.into() })
}

/// Checks all values of a request.
///
/// # Errors
/// Returns an error for the first invalid value.
pub fn request(request: &Request) -> Result<(), Error> {
    match &request.op {
        Operation::Mount(value) => mount(value),
        Operation::Join(value) => join(value),
        Operation::Reseed { entropy: value } => entropy(value),
        Operation::Start { services: value } => services(value),
        Operation::Exec(value) => exec(value),
        Operation::Signal { service, signal } => {
            name("service", service)?;
            // Linux has signals 1 to 64. Signal number 0 would only check that the process exists.
            if (1..=64).contains(signal) {
                Ok(())
            } else {
                fail("signal", format!("{signal} is not 1 to 64"))
            }
        }
        Operation::Prioritize { service, priorities } => {
            name("service", service)?;
            if !(1..=PRIORITIES_MAX).contains(&priorities.len()) {
                return fail("priorities", format!("{} of them; 1 to {PRIORITIES_MAX}", priorities.len()));
            }
            match priorities.iter().find(|&&priority| priority > PRIORITY_MAX) {
                Some(priority) => fail("priorities", format!("{priority}; at most {PRIORITY_MAX}")),
                None => Ok(()),
            }
        }
        Operation::PutFile(file) => {
            path("path", &file.path)?;
            optional("owner", file.owner.as_ref(), owner)?;
            if file.mode > 0o7777 {
                return fail("mode", format!("{:o} has bits beyond 7777", file.mode));
            }
            if file.data.0.len() > PUT_FILE_BYTES_MAX {
                return fail("data", format!("{} bytes; at most {PUT_FILE_BYTES_MAX}", file.data.0.len()));
            }
            Ok(())
        }
        Operation::List { path: value } => path("path", value),
        Operation::SetClock(value) => clock("set_clock", value),
        Operation::Pack(pack) => serial("serial", &pack.serial),
        Operation::Ping | Operation::PowerOff => Ok(()),
    }
}

/// Checks a message. Only [`Reply::Names`] has rules: its bounds, its order and the form of each name.
///
/// # Errors
/// Returns an error for the first invalid value.
pub fn message(message: &Message) -> Result<(), Error> {
    match message {
        Message::Response(Response { reply: Reply::Names(names), .. }) => listed(names),
        _ => Ok(()),
    }
}

fn listed(names: &[String]) -> Result<(), Error> {
    count("names", names.len(), LISTED_NAMES_MAX)?;
    let bytes: usize = names.iter().map(String::len).sum();
    if bytes > LISTED_BYTES_MAX {
        return fail("names", format!("{bytes} bytes; at most {LISTED_BYTES_MAX}"));
    }
    if !names.is_sorted_by(|a, b| a < b) {
        return fail("names", "not each once and in order");
    }
    each("names", names, |field, name| {
        if matches!(name.as_str(), "" | "." | "..") || name.contains(['/', '\0']) {
            return fail(field, format!("{name:?} is no file's name"));
        }
        Ok(())
    })
}

fn mount(mount: &Mount) -> Result<(), Error> {
    if let Root::Disk { serial: number, filesystem: kind, .. } = &mount.root {
        serial("root.serial", number)?;
        filesystem("root.filesystem", kind)?;
    }
    host_name("hostname", &mount.hostname)
}

fn join(join: &Join) -> Result<(), Error> {
    entropy(&join.entropy)?;
    clock("clock", &join.clock)?;
    count("disks", join.disks.len(), LIST_ITEMS_MAX)?;
    each("disks", &join.disks, disk)?;
    count("hosts", join.hosts.len(), LIST_ITEMS_MAX)?;
    each("hosts", &join.hosts, |field, entry| {
        count(field, entry.names.len(), LIST_ITEMS_MAX)?;
        each(field, &entry.names, |field, value| host_name(field, value))
    })?;
    count("nameservers", join.nameservers.len(), LIST_ITEMS_MAX)?;
    count("interfaces", join.interfaces.len(), LIST_ITEMS_MAX)?;
    each("interfaces", &join.interfaces, interface)
}

fn entropy(entropy: &Bytes) -> Result<(), Error> {
    let bytes = entropy.0.len();
    if (ENTROPY_BYTES_MIN..=ENTROPY_BYTES_MAX).contains(&bytes) {
        Ok(())
    } else {
        fail("entropy", format!("{bytes} bytes; {ENTROPY_BYTES_MIN} to {ENTROPY_BYTES_MAX} are allowed"))
    }
}

fn interface(field: &str, value: &Interface) -> Result<(), Error> {
    name(&format!("{field}.name"), &value.name)?;
    // IFNAMSIZ is 16, including the final zero.
    if value.name.len() > 15 {
        return fail(format!("{field}.name"), "longer than 15 bytes");
    }
    let bits = if value.address.is_ipv4() { 32 } else { 128 };
    if value.prefix > bits {
        return fail(format!("{field}.prefix"), format!("{} is more than {bits}", value.prefix));
    }
    match value.gateway {
        Some(gateway) if gateway.is_ipv4() != value.address.is_ipv4() => {
            fail(format!("{field}.gateway"), "not of the address's family")
        }
        _ => Ok(()),
    }
}

/// Filesystems that the agent can create on a blank disk.
const FORMATS: [&str; 2] = ["ext4", "xfs"];

fn disk(field: &str, value: &DataDisk) -> Result<(), Error> {
    serial(&format!("{field}.serial"), &value.serial)?;
    path(&format!("{field}.path"), &value.path)?;
    filesystem(&format!("{field}.filesystem"), &value.filesystem)?;
    optional(&format!("{field}.owner"), value.owner.as_ref(), owner)?;
    if value.format_blank && !FORMATS.contains(&value.filesystem.as_str()) {
        return fail(
            format!("{field}.format_blank"),
            format!("{} cannot be made, only {}", value.filesystem, FORMATS.join(" and ")),
        );
    }
    Ok(())
}

fn services(services: &[Service]) -> Result<(), Error> {
    count("services", services.len(), LIST_ITEMS_MAX)?;
    let mut names = BTreeSet::new();
    each("services", services, |field, value| {
        name(&format!("{field}.name"), &value.name)?;
        if !names.insert(value.name.as_str()) {
            return fail(format!("{field}.name"), format!("{} is there twice", value.name));
        }
        argv(&format!("{field}.argv"), &value.argv)?;
        environment(&format!("{field}.env"), &value.env)?;
        optional(&format!("{field}.cwd"), value.cwd.as_ref(), path)?;
        optional(&format!("{field}.user"), value.user.as_ref(), name)?;
        if let Some(ready) = &value.ready {
            readiness(&format!("{field}.ready"), ready)?;
        }
        match value.restart {
            Restart::Never => Ok(()),
            Restart::OnFailure { delay_ms } | Restart::Always { delay_ms } => {
                interval(&format!("{field}.restart"), delay_ms)
            }
        }
    })
}

fn readiness(field: &str, value: &Readiness) -> Result<(), Error> {
    interval(&format!("{field}.interval_ms"), value.interval_ms)?;
    if value.interval_ms == 0 {
        return fail(format!("{field}.interval_ms"), "0 would try without end");
    }
    interval(&format!("{field}.limit_ms"), value.limit_ms)?;
    match &value.check {
        ReadyCheck::Tcp { port: 0, .. } => fail(format!("{field}.port"), "0 is no port"),
        ReadyCheck::Tcp { send, expect, .. } => {
            for (key, text) in [("send", send), ("expect", expect)] {
                if text.len() > READY_TEXT_BYTES_MAX {
                    let bytes = text.len();
                    return fail(
                        format!("{field}.{key}"),
                        format!("{bytes} bytes; at most {READY_TEXT_BYTES_MAX}"),
                    );
                }
            }
            Ok(())
        }
        ReadyCheck::Command { argv: command } => argv(&format!("{field}.argv"), command),
    }
}

fn exec(value: &Exec) -> Result<(), Error> {
    argv("argv", &value.argv)?;
    environment("env", &value.env)?;
    optional("cwd", value.cwd.as_ref(), path)?;
    optional("user", value.user.as_ref(), name)?;
    value.limit_ms.map_or(Ok(()), |limit| interval("limit_ms", limit))
}

fn argv(field: &str, argv: &[String]) -> Result<(), Error> {
    match argv.first() {
        None => return fail(field, "no program"),
        Some(program) if program.is_empty() => return fail(field, "an empty program"),
        Some(_) => {}
    }
    count(field, argv.len(), ARGUMENTS_MAX)?;
    each(field, argv, |field, value| no_zero(field, value))
}

fn environment(field: &str, env: &BTreeMap<String, String>) -> Result<(), Error> {
    count(field, env.len(), ARGUMENTS_MAX)?;
    for (key, value) in env {
        if key.is_empty() || key.contains(['=', '\0']) {
            return fail(field, format!("{key:?} is no name for a variable"));
        }
        no_zero(&format!("{field}.{key}"), value)?;
    }
    Ok(())
}

fn clock(field: &str, value: &WallClock) -> Result<(), Error> {
    if value.seconds < 0 {
        return fail(field, format!("{} s is before 1970", value.seconds));
    }
    if value.nanoseconds >= 1_000_000_000 {
        return fail(field, format!("{} ns is not less than a second", value.nanoseconds));
    }
    Ok(())
}

fn interval(field: &str, ms: u64) -> Result<(), Error> {
    if ms > INTERVAL_MS_MAX { fail(field, format!("{ms} ms is more than a day")) } else { Ok(()) }
}

fn path(field: &str, path: &str) -> Result<(), Error> {
    no_zero(field, path)?;
    if !path.starts_with('/') {
        return fail(field, format!("{path:?} is not absolute"));
    }
    if path.len() > PATH_BYTES_MAX {
        return fail(field, format!("longer than {PATH_BYTES_MAX} bytes"));
    }
    if path.split('/').any(|part| part == "..") {
        return fail(field, format!("{path:?} has a `..`"));
    }
    Ok(())
}

fn name(field: &str, name: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
        return fail(field, format!("{name:?} is not 1 to {NAME_BYTES_MAX} letters, digits or -_.@"));
    }
    Ok(())
}

fn host_name(field: &str, name: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
        return fail(field, format!("{name:?} is no host name"));
    }
    Ok(())
}

fn owner(field: &str, owner: &str) -> Result<(), Error> {
    match owner.split_once(':') {
        Some((user, group)) => name(field, user).and_then(|()| name(field, group)),
        None => name(field, owner),
    }
}

fn serial(field: &str, serial: &str) -> Result<(), Error> {
    if serial.is_empty() || serial.len() > SERIAL_BYTES_MAX || !serial.bytes().all(|b| b.is_ascii_graphic()) {
        return fail(field, format!("{serial:?} is not 1 to {SERIAL_BYTES_MAX} printable characters"));
    }
    Ok(())
}

fn filesystem(field: &str, kind: &str) -> Result<(), Error> {
    if kind.is_empty() || kind.len() > NAME_BYTES_MAX || !kind.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return fail(field, format!("{kind:?} is no filesystem"));
    }
    Ok(())
}

fn no_zero(field: &str, text: &str) -> Result<(), Error> {
    if text.contains('\0') { fail(field, "has a zero byte") } else { Ok(()) }
}

fn count(field: &str, count: usize, max: usize) -> Result<(), Error> {
    if count > max { fail(field, format!("{count} entries; at most {max}")) } else { Ok(()) }
}

fn optional(
    field: &str,
    value: Option<&String>,
    check: impl Fn(&str, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    value.map_or(Ok(()), |value| check(field, value))
}

fn each<'a, T>(
    field: &str,
    items: &'a [T],
    mut check: impl FnMut(&str, &'a T) -> Result<(), Error>,
) -> Result<(), Error> {
    items.iter().enumerate().try_for_each(|(index, item)| check(&format!("{field}[{index}]"), item))
}
