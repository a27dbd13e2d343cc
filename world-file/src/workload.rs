//! `[workload]`: the commands that put load on a world once its services are up, and the checks at its end.

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

/// Maximum number of drivers, and of checks.
const COMMANDS_MAX: usize = 64;
/// Default time limit of a check, in nanoseconds of vtime.
const CHECK_TIMEOUT_NS_DEFAULT: u64 = 60_000_000_000;

/// Default time to settle before the checks, in nanoseconds of vtime. Balancers, clients and replicas probe each other
/// about once a second, and retry once. Two seconds are enough for most of them to notice that faults are over, and
/// cost an idle world almost nothing.
const SETTLE_NS_DEFAULT: u64 = 2_000_000_000;
/// Maximum time to settle, in nanoseconds of vtime. It is part of the ten minutes that the last commands of a test
/// template have.
const SETTLE_NS_MAX: u64 = 120_000_000_000;

/// Workload of a world: drivers, checks and a test template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// Drivers, started together when every service is ready.
    pub drivers: Vec<Driver>,
    /// Checks, run one after the other at the end, in this order.
    pub checks: Vec<Check>,
    /// Time to settle before the last commands of a test template and the checks, in nanoseconds of vtime. It begins
    /// when faults are over, drivers have stopped and all nodes are up.
    pub settle_ns: u64,
    /// Folder of a test template in the guests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Model of the histories that drivers and checks write. Checking histories changes no timeline.
    #[serde(skip)]
    pub history: Option<Spec>,
}

/// A command that puts load on a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// Unit name in the output.
    pub name: String,
    /// Name of the node on which it runs.
    pub node: String,
    /// Program to run.
    pub command: Command,
    /// True if it is restarted whenever it ends, until the timeline ends.
    pub repeat: bool,
}

/// A check of a world at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Unit name in the output.
    pub name: String,
    /// Name of the node on which it runs, or to which Everett connects.
    pub node: String,
    /// The check itself.
    pub what: CheckKind,
    /// Time limit, in nanoseconds of vtime.
    pub timeout_ns: u64,
}

/// Kind of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// A command on the node; it passes with status 0.
    Command(Command),
    /// A connection that Everett makes to the node from outside; it passes with the expected answer.
    Talk(Talk),
}

impl Default for Workload {
    fn default() -> Workload {
        let (drivers, checks, template, history) = Default::default();
        Workload { drivers, checks, settle_ns: SETTLE_NS_DEFAULT, template, history }
    }
}

impl Workload {
    /// Returns true if Everett makes one of the checks over the wire. Everett then has an endpoint on the wire.
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

/// Reads the unit's name and its node. No other driver, check or service may have the name. In a world with one node,
/// the node can be left out.
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
