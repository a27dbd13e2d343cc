//! Writes the tables that every draft contains: image, workload, faults, exploration and properties. A draft is a world
//! file that `everett init` writes.

use std::fmt::Write as _;

use super::servers::{Probe, Server};
use super::text::{list, quoted};

/// Returns the comment at the start of a draft. Its first line is `about`.
pub(super) fn head(about: &str) -> String {
    format!("# {about}\n# The keys are in docs/guide.md, docs/faults.md and docs/exploring.md.\n\n")
}

/// Returns a readiness check as TOML.
pub(super) fn ready(port: u16, server: Option<&Server>) -> String {
    match server.map(|server| &server.probe) {
        None => format!("{{ tcp = {port} }}"),
        Some(Probe::Talk { send, expect }) => {
            format!("{{ tcp = {port}, send = {}, expect = {} }}", quoted(send), quoted(expect))
        }
        Some(Probe::Command(argv)) => format!("{{ command = {} }}", list(argv)),
    }
}

/// A server to which Everett connects for a check at the end of timelines.
pub(super) struct Answering<'s> {
    pub(super) node: &'s str,
    pub(super) port: u16,
    pub(super) server: Option<&'static Server>,
}

/// Returns the workload's table, with a check for each server in `answering`. `load` is the node and the command line
/// of a driver, a command that puts load on the servers.
pub(super) fn workload(answering: &[Answering<'_>], load: Option<(&str, &[&str])>) -> String {
    let mut out = String::from(
        "# Clients that run while Everett injects faults, and checks that follow when the faults are over.\n[workload]\nsettle = \"2s\"                   # \
         vtime without faults before the checks\n\n",
    );
    match load {
        Some((node, argv)) => {
            let (node, argv) = (quoted(node), list(argv));
            let _ = write!(
                out,
                "# A client. Replace it with a client that records what your system has acknowledged.\n[[workload.driver]]\nname = \
                 \"load\"\nnode = {node}\nargv = {argv}\nrepeat = true                     # Everett starts it again each time it ends with status 0\n\n"
            );
        }
        None => out.push_str(
            "# A client: a program on one of the machines. Here it is a script beside this file. An exit status above 0 is a finding.\n\
             # [[workload.driver]]\n# name = \"load\"\n# node = \"NODE\"                    # the machine that runs it; add to its [[node]]: files = { \
             \"/opt/load.sh\" = \"load.sh\" }\n# argv = [\"sh\", \"/opt/load.sh\"]\n# repeat = true\n\n",
        ),
    }
    for one in answering {
        let node = quoted(one.node);
        let _ = write!(
            out,
            "# When the faults are over, the server must answer. Everett connects to it over the network.\n[[workload.check]]\nname = {}\nnode = \
             {node}\ntcp = {}\n",
            quoted(&format!("{}-answers", one.node)),
            one.port
        );
        if let Some(Probe::Talk { send, expect }) = one.server.map(|server| &server.probe) {
            let _ = write!(out, "send = {}\nexpect = {}\n", quoted(send), quoted(expect));
        }
        out.push('\n');
    }
    out.push_str(
        "# A program that checks what your system promised, for example that no acknowledged write is lost.\n# [[workload.check]]\n# name = \"promise\"\n\
         # node = \"NODE\"\n# argv = [\"sh\", \"/opt/check.sh\"]\n\n",
    );
    out
}

/// Returns the tables of faults, exploration and properties.
pub(super) fn faults(has_several: bool, has_disks: bool) -> String {
    let mut kinds = vec!["power_loss", "pause", "stalls"];
    if has_disks {
        kinds.push("disk_latency");
    }
    if has_several {
        kinds.extend(["partition", "loss", "latency"]);
    }
    let mut out = format!(
        "# Faults that everett explore injects. docs/faults.md lists all kinds, such as reset, slow_cpu and disk_error.\n[faults]\nonly = \
         {}\n\n[faults.power_loss]\nevery = \"5s\"                     # mean time between two power losses\nfor = [\"100ms\", \"2s\"]          \
         # a machine stays off for this long\nup = \"2s\"                        # a machine runs at least this long after it starts again\n\n[faults.pause]\nevery = \
         \"10s\"\nfor = [\"100ms\", \"3s\"]\n\n",
        list(&kinds)
    );
    if has_several {
        out.push_str(
            "[faults.partition]\nevery = \"5s\"\nfor = [\"500ms\", \"5s\"]          # the network stays split for this long\n\n",
        );
    }
    out.push_str(
        "# Length of the timelines that everett explore runs. It forks each timeline after every segment.\n[explore]\nsegment = \"2s\"                   # vtime from one fork to the next\nhorizon = \
         \"10s\"                  # no timeline is longer than this\n\n",
    );
    out
}

/// Maximum number of properties in a draft.
const PROPERTIES: usize = 8;
/// Maximum length of a unit's name within a property's name, in characters.
const UNIT_CHARS_MAX: usize = 55;

/// Returns a property for each of these units, i.e. programs whose lines Everett reads. A `*` in a unit's name stands
/// for any characters.
pub(super) fn properties(units: &[String]) -> String {
    let mut out = String::from(
        "# Log lines that are findings. never is a regular expression. unit is the process whose lines it reads; without unit it\n\
         # reads the lines of all processes, your client's too. nodes = [\"a\"] limits it to some machines. Avoid words that a\n\
         # healthy server logs, too, such as Traceback or corrupt. Name the exception: never = \"^AssertionError\".\n",
    );
    let mut named = Vec::new();
    for unit in units.iter().take(PROPERTIES) {
        let name: String = unit.chars().filter(|c| *c != '*').take(UNIT_CHARS_MAX).collect();
        if named.contains(&name) {
            continue;
        }
        let _ = write!(
            out,
            "[[property]]\nname = {}\nunit = {}\nnever = \"^panic: |^fatal error: |Assertion .* failed|[Ss]egmentation \
             fault|stack smashing\"\n\n",
            quoted(&format!("crash of {}", name.trim_end_matches('-'))),
            quoted(unit)
        );
        named.push(name);
    }
    out.push_str(
        "# A line that at least one timeline should print. If none prints it, the report says so.\n# [[property]]\n# name = \"recovery happens\"\n# unit = \"server\"\n\
         # sometimes = \"(?i)recover\"\n",
    );
    out
}

/// Returns the table `[image]`.
pub(super) fn image_table() -> String {
    "[image]\nsuite = \"bookworm\"               # Debian release of the kernel and the packages\n\n"
        .to_owned()
}
