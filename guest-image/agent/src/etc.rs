//! Files in `/etc` with the machine's name and network: `hostname`, `hosts` and `resolv.conf`.

use std::fmt::Write as _;
use std::fs;

use everett_protocol::{HostEntry, Join};

use crate::failure::{Context as _, Failure};

/// Sets the host name and writes `/etc/hostname`.
pub(crate) fn write_name(hostname: &str) -> Result<(), Failure> {
    rustix::system::sethostname(hostname.as_bytes())
        .context(|| format!("set the host name to {hostname}"))?;
    fs::create_dir_all("/etc").context(|| String::from("make /etc"))?;
    put("/etc/hostname", &format!("{hostname}\n"))
}

/// Writes `/etc/hosts` and `/etc/resolv.conf`.
pub(crate) fn write_network(hostname: &str, join: &Join) -> Result<(), Failure> {
    put("/etc/hosts", &hosts(hostname, &join.hosts))?;
    let mut nameservers = String::new();
    for address in &join.nameservers {
        let _ = writeln!(nameservers, "nameserver {address}");
    }
    put("/etc/resolv.conf", &nameservers)
}

fn hosts(hostname: &str, entries: &[HostEntry]) -> String {
    let mut hosts = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    for entry in entries {
        let _ = writeln!(hosts, "{} {}", entry.address, entry.names.join(" "));
    }
    // The machine's own name must resolve. Debian's installer uses the same address for it.
    if !entries.iter().any(|entry| entry.names.iter().any(|name| name == hostname)) {
        let _ = writeln!(hosts, "127.0.1.1 {hostname}");
    }
    hosts
}

/// Replaces a file. If the path is a symbolic link, this removes the link and does not follow it.
fn put(path: &str, content: &str) -> Result<(), Failure> {
    let _ = fs::remove_file(path);
    fs::write(path, content).context(|| format!("write {path}"))
}
