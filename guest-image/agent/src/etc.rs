//! The files in `/etc` that say who the machine is.

use crate::failure::{Context as _, Failure};
use everett_protocol::Setup;
use std::fmt::Write as _;
use std::fs;

/// Sets the host name and writes `/etc/hostname`, `/etc/hosts` and `/etc/resolv.conf`.
pub(crate) fn write(setup: &Setup) -> Result<(), Failure> {
    rustix::system::sethostname(setup.hostname.as_bytes())
        .context(|| format!("set the host name to {}", setup.hostname))?;
    fs::create_dir_all("/etc").context(|| String::from("make /etc"))?;
    put("/etc/hostname", &format!("{}\n", setup.hostname))?;
    put("/etc/hosts", &hosts(setup))?;
    let mut nameservers = String::new();
    for address in &setup.nameservers {
        let _ = writeln!(nameservers, "nameserver {address}");
    }
    put("/etc/resolv.conf", &nameservers)
}

fn hosts(setup: &Setup) -> String {
    let mut hosts = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    for entry in &setup.hosts {
        let _ = writeln!(hosts, "{} {}", entry.address, entry.names.join(" "));
    }
    // The machine's own name must resolve, as Debian's installer has it.
    if !setup.hosts.iter().any(|entry| entry.names.contains(&setup.hostname)) {
        let _ = writeln!(hosts, "127.0.1.1 {}", setup.hostname);
    }
    hosts
}

/// Replaces the file, also where the image has a link to somewhere else.
fn put(path: &str, content: &str) -> Result<(), Failure> {
    let _ = fs::remove_file(path);
    fs::write(path, content).context(|| format!("write {path}"))
}
