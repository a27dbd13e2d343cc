//! Parses the settings of programs that run in a guest: command line, environment, working folder, readiness check.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cursor::{Item, Table};
use super::error::Error;
use super::paths;
use super::talk::{TALK_KEYS, Talk, talk};

/// Maximum number of arguments of a program.
pub(super) const ARGUMENTS_MAX: usize = 1_024;
/// Maximum length of one argument or environment value, in bytes (Linux's MAX_ARG_STRLEN).
pub(super) const ARGUMENT_BYTES_MAX: usize = 128 << 10;
/// Maximum number of environment variables.
pub(super) const ENVIRONMENT_MAX: usize = 256;
/// Default time within which a service must become ready, in nanoseconds of vtime.
pub(super) const READY_TIMEOUT_NS_DEFAULT: u64 = 60_000_000_000;
/// Default pause before a restart, in nanoseconds of vtime.
const RESTART_DELAY_NS_DEFAULT: u64 = 100_000_000;
/// Unit in which the agent, Everett's program in the guest, counts time spans, in nanoseconds.
const AGENT_MILLISECOND_NS: u64 = 1_000_000;
/// Maximum time span that the agent counts, in nanoseconds: one day.
pub(super) const AGENT_SPAN_NS_MAX: u64 = 86_400 * 1_000_000_000;

/// A program with its arguments, environment, working folder and user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Program and arguments. The guest looks the program up in its PATH. Empty only if the command line comes from a
    /// container image ([`Service::image`]).
    pub argv: Vec<String>,
    /// Variables that are added to the agent's environment.
    pub env: BTreeMap<String, String>,
    /// Working folder in the guest. `None` means the container image's folder, or `/` without an image.
    pub cwd: Option<String>,
    /// User in the guest as whom the program runs. `None` means root, or the user of the container image.
    pub user: Option<String>,
}

/// Reaction of the agent to the end of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// The agent leaves the service stopped.
    Never,
    /// The agent restarts the service unless its exit status was 0.
    OnFailure,
    /// The agent always restarts the service.
    Always,
}

/// Condition under which Everett considers a service ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// A TCP port of the node accepts a connection and gives the expected answer.
    Tcp(Talk),
    /// The program with this command line ends with status 0.
    Command(Vec<String>),
}

/// A program that the agent starts as soon as the node is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Name of the service in the output, unique on the node.
    pub name: String,
    /// Command line with environment, working folder and user.
    pub command: Command,
    /// Readiness condition. If `None`, the service is ready as soon as it is started.
    pub ready: Option<Ready>,
    /// Time within which the service must become ready, in nanoseconds of vtime.
    pub ready_timeout_ns: u64,
    /// Reaction of the agent to the end of the service.
    pub restart: Restart,
    /// Pause before a restart, in nanoseconds of vtime.
    pub restart_delay_ns: u64,
    /// Pause between attempts of a readiness command, in nanoseconds of vtime. `None` means the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_interval_ns: Option<u64>,
    /// True for a service that does its work once. Its node is ready when the service has ended with status 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_job: bool,
    /// Settings for a command line that comes from the node's container image. `None` if the service has its own
    /// command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageProcess>,
}

/// A service whose command line comes from its node's container image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageProcess {
    /// First part of the command line. `None` means the image's entrypoint.
    pub entrypoint: Option<Vec<String>>,
    /// Second part of the command line. `None` means the image's command, or no second part if `entrypoint` is set.
    pub command: Option<Vec<String>>,
    /// True if the image's healthcheck is used as readiness check. A readiness check of the service takes precedence.
    pub healthcheck: bool,
}

impl Default for ImageProcess {
    fn default() -> ImageProcess {
        ImageProcess { entrypoint: None, command: None, healthcheck: true }
    }
}

impl Service {
    /// Returns the service that runs a container image's own command.
    pub(super) fn of_image(name: String) -> Service {
        let command = Command { argv: Vec::new(), env: BTreeMap::new(), cwd: None, user: None };
        let image = Some(ImageProcess::default());
        Service { image, ..Service::of_command(name, command) }
    }

    /// Returns a service that has no readiness check and is never restarted.
    pub(super) fn of_command(name: String, command: Command) -> Service {
        Service {
            name,
            command,
            ready: None,
            ready_timeout_ns: READY_TIMEOUT_NS_DEFAULT,
            restart: Restart::Never,
            restart_delay_ns: RESTART_DELAY_NS_DEFAULT,
            ready_interval_ns: None,
            is_job: false,
            image: None,
        }
    }
}

/// Keys of a command. The tables of services and of drivers (commands that put load on a world) have these and further
/// keys.
pub(super) const COMMAND_KEYS: [&str; 4] = ["argv", "env", "cwd", "user"];

/// Reads the command in a table that has the keys [`COMMAND_KEYS`].
pub(super) fn command(table: &Table<'_>) -> Result<Command, Error> {
    let argv = argv(&table.require("argv")?)?;
    with_argv(table, argv, user_name)
}

/// Reads the environment, working folder and user of a command. `user` reads the value of the key `user`.
fn with_argv(
    table: &Table<'_>,
    argv: Vec<String>,
    user: fn(&Item<'_>) -> Result<String, Error>,
) -> Result<Command, Error> {
    let mut env = BTreeMap::new();
    if let Some(item) = table.get("env") {
        for (name, value) in item.table()?.entries() {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(value.error("not a name for an environment variable"));
            }
            env.insert(name, argument(&value)?);
            if env.len() > ENVIRONMENT_MAX {
                return Err(item.error(format!("at most {ENVIRONMENT_MAX} variables are allowed")));
            }
        }
    }
    let cwd = table.get("cwd").map(|item| paths::guest(&item, item.str()?)).transpose()?;
    let user = table.get("user").map(|item| user(&item)).transpose()?;
    Ok(Command { argv, env, cwd, user })
}

/// Reads a list of strings: a program and its arguments.
pub(super) fn argv(item: &Item<'_>) -> Result<Vec<String>, Error> {
    let argv: Vec<String> = item.list(ARGUMENTS_MAX)?.iter().map(argument).collect::<Result<_, _>>()?;
    if argv.first().is_none_or(String::is_empty) {
        return Err(item.error("the first element must name a program"));
    }
    Ok(argv)
}

fn argument(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    if text.contains('\0') || text.len() > ARGUMENT_BYTES_MAX {
        return Err(item.error(format!("at most {ARGUMENT_BYTES_MAX} bytes, none of them NUL")));
    }
    Ok(text.to_owned())
}

/// Reads the name of a unit, i.e. of a service, a driver or a check. The output shows the name before each line of the
/// unit.
pub(super) fn unit_name(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    if !is_unit_name(text) {
        return Err(item.error(format!("\"{text}\" is not a name: 1 to 63 of a-z, A-Z, 0-9, '-', '_', '.'")));
    }
    Ok(text.to_owned())
}

pub(super) fn is_unit_name(text: &str) -> bool {
    (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// Reads the key `service`: a command line, or a list of services. `node` is the node's name if the node has a
/// container image.
pub(super) fn services(item: &Item<'_>, most: usize, node: Option<&str>) -> Result<Vec<Service>, Error> {
    let elements = item.list(ARGUMENTS_MAX)?;
    if node.is_some() && elements.is_empty() {
        return Ok(Vec::new());
    }
    if !elements.first().is_some_and(Item::is_table) {
        let command = Command { argv: argv(item)?, env: BTreeMap::new(), cwd: None, user: None };
        let name = name_of_program(&command.argv).ok_or_else(|| {
            item.error("the program's name is not a valid unit name; write [[node.service]] with \"name\"")
        })?;
        return Ok(vec![Service::of_command(name, command)]);
    }
    let mut services: Vec<Service> = Vec::new();
    for element in item.list(most)? {
        let service = service(&element.table()?, node)?;
        if services.iter().any(|other| other.name == service.name) {
            return Err(element.error(format!(
                "two services are named \"{}\"; give one of them another \"name\"",
                service.name
            )));
        }
        services.push(service);
    }
    Ok(services)
}

fn service(table: &Table<'_>, node: Option<&str>) -> Result<Service, Error> {
    let own = ["name", "ready", "ready_timeout", "restart", "restart_delay"];
    let of_image: &[&str] = if node.is_some() { &IMAGE_KEYS } else { &[] };
    table.only(&[&own[..], &COMMAND_KEYS, of_image].concat(), &[])?;
    let (command, image) = match (table.get("argv"), node) {
        (None, Some(_)) => (with_argv(table, Vec::new(), user_and_group)?, Some(image_process(table)?)),
        (Some(item), Some(_)) => (with_argv(table, argv(&item)?, user_and_group)?, None),
        (_, None) => (command(table)?, None),
    };
    if let Some(item) = IMAGE_KEYS.iter().find_map(|key| table.get(key)).filter(|_| image.is_none()) {
        return Err(
            item.error("this has no effect with argv, which is the whole command line; remove one of them")
        );
    }
    let name = match (table.get("name"), node) {
        (Some(item), _) => unit_name(&item)?,
        (None, Some(node)) if image.is_some() => node.to_owned(),
        (None, _) => name_of_program(&command.argv).ok_or_else(|| table.error("\"name\" is missing"))?,
    };
    let ready = table.get("ready").map(|item| ready(&item)).transpose()?;
    let ready_timeout_ns = span(table, "ready_timeout", READY_TIMEOUT_NS_DEFAULT)?;
    let restart = match table.get("restart") {
        None => Restart::Never,
        Some(item) => match item.str()? {
            "never" => Restart::Never,
            "on-failure" => Restart::OnFailure,
            "always" => Restart::Always,
            other => return Err(item.error(format!("\"{other}\" is not one of never, on-failure, always"))),
        },
    };
    let restart_delay_ns = span(table, "restart_delay", RESTART_DELAY_NS_DEFAULT)?;
    Ok(Service {
        ready,
        ready_timeout_ns,
        restart,
        restart_delay_ns,
        image,
        ..Service::of_command(name, command)
    })
}

/// Keys of a service whose command line comes from a container image.
const IMAGE_KEYS: [&str; 3] = ["entrypoint", "command", "healthcheck"];

fn image_process(table: &Table<'_>) -> Result<ImageProcess, Error> {
    let words =
        |item: Item<'_>| item.list(ARGUMENTS_MAX)?.iter().map(argument).collect::<Result<Vec<_>, _>>();
    Ok(ImageProcess {
        entrypoint: table.get("entrypoint").map(words).transpose()?,
        command: table.get("command").map(words).transpose()?,
        healthcheck: table.get("healthcheck").map(|item| item.bool()).transpose()?.unwrap_or(true),
    })
}

/// Reads a time span in nanoseconds of vtime. The agent counts it in whole milliseconds.
pub(super) fn span(table: &Table<'_>, key: &str, default_ns: u64) -> Result<u64, Error> {
    let Some(item) = table.get(key) else { return Ok(default_ns) };
    let ns = item.duration_ns()?;
    if ns == 0 || ns > AGENT_SPAN_NS_MAX || !ns.is_multiple_of(AGENT_MILLISECOND_NS) {
        return Err(item.error("must be between 1ms and 24h, in whole milliseconds"));
    }
    Ok(ns)
}

/// Reads the name or number of a user in the guest.
pub(super) fn user_name(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    if !is_unit_name(text) {
        return Err(item.error(format!("\"{text}\" is not the name of a user")));
    }
    Ok(text.to_owned())
}

/// Reads a user of a container image: `USER` or `USER:GROUP`, each as a name or a number.
fn user_and_group(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    let (user, group) = text.split_once(':').unwrap_or((text, "0"));
    if !is_unit_name(user) || !is_unit_name(group) {
        return Err(
            item.error(format!("\"{text}\" is neither a user nor a user and a group, such as \"app:staff\""))
        );
    }
    Ok(text.to_owned())
}

/// Returns the last part of the program's path, if it is a valid unit name.
fn name_of_program(argv: &[String]) -> Option<String> {
    let name = argv.first()?.rsplit('/').next()?;
    is_unit_name(name).then(|| name.to_owned())
}

/// Reads a readiness condition.
pub(super) fn ready(item: &Item<'_>) -> Result<Ready, Error> {
    let table = item.table()?;
    table.only(&[&TALK_KEYS[..], &["command"]].concat(), &[])?;
    let other = ["send", "expect"].into_iter().find_map(|key| table.get(key).map(|item| (key, item)));
    match (table.get("tcp"), table.get("command"), other) {
        (Some(_), None, Some(("send", item))) if table.get("expect").is_none() => Err(item.error(
            "\"send\" needs \"expect\"; without \"expect\" nothing is sent, and an open port is enough",
        )),
        (Some(port), None, _) => talk(&table, &port).map(Ready::Tcp),
        (None, Some(_), Some((key, item))) => Err(item.error(format!("\"{key}\" works only with \"tcp\""))),
        (None, Some(command), None) => Ok(Ready::Command(argv(&command)?)),
        _ => Err(item.error("give either tcp = PORT or command = [PROGRAM, …]")),
    }
}
