//! The collector: a background process that holds the port to Everett and reads the folder of SDK lines.

use std::fs::{self, File};
use std::io::IoSlice;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::files::Folder;
use crate::{Context as _, Failure, port};

/// Maximum number of connections that wait while the collector is busy.
const WAITING_MAX: i32 = 128;
/// Score for `oom_score_adj`. With this score, the kernel never kills the process when memory is short.
const NEVER_KILLED: &str = "-1000";

/// Creates the socket and the output folder, and starts the collector in the background.
pub(crate) fn start() -> Result<(), Failure> {
    let what = || "make the socket for SDK lines".to_owned();
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .context(what)?;
    rustix::net::bind(&socket, &port::address()?).context(what)?;
    rustix::net::listen(&socket, WAITING_MAX).context(what)?;
    crate::files::make()?;
    Command::new("/proc/self/exe")
        .arg("--serve")
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context(|| "start the collector".to_owned())?;
    Ok(())
}

/// Runs the collector. Returns only after a failure.
pub(crate) fn serve() -> Result<(), Failure> {
    // If the kernel refuses this, it may kill the collector like any other process.
    let _ = fs::write("/proc/self/oom_score_adj", NEVER_KILLED);
    let _ = rustix::process::setsid();
    let socket: OwnedFd =
        std::io::stdin().as_fd().try_clone_to_owned().context(|| "take the socket".to_owned())?;
    let port = port::open()?;
    let mut folder = Folder::watch()?;
    folder.read(&port)?;
    loop {
        let mut polled = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&folder, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context(|| "wait for programs".to_owned()),
        }
        let [connected, written] = polled.map(|one| !one.revents().is_empty());
        if connected {
            pass(&socket, &port);
        }
        if written {
            folder.read(&port)?;
        }
    }
}

/// Passes the port to the next process that connects. Ignores errors, because the process may have gone away.
fn pass(socket: &OwnedFd, port: &File) {
    let Ok(connection) = rustix::net::accept_with(socket, SocketFlags::CLOEXEC) else { return };
    let descriptors = [port.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::sendmsg(&connection, &[IoSlice::new(&[1])], &mut control, flags);
}
