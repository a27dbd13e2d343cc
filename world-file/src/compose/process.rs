//! Parses the settings of a service's process: command line, environment, healthcheck and restart policy.

use std::collections::BTreeMap;

use everett_input::file::folder_of;
use everett_input::signal;

use super::document::{Document, read_variables};
use super::host_path::host_path;
use super::value::Value;
use crate::command::{
    AGENT_SPAN_NS_MAX, ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, Command, ENVIRONMENT_MAX, ImageProcess,
    READY_TIMEOUT_NS_DEFAULT, Ready, Restart, Service, is_unit_name,
};
use crate::error::Error;
use crate::paths;

/// Pause between attempts of a healthcheck, in nanoseconds of vtime. Container engines wait for seconds, to save the
/// host's time. Everett tries more often, because an early success makes the boot shorter.
const HEALTH_INTERVAL_NS: u64 = 200_000_000;
const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Interval and timeout that container engines use if a healthcheck sets none, in nanoseconds. Everett uses them only
/// to compute how long it waits for a service to become ready.
const INTERVAL_NS: u64 = 30_000_000_000;
const RETRIES: u64 = 3;

/// Parses the settings of a service's process. `name` becomes the name of the process in the output.
pub(super) fn read(document: &Document<'_>, service: &Value, name: &str) -> Result<Service, Error> {
    let env = environment(document, service)?;
    let cwd = match service.get("working_dir")? {
        None => None,
        Some(value) => Some(paths::guest_text(value.text()?).map_err(|what| value.error(what))?),
    };
    let user = match service.get("user")? {
        None => None,
        Some(value) => Some(user(&value)?),
    };
    let mut image = ImageProcess {
        entrypoint: service.get("entrypoint")?.map(|value| words(&value)).transpose()?,
        command: service.get("command")?.map(|value| words(&value)).transpose()?,
        healthcheck: true,
    };
    let mut process = Service::of_command(name.to_owned(), Command { argv: Vec::new(), env, cwd, user });
    if let Some(health) = service.get("healthcheck")? {
        healthcheck(&health, &mut process, &mut image)?;
    }
    restart(service, &mut process)?;
    process.image = Some(image);
    Ok(process)
}

/// Reads a command line: a list of words, or a text that is split as in a shell.
pub(super) fn words(value: &Value) -> Result<Vec<String>, Error> {
    let words = if value.is_list() {
        let texts: Result<Vec<String>, Error> =
            value.items()?.iter().map(|item| Ok(item.text()?.to_owned())).collect();
        texts?
    } else {
        shlex::split(value.text()?).ok_or_else(|| value.error("a quote of the command line is not closed"))?
    };
    let is_long = words.iter().any(|word| word.len() > ARGUMENT_BYTES_MAX);
    if words.len() > ARGUMENTS_MAX || is_long {
        return Err(value.error(format!(
            "a command line has at most {ARGUMENTS_MAX} words of {ARGUMENT_BYTES_MAX} bytes each"
        )));
    }
    Ok(words)
}

/// Returns the environment of a service. Variables of `environment` take precedence over variables of `env_file`.
fn environment(document: &Document<'_>, service: &Value) -> Result<BTreeMap<String, String>, Error> {
    let mut env = BTreeMap::new();
    if let Some(files) = service.get("env_file")? {
        let files = if files.is_list() { files.items()? } else { vec![files] };
        for file in files {
            env.extend(env_file(document, &file)?);
        }
    }
    if let Some(pairs) = service.get("environment")? {
        for pair in pairs.pairs()? {
            if pair.name.is_empty() || pair.name.contains(['=', '\0']) {
                return Err(pair.value.error("not a name for an environment variable"));
            }
            // If the compose file lists a variable without a value, the value comes from Everett's own environment or
            // from `.env`. If neither sets the variable, it is left out.
            match pair.text.or_else(|| document.variables.get(&pair.name)) {
                Some(text) => env.insert(pair.name, text),
                None => env.remove(&pair.name),
            };
        }
    }
    let is_long = env.values().any(|text| text.len() > ARGUMENT_BYTES_MAX || text.contains('\0'));
    if env.len() > ENVIRONMENT_MAX || is_long {
        return Err(service.error(format!(
            "an environment has at most {ENVIRONMENT_MAX} variables of {ARGUMENT_BYTES_MAX} bytes, none of them NUL"
        )));
    }
    Ok(env)
}

fn env_file(document: &Document<'_>, file: &Value) -> Result<Vec<(String, String)>, Error> {
    let (path, required, raw) = if file.is_map() {
        file.only(&["path", "required", "format"])?;
        let path = file.get("path")?.ok_or_else(|| file.error("\"path\" is missing"))?;
        let required = file.get("required")?.map(|value| value.bool()).transpose()?.unwrap_or(true);
        let raw = match file.get("format")? {
            None => false,
            Some(value) if value.text()? == "raw" => true,
            Some(value) => return Err(value.error("the only format is \"raw\"")),
        };
        (path, required, raw)
    } else {
        (file.clone(), true, false)
    };
    let confines = folder_of(&document.file);
    let host = host_path(&path, confines, path.text()?)?;
    if !host.exists() {
        return if required {
            Err(path.error(format!("{}: no such file or folder", host.display())))
        } else {
            Ok(Vec::new())
        };
    }
    read_variables(&host, (!raw).then_some(&document.variables))
}

/// Reads a user and an optional group, each as a name or number.
fn user(value: &Value) -> Result<String, Error> {
    let text = value.text()?;
    let (name, group) = text.split_once(':').unwrap_or((text, "0"));
    if !is_unit_name(name) || !is_unit_name(group) {
        return Err(value.error(format!("\"{}\" is neither a user nor USER:GROUP", text.escape_debug())));
    }
    Ok(text.to_owned())
}

/// Reads a healthcheck, which becomes the readiness check. Its attempts follow each other faster than in a container
/// engine, and continue at least as long.
fn healthcheck(health: &Value, process: &mut Service, image: &mut ImageProcess) -> Result<(), Error> {
    health.only(&["test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"])?;
    let ns = |name: &str, usual: u64| -> Result<u64, Error> {
        Ok(health.get(name)?.map(|value| value.duration_ns()).transpose()?.unwrap_or(usual))
    };
    let (interval, timeout) = (ns("interval", INTERVAL_NS)?, ns("timeout", INTERVAL_NS)?);
    let (start, _) = (ns("start_period", 0)?, ns("start_interval", 0)?);
    let retries = health.get("retries")?.map(|value| value.u64()).transpose()?.unwrap_or(RETRIES);
    let limit = interval.saturating_add(timeout).saturating_mul(retries).saturating_add(start);
    let limit = limit.clamp(READY_TIMEOUT_NS_DEFAULT, AGENT_SPAN_NS_MAX);
    process.ready_timeout_ns = limit - limit % NS_PER_MS;
    if health.get("disable")?.map(|value| value.bool()).transpose()?.unwrap_or(false) {
        image.healthcheck = false;
        return Ok(());
    }
    let Some(test) = health.get("test")? else { return Ok(()) };
    let argv = if test.is_list() {
        let all = words(&test)?;
        match all.split_first() {
            Some((first, [])) if first == "NONE" => {
                image.healthcheck = false;
                return Ok(());
            }
            Some((first, rest)) if first == "CMD" && !rest.is_empty() => rest.to_vec(),
            Some((first, [script])) if first == "CMD-SHELL" => shell(script),
            _ => return Err(test.error("a list begins with CMD, CMD-SHELL or NONE, and has a command")),
        }
    } else {
        shell(test.text()?)
    };
    process.ready = Some(Ready::Command(argv));
    process.ready_interval_ns = Some(HEALTH_INTERVAL_NS);
    Ok(())
}

/// Reads the signal that asks a service to stop.
pub(super) fn stop_signal(value: &Value) -> Result<i32, Error> {
    match signal::number(value.text()?) {
        Ok(number) if number <= signal::NAMED_MAX => Ok(number),
        Ok(_) => Err(value.error("real-time signals are not supported")),
        Err(what) => Err(value.error(what)),
    }
}

/// Reads the time within which a service must stop, in nanoseconds. The time is rounded down to whole seconds, because
/// the compose command passes only whole seconds to container engines.
pub(super) fn grace(value: &Value) -> Result<u64, Error> {
    let ns = value.duration_ns()?;
    if ns > AGENT_SPAN_NS_MAX {
        return Err(value.error("at most a day"));
    }
    Ok(ns - ns % NS_PER_S)
}

fn shell(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
}

/// Reads the key `restart`. If it is missing, reads `deploy.restart_policy`.
fn restart(service: &Value, process: &mut Service) -> Result<(), Error> {
    if let Some(value) = service.get("restart")? {
        let text = value.text()?;
        process.restart = match text.split_once(':').map_or(text, |(policy, _)| policy) {
            "no" => Restart::Never,
            "always" | "unless-stopped" => Restart::Always,
            "on-failure" => Restart::OnFailure,
            _ => {
                let what = "expected no, always, unless-stopped or on-failure";
                return Err(value.error(format!("{what}, found \"{}\"", text.escape_debug())));
            }
        };
        if let Some((policy, count)) = text.split_once(':')
            && (policy != "on-failure" || count.parse::<u32>().is_err())
        {
            return Err(value.error("only on-failure has a number of attempts"));
        }
        return Ok(());
    }
    let Some(deploy) = service.get("deploy")? else { return Ok(()) };
    let Some(policy) = deploy.get("restart_policy")? else { return Ok(()) };
    policy.only(&["condition", "delay", "max_attempts", "window"])?;
    process.restart = match policy.get("condition")? {
        None => Restart::Always,
        Some(value) => match value.text()? {
            "none" => Restart::Never,
            "on-failure" => Restart::OnFailure,
            "any" => Restart::Always,
            _ => return Err(value.error("expected none, on-failure or any")),
        },
    };
    if let Some(value) = policy.get("delay")? {
        let ns = value.duration_ns()?.min(AGENT_SPAN_NS_MAX);
        process.restart_delay_ns = (ns - ns % NS_PER_MS).max(NS_PER_MS);
    }
    Ok(())
}
