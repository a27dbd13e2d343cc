//! Opens the ports to the host by name, and sends messages and output lines.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::fd::OwnedFd;

use everett_protocol::{Message, Output, Port, encode_message, encode_output};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, netlink};

use crate::clock::{ms, now_ns, timespec};
use crate::failure::{Context as _, Failure};

/// Maximum wait for the host to name its ports, in milliseconds of guest time. The names arrive soon after the driver
/// is loaded, because the kernel asks for them. Only a machine that lacks one of the ports waits this long.
const PORTS_WAIT_MS: u64 = 5_000;

/// Folder in which the kernel lists the ports.
const PORTS_FOLDER: &str = "/sys/class/virtio-ports";

/// Ports that the agent holds open. Linux lets no other process open them.
pub(crate) struct Ports {
    pub(crate) control: File,
    pub(crate) log: File,
    /// Port that the agent passes to programs and never writes to.
    pub(crate) history: File,
}

impl Ports {
    /// Sends a message to the host. Blocks until the host reads the port.
    pub(crate) fn send(&mut self, message: &Message) -> Result<(), Failure> {
        let line = encode_message(message).context(|| String::from("write a message"))?;
        self.control.write_all(&line).context(|| format!("write to {}", Port::Control.name()))
    }

    /// Sends a line of output to the host. Blocks until the host reads the port.
    pub(crate) fn log(&mut self, output: &Output) -> Result<(), Failure> {
        let line = encode_output(output).context(|| String::from("write a line of output"))?;
        self.log.write_all(&line).context(|| format!("write to {}", Port::Log.name()))
    }
}

/// Socket that receives the kernel's device events.
pub(crate) struct Events(OwnedFd);

impl Events {
    /// Opens the socket. The kernel queues later events for it.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let what = || String::from("listen for the kernel's device events");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::DGRAM;
        let protocol = Some(netlink::KOBJECT_UEVENT);
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, protocol).context(what)?;
        // Group 1 has the kernel's own announcements.
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, 1)).context(what)?;
        Ok(Events(socket))
    }

    /// Waits for an event until `deadline_ns` (`CLOCK_MONOTONIC`), and discards all queued events.
    fn wait(&self, deadline_ns: u64) -> Result<(), Failure> {
        let timeout = timespec(deadline_ns.saturating_sub(now_ns()));
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout))
            .context(|| String::from("wait for the kernel's device events"))?;
        let mut buffer = [0u8; 4096];
        // The loop also ends if the queue has overflowed (ENOBUFS). The caller then looks for ports again.
        while rustix::net::recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT).is_ok() {}
        Ok(())
    }
}

/// Waits until the host has named the ports, opens them, and links all ports in `/dev/virtio-ports`.
pub(crate) fn find(events: &Events) -> Result<Ports, Failure> {
    let deadline_ns = now_ns() + ms(PORTS_WAIT_MS);
    loop {
        let devices = named_ports()?;
        let of = |port: Port| devices.iter().find(|(found, _)| *found == port).map(|(_, device)| device);
        // Waits for all ports, so that programs find every link when they start.
        let complete = Port::ALL.into_iter().all(|port| of(port).is_some());
        if complete || now_ns() >= deadline_ns {
            let open = |port: Port| {
                let device =
                    of(port).ok_or_else(|| Failure::new(format!("there is no port {}", port.name())))?;
                let path = format!("/dev/{device}");
                OpenOptions::new().read(true).write(true).open(&path).context(|| format!("open {path}"))
            };
            let (control, log) = (open(Port::Control)?, open(Port::Log)?);
            let ports = Ports { control, log, history: open(Port::History)? };
            link(&devices)?;
            return Ok(ports);
        }
        events.wait(deadline_ns)?;
    }
}

/// Returns the ports that the host has named so far, each with its device (such as `vport0p1`).
fn named_ports() -> Result<Vec<(Port, String)>, Failure> {
    let folder = match fs::read_dir(PORTS_FOLDER) {
        Ok(folder) => folder,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(|| format!("read {PORTS_FOLDER}")),
    };
    let mut ports = Vec::new();
    for entry in folder {
        let entry = entry.context(|| format!("read {PORTS_FOLDER}"))?;
        // The file `name` appears only after the host has sent the name.
        let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if let Some(port) = Port::from_name(name.trim_end()) {
            ports.push((port, entry.file_name().to_string_lossy().into_owned()));
        }
    }
    ports.sort();
    Ok(ports)
}

/// Creates the same links as udev.
fn link(devices: &[(Port, String)]) -> Result<(), Failure> {
    fs::create_dir_all("/dev/virtio-ports").context(|| String::from("make /dev/virtio-ports"))?;
    for (port, device) in devices {
        let path = format!("/dev/virtio-ports/{}", port.name());
        match std::os::unix::fs::symlink(format!("../{device}"), &path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).context(|| format!("make {path}"));
            }
            _ => {}
        }
    }
    Ok(())
}
