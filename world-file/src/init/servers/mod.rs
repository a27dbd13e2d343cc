//! Well-known servers.
//!
//! A row says how Debian's package is started so that machines reach the server, how a client sees that it serves, and
//! where its state is. Each service runs in the foreground, writes to standard output, and starts again on the disk that a
//! loss of power left behind.
//!
//! - this file: what a row says, and the search for one
//! - `rows`: the servers

mod rows;

pub(super) use rows::SERVERS;

/// A well-known server.
#[derive(Debug)]
pub(super) struct Server {
    /// Debian packages with the server; none if Debian has none.
    pub(super) packages: &'static [&'static str],
    /// Last parts of the names of container images with the server.
    pub(super) images: &'static [&'static str],
    /// Names of its program. A container whose command begins with another program runs something else.
    pub(super) programs: &'static [&'static str],
    /// TCP port.
    pub(super) port: u16,
    /// Whether it serves, in its own protocol.
    pub(super) probe: Probe,
    /// Environment without which its container images do not start.
    pub(super) image_env: &'static [(&'static str, &'static str)],
    /// Command of its container images, if their own one serves no other machine; otherwise empty.
    pub(super) image_command: &'static [&'static str],
    /// Memory of a machine with its container image.
    pub(super) image_memory: &'static str,
    /// Memory of a machine with its Debian package.
    pub(super) memory: &'static str,
    /// Service of the Debian package; [`Start::None`] if Debian has none.
    pub(super) start: Start,
    /// User of Debian's package that runs it; root if `None`.
    pub(super) user: Option<&'static str>,
    /// Environment of the service.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Size of the disk at [`STATE`] with the server's state; `None` without state.
    pub(super) state: Option<&'static str>,
    /// Command that puts load on the server, and ends with status 0 when it has.
    pub(super) load: &'static [&'static str],
}

/// Folder of a server's state.
pub(super) const STATE: &str = "/data";
/// Text in a script that stands for the names of all machines, with spaces between them.
pub(super) const NODES: &str = "@NODES@";
/// Memory of a machine with a container image. Its root filesystem's changes are in memory, too.
pub(super) const IMAGE_MEMORY: &str = "512M";

/// How a client sees that a server serves.
#[derive(Debug)]
pub(super) enum Probe {
    /// Bytes to send, and a part of the answer.
    Talk {
        /// Bytes to send.
        send: &'static str,
        /// Part of the answer.
        expect: &'static str,
    },
    /// A program of the package that ends with status 0.
    Command(&'static [&'static str]),
}

/// How a service is started.
#[derive(Debug)]
pub(super) enum Start {
    /// No package, no service.
    None,
    /// Argument vector.
    Argv(&'static [&'static str]),
    /// Script of sh.
    Script(&'static str),
}

/// Returns the server of a Debian package, which may have a version (`redis-server=5:7.0.15-1`).
pub(super) fn of_package(name: &str) -> Option<&'static Server> {
    let name = name.split('=').next().unwrap_or(name);
    SERVERS.iter().find(|server| server.packages.contains(&name))
}

/// Returns true if a word is the name of an image whose server Debian does not have.
pub(super) fn is_only_image(name: &str) -> bool {
    of_image(name).is_some_and(|server| server.packages.is_empty())
}

/// Returns the server of a container image, by the last part of its name: `docker.io/library/redis:7` is `redis`.
pub(super) fn of_image(name: &str) -> Option<&'static Server> {
    let name = image_name(name);
    SERVERS.iter().find(|server| server.images.contains(&name))
}

/// Returns the last part of an image's name, without tag and digest.
pub(super) fn image_name(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split(':').next().unwrap_or(last)
}
