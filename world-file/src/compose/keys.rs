//! The keys of compose files and what Everett does with each. `docs/compose.md` has the same table.

use std::collections::BTreeMap;

use super::value::{Value, unknown};
use crate::error::Error;

/// Treatment of a key by Everett.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// Everett applies the key.
    Used,
    /// The key has no effect, for this reason.
    Ignored(&'static str),
    /// The key is an error, for this reason.
    Refused(&'static str),
    /// The key is an error, for this reason, unless its value is in this list.
    Unless(&'static [&'static str], &'static str),
}

use Fate::{Ignored, Refused, Unless, Used};

/// Top-level keys of a compose file.
pub(super) const TOP: [(&str, Fate); 9] = [
    ("name", Used),
    ("version", Ignored("compose itself ignores it")),
    ("services", Used),
    ("networks", Used),
    ("volumes", Used),
    ("configs", Used),
    ("secrets", Used),
    ("include", Refused("not supported; write the services into one file, or use extends")),
    ("models", Refused("only the host can give models")),
];

const ONE_CPU: &str = "each machine has one CPU of its own";
const OWN_MEMORY: &str = "each machine has memory of its own; mem_limit sets it";
const HOST: &str = "only the host can give this, and a world sees nothing of its host";
const NO_RESOLVER: &str = "names are those of the world, and there is no other server to ask";

/// Keys of a service.
pub(super) const SERVICE: [(&str, Fate); 93] = [
    ("image", Used),
    ("build", Used),
    ("command", Used),
    ("entrypoint", Used),
    ("environment", Used),
    ("env_file", Used),
    ("healthcheck", Used),
    ("depends_on", Used),
    ("restart", Used),
    ("deploy", Used),
    ("scale", Used),
    ("profiles", Used),
    ("extends", Used),
    ("volumes", Used),
    ("tmpfs", Used),
    ("configs", Used),
    ("secrets", Used),
    ("networks", Used),
    ("network_mode", Used),
    ("links", Used),
    ("extra_hosts", Used),
    ("hostname", Used),
    ("container_name", Used),
    ("ulimits", Used),
    ("sysctls", Used),
    ("cap_add", Used),
    ("cap_drop", Used),
    ("user", Used),
    ("working_dir", Used),
    ("mem_limit", Used),
    ("stop_grace_period", Used),
    ("stop_signal", Used),
    ("init", Used),
    ("ports", Ignored("nothing listens on the host; machines reach each other at every port")),
    ("expose", Ignored("machines reach each other at every port")),
    ("labels", Ignored("they say nothing about the process")),
    ("label_file", Ignored("they say nothing about the process")),
    ("annotations", Ignored("they say nothing about the process")),
    ("logging", Ignored("the output is part of Everett's own")),
    ("attach", Ignored("the output is part of Everett's own")),
    ("tty", Ignored("the output is part of Everett's own")),
    ("stdin_open", Ignored("nothing is typed into a service")),
    ("pull_policy", Ignored("images are pulled once and locked")),
    ("pull_refresh_after", Ignored("images are pulled once and locked")),
    ("develop", Ignored("a world does not change while it runs")),
    ("platform", Unless(&["linux/amd64", "linux/x86_64", "linux"], "machines are linux/amd64")),
    ("cpus", Ignored(ONE_CPU)),
    ("cpu_count", Ignored(ONE_CPU)),
    ("cpu_percent", Ignored(ONE_CPU)),
    ("cpu_shares", Ignored(ONE_CPU)),
    ("cpu_period", Ignored(ONE_CPU)),
    ("cpu_quota", Ignored(ONE_CPU)),
    ("cpu_rt_period", Ignored(ONE_CPU)),
    ("cpu_rt_runtime", Ignored(ONE_CPU)),
    ("cpuset", Ignored(ONE_CPU)),
    ("mem_reservation", Ignored(OWN_MEMORY)),
    ("mem_swappiness", Ignored(OWN_MEMORY)),
    ("memswap_limit", Ignored(OWN_MEMORY)),
    ("oom_kill_disable", Ignored(OWN_MEMORY)),
    ("oom_score_adj", Ignored(OWN_MEMORY)),
    ("shm_size", Ignored("/dev/shm has half of the machine's memory")),
    ("pids_limit", Ignored("each machine has process numbers of its own")),
    ("blkio_config", Ignored("each machine has disks of its own")),
    ("storage_opt", Ignored("each machine has disks of its own")),
    ("security_opt", Ignored("there is no seccomp or AppArmor profile")),
    ("read_only", Ignored("the root filesystem can be written; it is lost with the power")),
    ("userns_mode", Ignored("each machine has users of its own")),
    ("domainname", Ignored("names of the world have no domain")),
    ("dns", Refused(NO_RESOLVER)),
    ("dns_opt", Refused(NO_RESOLVER)),
    ("dns_search", Refused(NO_RESOLVER)),
    ("group_add", Refused("not supported; write user: USER:GROUP")),
    ("mac_address", Refused("the world numbers its cards itself")),
    ("external_links", Refused("nothing outside of the file is in the world")),
    ("volumes_from", Refused("each service is a machine of its own, and machines share no disk")),
    ("privileged", Unless(&["false"], HOST)),
    ("devices", Refused(HOST)),
    ("device_cgroup_rules", Refused(HOST)),
    ("gpus", Refused(HOST)),
    ("runtime", Unless(&["runc"], HOST)),
    ("pid", Refused(HOST)),
    ("ipc", Unless(&["private", "shareable", "none"], HOST)),
    ("uts", Refused(HOST)),
    ("cgroup", Unless(&["private"], HOST)),
    ("cgroup_parent", Refused(HOST)),
    ("credential_spec", Refused(HOST)),
    ("isolation", Unless(&["default"], HOST)),
    ("use_api_socket", Unless(&["false"], HOST)),
    ("provider", Refused("only the host can give this")),
    ("models", Refused("only the host can give models")),
    ("post_start", Refused("not supported; use a service with depends_on")),
    ("pre_stop", Refused("not supported; a service can catch its stop_signal")),
    ("x-everett", Used),
];

/// Checks the keys of a mapping. Adds keys without effect to `ignored`.
pub(super) fn check(
    map: &Value,
    table: &[(&str, Fate)],
    ignored: &mut BTreeMap<String, &'static str>,
) -> Result<(), Error> {
    let known: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    for (key, value) in map.entries()? {
        let fate = table.iter().find(|(name, _)| *name == key.name).map(|(_, fate)| *fate);
        match fate {
            None if key.name.starts_with("x-") => {}
            None => return Err(unknown(&key, &value.path, &known)),
            Some(Used) => {}
            Some(Ignored(why)) => {
                ignored.insert(key.name, why);
            }
            Some(_) if value.is_null() => {}
            Some(Refused(why)) => return Err(key.at.error(&value.path, format!("refused: {why}"))),
            Some(Unless(fine, why)) => {
                if !value.text().is_ok_and(|text| fine.contains(&text)) {
                    return Err(key.at.error(&value.path, format!("refused: {why}")));
                }
            }
        }
    }
    Ok(())
}
