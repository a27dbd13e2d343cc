//! Well-known servers, which `everett init` can put into drafts of world files.
//!
//! The servers are the rows of a table. A row contains the command that starts a Debian package's server so that other
//! machines reach it. The row also says how Everett checks that the server works, and how large the disk for its state
//! is. Each service runs in the foreground and writes to standard output. After a power loss it starts again on the
//! disk's content.
//!
//! - this file: the fields of a row, and the search for a row
//! - `rows`: the table

mod rows;

pub(super) use rows::SERVERS;

/// A well-known server.
#[derive(Debug)]
pub(super) struct Server {
    /// Debian packages with the server. Empty if Debian has none.
    pub(super) packages: &'static [&'static str],
    /// Last parts of the names of container images that have the server.
    pub(super) images: &'static [&'static str],
    /// Names of the server's program. If the command of a container starts with another program, the container does not
    /// run the server.
    pub(super) programs: &'static [&'static str],
    /// TCP port on which the server listens.
    pub(super) port: u16,
    /// Exchange or command that shows whether the server works.
    pub(super) probe: Probe,
    /// Environment that the server's container images need to start.
    pub(super) image_env: &'static [(&'static str, &'static str)],
    /// Command for the server's container images, if their own command makes the server unreachable for other machines.
    /// Otherwise empty.
    pub(super) image_command: &'static [&'static str],
    /// Memory of a machine that runs the server's container image.
    pub(super) image_memory: &'static str,
    /// Memory of a machine that runs the server's Debian package.
    pub(super) memory: &'static str,
    /// How the Debian package's server is started. [`Start::None`] if Debian has no package.
    pub(super) start: Start,
    /// User as whom the Debian package's server runs. `None` means root.
    pub(super) user: Option<&'static str>,
    /// Environment of the server that is started from the Debian package.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Size of the disk at [`STATE`] with the server's state. `None` if the server keeps no state.
    pub(super) state: Option<&'static str>,
    /// Command that puts load on the server. It ends with status 0 if it succeeds.
    pub(super) load: &'static [&'static str],
}

/// Path of the disk with a server's state.
pub(super) const STATE: &str = "/data";
/// Placeholder in a script. A draft has the names of all machines in its place, separated by spaces.
pub(super) const NODES: &str = "@NODES@";
/// Memory of a machine with a container image. Files that programs write to the root filesystem are in memory, too.
pub(super) const IMAGE_MEMORY: &str = "512M";

/// How Everett checks that a server works.
#[derive(Debug)]
pub(super) enum Probe {
    /// Everett sends bytes to the server, and the answer must contain a text.
    Talk {
        /// Bytes to send.
        send: &'static str,
        /// Text that the answer must contain.
        expect: &'static str,
    },
    /// Everett runs this command in the machine. The command must end with status 0.
    Command(&'static [&'static str]),
}

/// How a server is started.
#[derive(Debug)]
pub(super) enum Start {
    /// Debian has no package of the server.
    None,
    /// The server is started with this command line.
    Argv(&'static [&'static str]),
    /// The server is started by this shell script.
    Script(&'static str),
}

/// Returns the server of a Debian package. The name may include a version (`redis-server=5:7.0.15-1`).
pub(super) fn of_package(name: &str) -> Option<&'static Server> {
    let name = name.split('=').next().unwrap_or(name);
    SERVERS.iter().find(|server| server.packages.contains(&name))
}

/// Returns true if a word is the name of an image whose server is in no Debian package.
pub(super) fn is_only_image(name: &str) -> bool {
    of_image(name).is_some_and(|server| server.packages.is_empty())
}

/// Returns the server of a container image. The last part of the name decides: `docker.io/library/redis:7` is `redis`.
pub(super) fn of_image(name: &str) -> Option<&'static Server> {
    let name = image_name(name);
    SERVERS.iter().find(|server| server.images.contains(&name))
}

/// Returns the last part of an image's name, without the tag and the digest.
pub(super) fn image_name(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split(':').next().unwrap_or(last)
}
