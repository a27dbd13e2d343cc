//! Parses a service of a compose file: the settings of its machine, and its relations to other services.

use std::collections::BTreeMap;
use std::net::IpAddr;

use everett_image_origin::{ImageBuild, ImageOrigin};
use everett_input::file::{folder_of, in_words};

use super::document::Document;
use super::host_path::host_path;
use super::keys;
use super::mounts::{self, Mounts};
use super::ports;
use super::process;
use super::value::Value;
use crate::command::Service as Process;
use crate::composed::{Port, Ulimit};
use crate::container;
use crate::error::Error;
use crate::files::Reader;
use crate::node::{
    MEMORY_BYTES_DEFAULT, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN, PAGE_BYTES, VOLUMES_BYTES_DEFAULT,
};
use crate::{NODES_MAX, seal};

/// Memory for the kernel and the initramfs, in bytes. Everett adds it to the service's memory limit.
const KERNEL_BYTES: u64 = 96 << 20;
/// Resource limits of setrlimit(2), by the names that container engines use.
const ULIMITS: [&str; 16] = [
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];
/// Name of the network that a service joins if it does not have the key `networks`.
pub(super) const DEFAULT_NETWORK: &str = "default";

/// Condition of an entry in `depends_on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Started,
    Healthy,
    Completed,
}

/// An entry in `depends_on`: a service that must start first.
#[derive(Debug)]
pub(super) struct Depends {
    pub(super) service: String,
    pub(super) condition: Condition,
    pub(super) required: bool,
    pub(super) restart: bool,
    pub(super) value: Value,
}

/// A service of a compose file.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) replicas: usize,
    pub(super) image: ImageOrigin,
    pub(super) memory_bytes: u64,
    pub(super) volumes_bytes: u64,
    pub(super) process: Process,
    pub(super) mounts: Mounts,
    pub(super) ports: Vec<Port>,
    pub(super) depends: Vec<Depends>,
    /// Networks of the service. The value contains the service's additional names on the network.
    pub(super) networks: BTreeMap<String, Vec<String>>,
    /// Additional names of the service on all of its networks.
    pub(super) names: Vec<String>,
    pub(super) hostname: Option<String>,
    /// Services that this service links to. Each has an additional name, which only this service can use.
    pub(super) links: Vec<(String, String)>,
    pub(super) extra_hosts: Vec<(String, IpAddr)>,
    pub(super) ulimits: BTreeMap<String, Ulimit>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) cap_add: Vec<String>,
    pub(super) cap_drop: Vec<String>,
    pub(super) stop_signal: Option<i32>,
    pub(super) stop_grace_ns: Option<u64>,
    pub(super) init: bool,
}

/// Reads a service. `images` maps names of images in the compose file to the images that Everett uses instead.
pub(super) fn read(
    document: &mut Document<'_>,
    name: &str,
    value: &Value,
    images: &BTreeMap<String, ImageOrigin>,
    reader: &mut Reader,
) -> Result<Service, Error> {
    let mut ignored = std::mem::take(&mut document.ignored);
    let checked = keys::check(value, &keys::SERVICE, &mut ignored);
    document.ignored = ignored;
    checked?;
    let document = &*document;
    let own = value.get("x-everett")?;
    if let Some(own) = &own {
        own.only(&["memory", "volumes"])?;
    }
    let own = |key: &str| own.as_ref().map_or(Ok(None), |own| own.get(key));
    let memory_bytes = match own("memory")? {
        Some(item) => memory(&item, item.size_bytes()?)?,
        None => limited_memory(value)?,
    };
    let volumes_bytes = match own("volumes")? {
        Some(item) => crate::disk::checked_size(item.size_bytes()?, crate::Filesystem::Ext4)
            .map_err(|what| item.error(what))?,
        None => VOLUMES_BYTES_DEFAULT,
    };
    let mut service = Service {
        name: name.to_owned(),
        value: value.clone(),
        replicas: replicas(value)?,
        image: image(document, name, value, images)?,
        memory_bytes,
        volumes_bytes,
        process: process::read(document, value, name)?,
        mounts: mounts::read(document, value, reader)?,
        ports: ports::of(value),
        depends: depends(value)?,
        networks: networks(document, value)?,
        names: Vec::new(),
        hostname: None,
        links: links(value)?,
        extra_hosts: extra_hosts(value)?,
        ulimits: ulimits(value)?,
        sysctls: BTreeMap::new(),
        cap_add: capabilities(value, "cap_add")?,
        cap_drop: capabilities(value, "cap_drop")?,
        stop_signal: value.get("stop_signal")?.map(|item| process::stop_signal(&item)).transpose()?,
        stop_grace_ns: value.get("stop_grace_period")?.map(|item| process::grace(&item)).transpose()?,
        init: value.get("init")?.map(|item| item.bool()).transpose()?.unwrap_or(false),
    };
    if let Some(item) = value.get("container_name")? {
        if service.replicas > 1 {
            return Err(item.error("several replicas cannot have one name"));
        }
        service.names.push(host_name(&item, item.text()?)?);
    }
    if let Some(item) = value.get("hostname")? {
        let text = host_name(&item, item.text()?)?;
        service.names.push(text.clone());
        service.hostname = Some(text);
    }
    if let Some(item) = value.get("sysctls")? {
        for pair in item.pairs()? {
            let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let text = pair.text.ok_or_else(|| pair.value.error("a setting has a value"))?;
            if pair.name.is_empty() || !pair.name.chars().all(fine) || pair.name.contains("..") {
                return Err(pair.value.error("not the name of a setting, such as net.core.somaxconn"));
            }
            service.sysctls.insert(pair.name, text);
        }
    }
    Ok(service)
}

fn memory(value: &Value, bytes: u64) -> Result<u64, Error> {
    if !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&bytes) || !bytes.is_multiple_of(PAGE_BYTES) {
        return Err(value.error("a machine has 32M to 3G of memory, in whole pages of 4K"));
    }
    Ok(bytes)
}

/// Returns the memory of a service's machine in bytes: the service's limit, and room for the kernel.
fn limited_memory(service: &Value) -> Result<u64, Error> {
    let mut limit = service.get("mem_limit")?;
    if let Some(deploy) = service.get("deploy")? {
        deploy.only(&[
            "replicas",
            "resources",
            "restart_policy",
            "placement",
            "update_config",
            "rollback_config",
            "labels",
            "mode",
            "endpoint_mode",
        ])?;
        if let Some(resources) = deploy.get("resources")? {
            resources.only(&["limits", "reservations"])?;
            if let Some(limits) = resources.get("limits")? {
                limits.only(&["memory", "cpus", "pids"])?;
                limit = limits.get("memory")?.or(limit);
            }
            if let Some(reserved) = resources.get("reservations")? {
                reserved.only(&["memory", "cpus", "devices", "generic_resources"])?;
                for key in ["devices", "generic_resources"] {
                    if let Some(value) = reserved.get(key)? {
                        return Err(value.error("refused: only the host can give devices"));
                    }
                }
            }
        }
    }
    let Some(value) = limit else { return Ok(MEMORY_BYTES_DEFAULT) };
    let bytes = value.size_bytes()?.saturating_add(KERNEL_BYTES);
    let pages = bytes.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    Ok(pages.min(MEMORY_BYTES_MAX))
}

fn replicas(service: &Value) -> Result<usize, Error> {
    let deploy = service.get("deploy")?.map_or(Ok(None), |deploy| deploy.get("replicas"))?;
    let Some(value) = service.get("scale")?.or(deploy) else { return Ok(1) };
    let count = value.u64()?;
    match usize::try_from(count) {
        Ok(count) if count <= NODES_MAX => Ok(count),
        _ => Err(value.error(format!("{count} machines; a world has at most {NODES_MAX}"))),
    }
}

fn image(
    document: &Document<'_>,
    name: &str,
    service: &Value,
    images: &BTreeMap<String, ImageOrigin>,
) -> Result<ImageOrigin, Error> {
    let named = service.get("image")?;
    if let Some(value) = &named
        && let Some(image) = images.get(value.text()?)
    {
        return Ok(image.clone());
    }
    if let Some(value) = service.get("build")? {
        let text = match &named {
            Some(value) => value.text()?.to_owned(),
            None => format!("{}-{name}", document.project),
        };
        if let Some(image) = images.get(&text) {
            return Ok(image.clone());
        }
        let image = ImageOrigin::Built(build(document, &value, &text)?);
        container::confine(folder_of(&document.file), &image).map_err(|what| value.error(what))?;
        return Ok(image);
    }
    let value =
        named.ok_or_else(|| service.error("\"image\" is missing; a service has an image or a build"))?;
    let folder = folder_of(&document.file);
    container::parse(folder, value.text()?, true).map_err(|what| value.error(what))
}

fn build(document: &Document<'_>, value: &Value, name: &str) -> Result<ImageBuild, Error> {
    let name = container::name(name).map_err(|what| value.error(what))?;
    let confines = folder_of(&document.file);
    let folder = |value: &Value, text: &str| -> Result<std::path::PathBuf, Error> {
        let path = seal::unlisted(|| host_path(value, confines, text))?;
        if seal::has_images() {
            return Ok(path);
        }
        path.canonicalize().map_err(|error| value.error(format!("{}: {}", path.display(), in_words(&error))))
    };
    if !value.is_map() {
        let context = folder(value, value.text()?)?;
        return Ok(ImageBuild { context, file: None, arguments: Vec::new(), target: None, name });
    }
    value.only(&[
        "context",
        "dockerfile",
        "args",
        "target",
        "labels",
        "cache_from",
        "pull",
        "no_cache",
        "tags",
    ])?;
    let context = match value.get("context")? {
        Some(value) => folder(&value, value.text()?)?,
        None => folder(value, ".")?,
    };
    let file = match value.get("dockerfile")? {
        None => None,
        Some(value) => {
            let text = value.text()?;
            if text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..") {
                return Err(value.error("the Dockerfile must be in the context"));
            }
            Some(context.join(text))
        }
    };
    let mut arguments = Vec::new();
    if let Some(pairs) = value.get("args")? {
        for pair in pairs.pairs()? {
            let text = pair.text.or_else(|| document.variables.get(&pair.name));
            arguments.push((pair.name, text));
        }
    }
    let target = match value.get("target")? {
        None => None,
        Some(value) => {
            Some(container::name(value.text()?).map_err(|_| value.error("not the name of a stage"))?)
        }
    };
    Ok(ImageBuild { context, file, arguments, target, name })
}

fn depends(service: &Value) -> Result<Vec<Depends>, Error> {
    let Some(value) = service.get("depends_on")? else { return Ok(Vec::new()) };
    if value.is_list() {
        let plain = |value: Value| {
            let service = value.text()?.to_owned();
            Ok(Depends { service, condition: Condition::Started, required: true, restart: false, value })
        };
        return value.items()?.into_iter().map(plain).collect();
    }
    let mut depends = Vec::new();
    for (key, value) in value.entries()? {
        let mut one = Depends {
            service: key.name,
            condition: Condition::Started,
            required: true,
            restart: false,
            value: value.clone(),
        };
        if !value.is_null() {
            value.only(&["condition", "restart", "required"])?;
            one.required = value.get("required")?.map(|value| value.bool()).transpose()?.unwrap_or(true);
            one.restart = value.get("restart")?.map(|value| value.bool()).transpose()?.unwrap_or(false);
            if let Some(condition) = value.get("condition")? {
                one.condition = match condition.text()? {
                    "service_started" => Condition::Started,
                    "service_healthy" => Condition::Healthy,
                    "service_completed_successfully" => Condition::Completed,
                    _ => {
                        return Err(condition.error(
                            "expected service_started, service_healthy or service_completed_successfully",
                        ));
                    }
                };
            }
        }
        depends.push(one);
    }
    Ok(depends)
}

fn networks(document: &Document<'_>, service: &Value) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let mut networks = BTreeMap::new();
    if let Some(mode) = service.get("network_mode")? {
        match mode.text()? {
            "none" => return Ok(networks),
            "bridge" | "default" => {}
            _ => {
                return Err(
                    mode.error("refused: each service is a machine of its own, with a network of its own")
                );
            }
        }
    }
    let Some(value) = service.get("networks")? else {
        networks.insert(DEFAULT_NETWORK.to_owned(), Vec::new());
        return Ok(networks);
    };
    let named: Vec<(String, Value)> = if value.is_list() {
        let item = |value: Value| Ok((value.text()?.to_owned(), value));
        value.items()?.into_iter().map(item).collect::<Result<_, Error>>()?
    } else {
        value.entries()?.into_iter().map(|(key, value)| (key.name, value)).collect()
    };
    let known = document.networks.entries()?;
    for (name, value) in named {
        if name != DEFAULT_NETWORK && !known.iter().any(|(key, _)| key.name == name) {
            return Err(value.error(format!("there is no network \"{}\" in networks", name.escape_debug())));
        }
        let mut aliases = Vec::new();
        if value.is_map() {
            value.only(&[
                "aliases",
                "ipv4_address",
                "ipv6_address",
                "link_local_ips",
                "mac_address",
                "priority",
                "driver_opts",
                "gw_priority",
                "interface_name",
            ])?;
            for key in ["ipv4_address", "ipv6_address", "link_local_ips", "mac_address"] {
                if let Some(value) = value.get(key)? {
                    return Err(value.error("refused: the world numbers its machines itself; use names"));
                }
            }
            if let Some(list) = value.get("aliases")? {
                for item in list.items()? {
                    aliases.push(host_name(&item, item.text()?)?);
                }
            }
        }
        networks.insert(name, aliases);
    }
    Ok(networks)
}

/// Checks all definitions in the mapping `networks`.
pub(super) fn check_networks(document: &Document<'_>) -> Result<(), Error> {
    for (_, network) in document.networks.entries()? {
        network.only(&[
            "driver",
            "driver_opts",
            "attachable",
            "enable_ipv4",
            "enable_ipv6",
            "external",
            "internal",
            "ipam",
            "labels",
            "name",
        ])?;
        if let Some(value) = network.get("driver")?
            && value.text()? == "host"
        {
            return Err(value.error("refused: a world sees nothing of its host"));
        }
    }
    Ok(())
}

fn links(service: &Value) -> Result<Vec<(String, String)>, Error> {
    let Some(value) = service.get("links")? else { return Ok(Vec::new()) };
    let link = |item: Value| {
        let text = item.text()?;
        let (service, alias) = text.split_once(':').unwrap_or((text, text));
        Ok((service.to_owned(), host_name(&item, alias)?))
    };
    value.items()?.into_iter().map(link).collect()
}

fn extra_hosts(service: &Value) -> Result<Vec<(String, IpAddr)>, Error> {
    let Some(value) = service.get("extra_hosts")? else { return Ok(Vec::new()) };
    let mut hosts = Vec::new();
    let mut add = |value: &Value, name: &str, address: &str| {
        if address == "host-gateway" {
            return Err(value.error("refused: a world sees nothing of its host"));
        }
        hosts.push((host_name(value, name)?, value.address(address)?));
        Ok(())
    };
    if value.is_list() {
        for item in value.items()? {
            let text = item.text()?;
            let split = text.split_once('=').or_else(|| text.split_once(':'));
            let (name, address) = split.ok_or_else(|| item.error("expected NAME=ADDRESS"))?;
            add(&item, name, address)?;
        }
    } else {
        for (key, item) in value.entries()? {
            for address in item.texts()? {
                add(&address, &key.name, address.text()?)?;
            }
        }
    }
    Ok(hosts)
}

fn ulimits(service: &Value) -> Result<BTreeMap<String, Ulimit>, Error> {
    let mut limits = BTreeMap::new();
    let Some(value) = service.get("ulimits")? else { return Ok(limits) };
    let number = |value: &Value| match value.text()? {
        "-1" => Ok(None),
        _ => value.u64().map(Some),
    };
    for (key, value) in value.entries()? {
        if !ULIMITS.contains(&key.name.as_str()) {
            return Err(super::value::unknown(&key, &value.path, &ULIMITS));
        }
        let limit = if value.is_map() {
            value.only(&["soft", "hard"])?;
            let (soft, hard) = (value.get("soft")?, value.get("hard")?);
            let soft = soft.ok_or_else(|| value.error("\"soft\" is missing"))?;
            let hard = hard.ok_or_else(|| value.error("\"hard\" is missing"))?;
            Ulimit { soft: number(&soft)?, hard: number(&hard)? }
        } else {
            let both = number(&value)?;
            Ulimit { soft: both, hard: both }
        };
        if limit.hard.is_some_and(|hard| limit.soft.is_none_or(|soft| soft > hard)) {
            return Err(value.error("the soft limit is above the hard one"));
        }
        limits.insert(key.name, limit);
    }
    Ok(limits)
}

fn capabilities(service: &Value, key: &str) -> Result<Vec<String>, Error> {
    let Some(value) = service.get(key)? else { return Ok(Vec::new()) };
    let name = |item: Value| {
        let text = item.text()?.to_ascii_uppercase();
        let name = text.strip_prefix("CAP_").unwrap_or(&text).to_owned();
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_uppercase() || b"_0123456789".contains(&byte))
        {
            return Err(item.error("not the name of a capability, such as NET_ADMIN"));
        }
        Ok(name)
    };
    value.items()?.into_iter().map(name).collect()
}

/// Checks a name that will be in `/etc/hosts`.
pub(super) fn host_name(value: &Value, text: &str) -> Result<String, Error> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=63).contains(&text.len()) || !text.bytes().all(fine) || text.starts_with(['-', '.']) {
        return Err(value.error(format!(
            "\"{}\" is not a host name: 1 to 63 of a-z, A-Z, 0-9, '-', '_', '.'",
            text.escape_debug()
        )));
    }
    Ok(text.to_owned())
}
