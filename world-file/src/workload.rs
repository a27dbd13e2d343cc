//! Reads the table `[workload]`: the commands that put load on a world after its services are up, and the checks at the
//! end.

use everett_explorer::suggest::nearest;
use everett_input::units;
use everett_linearizability::Spec;
use serde::Serialize;

use super::command::{COMMAND_KEYS, Command, command, span, unit_name};
use super::cursor::{Item, Table};
use super::error::Error;
use super::node::Node;
use super::paths;
use super::talk::{TALK_KEYS, Talk, talk};

/// Maximum number of drivers, and also of checks.
const COMMANDS_MAX: usize = 64;
/// Default time limit of a check, in nanoseconds of vtime.
const CHECK_TIMEOUT_NS_DEFAULT: u64 = 60_000_000_000;

/// Default time to settle before the checks, in nanoseconds of vtime. Load balancers, clients and replicas probe each
/// other about once a second, and retry once. Two seconds are enough for most of them to notice that faults are over.
/// An idle world runs through this time almost at once.
const SETTLE_NS_DEFAULT: u64 = 2_000_000_000;
/// Maximum time to settle, in nanoseconds of vtime. The last commands of a test template (programs `eventually_…` and
/// `finally_…`, which check the system under test) have ten minutes from the end of the template's other commands. The
/// time to settle is a part of these ten minutes.
const SETTLE_NS_MAX: u64 = 120_000_000_000;

/// Workload of a world: drivers, checks and a test template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// Drivers. Everett starts all of them when every service is ready.
    pub drivers: Vec<Driver>,
    /// Checks. Everett runs them one after the other at the end of a timeline, in this order.
    pub checks: Vec<Check>,
    /// Time to settle, in nanoseconds of vtime. It starts when faults are over, drivers have stopped and all nodes are
    /// up. Then the last commands of the test template run, and after them the checks.
    pub settle_ns: u64,
    /// Path, in the guests, of the folder with a test template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Model (the rules of a data type, such as a set or a lock) that histories must follow. A history is a record of
    /// operations and their results, which drivers and checks write. The model does not affect timelines.
    #[serde(skip)]
    pub history: Option<Spec>,
}

/// A command that puts load on a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// Name of the driver in the output.
    pub name: String,
    /// Name of the node on which the driver runs.
    pub node: String,
    /// Command line with environment, working folder and user.
    pub command: Command,
    /// True if Everett starts the driver again whenever it ends with status 0, and after each restart of its node,
    /// until the workload ends.
    pub repeat: bool,
}

/// A check at the end of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check in the output.
    pub name: String,
    /// Name of the node on which the check runs, or to which Everett connects.
    pub node: String,
    /// Command or exchange that decides whether the check passes.
    pub what: CheckKind,
    /// Time within which the check must pass, in nanoseconds of vtime.
    pub timeout_ns: u64,
}

/// Kind of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// A command on the node. The check passes if the command ends with status 0.
    Command(Command),
    /// An exchange that Everett has with the node from outside. The check passes if the node gives the expected answer.
    Talk(Talk),
}

impl Default for Workload {
    fn default() -> Workload {
        let (drivers, checks, template, history) = Default::default();
        Workload { drivers, checks, settle_ns: SETTLE_NS_DEFAULT, template, history }
    }
}

impl Workload {
    /// Returns true if Everett connects to a node for one of the checks. The network then has an endpoint for Everett.
    #[must_use]
    pub fn has_host(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.what, CheckKind::Talk(_)))
    }
}

pub(super) fn read(table: Option<Table<'_>>, nodes: &[Node]) -> Result<Workload, Error> {
    let mut workload = Workload::default();
    let Some(table) = table else { return Ok(workload) };
    table.only(&["driver", "check", "history", "template", "settle"], &["composer"])?;
    if let Some(item) = table.get("settle") {
        let ns = item.duration_ns()?;
        if ns > SETTLE_NS_MAX {
            return Err(item.error(format!("at most {}", units::show_duration_ns(SETTLE_NS_MAX))));
        }
        workload.settle_ns = ns;
    }
    workload.history = table.get("history").map(|item| item.deserialize()).transpose()?;
    workload.template = table.get("template").map(|item| paths::guest(&item, item.str()?)).transpose()?;
    let mut names: Vec<String> = Vec::new();
    if let Some(list) = table.get("driver") {
        for item in list.list(COMMANDS_MAX)? {
            let table = item.table()?;
            table.only(&[&["name", "node", "repeat"], &COMMAND_KEYS[..]].concat(), &[])?;
            let (name, node) = name_and_node(&table, nodes, &mut names)?;
            let repeat = table.get("repeat").map(|item| item.bool()).transpose()?.unwrap_or(false);
            workload.drivers.push(Driver { name, node, command: command(&table)?, repeat });
        }
    }
    if let Some(list) = table.get("check") {
        for item in list.list(COMMANDS_MAX)? {
            let table = item.table()?;
            table.only(&[&["name", "node", "timeout"], &COMMAND_KEYS[..], &TALK_KEYS].concat(), &[])?;
            let (name, node) = name_and_node(&table, nodes, &mut names)?;
            let timeout_ns = span(&table, "timeout", CHECK_TIMEOUT_NS_DEFAULT)?;
            workload.checks.push(Check { name, node, what: check_kind(&table)?, timeout_ns });
        }
    }
    Ok(workload)
}

fn check_kind(table: &Table<'_>) -> Result<CheckKind, Error> {
    let keys = |keys: &[&str]| keys.iter().find_map(|key| table.get(key).map(|item| (item, key.to_string())));
    if let Some(tcp) = table.get("tcp") {
        if let Some((item, key)) = keys(&COMMAND_KEYS) {
            return Err(item
                .error(format!("\"{key}\" is for a command on the node, \"tcp\" for a check from outside")));
        }
        return talk(table, &tcp).map(CheckKind::Talk);
    }
    match keys(&TALK_KEYS) {
        Some((item, key)) => Err(item.error(format!("\"{key}\" needs \"tcp\", the node's port"))),
        None => Ok(CheckKind::Command(command(table)?)),
    }
}

/// Reads the name of a driver or check, and its node. No other driver, check or service may have the same name. In a
/// world with one node, the key `node` is optional.
fn name_and_node(
    table: &Table<'_>,
    nodes: &[Node],
    names: &mut Vec<String>,
) -> Result<(String, String), Error> {
    let item = table.require("name")?;
    let name = unit_name(&item)?;
    let taken = nodes.iter().flat_map(|node| &node.services).any(|service| service.name == name);
    if taken || names.contains(&name) {
        return Err(item.error(format!("the name \"{name}\" is taken by another unit")));
    }
    names.push(name.clone());
    let node = match (table.get("node"), nodes) {
        (Some(item), _) => known_node(&item, nodes)?,
        (None, [only]) => only.name.clone(),
        (None, _) => return Err(table.error("\"node\" is missing, and the world has several nodes")),
    };
    Ok((name, node))
}

fn known_node(item: &Item<'_>, nodes: &[Node]) -> Result<String, Error> {
    let text = item.str()?;
    if nodes.iter().any(|node| node.name == text) {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    Err(item.error(match nearest(text, known.iter().copied()) {
        Some(near) => format!("no node is named \"{text}\"; did you mean \"{near}\"?"),
        None => format!("no node is named \"{text}\"; the nodes are {}", known.join(", ")),
    }))
}
