//! Parses the configuration of an image: command line, user, folders, volumes, ports and healthcheck.

use std::collections::BTreeMap;

use super::digest::Digest;
use super::documents::{self, Configuration, Platform};
use super::error::Problem;
use super::limits::LAYERS_MAX;

/// Maximum number of arguments of a command, of variables of an environment, and of words of a healthcheck.
pub const WORDS_MAX: usize = 1_024;
/// Maximum total length of a command's arguments, and of an environment, in bytes: Linux's bound on one argument.
pub const WORDS_BYTES_MAX: usize = 128 << 10;
/// Maximum number of an image's volumes.
pub const VOLUMES_MAX: usize = 64;
/// Maximum number of ports that an image names.
const PORTS_MAX: usize = 65_536;
/// Maximum length of a path, in bytes: Linux's `PATH_MAX` without its final zero.
const PATH_BYTES_MAX: usize = 4_095;
/// Maximum length of a user and group together, in bytes.
const USER_BYTES_MAX: usize = 256;
/// Maximum of [`Healthcheck::limit_ns`], in nanoseconds: one day. A longer time becomes one day.
const TIME_NS_MAX: u64 = 86_400 * 1_000_000_000;

/// Settings with which a container engine starts an image's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageConfig {
    /// Digests of the layers' uncompressed archives, the lowest layer first.
    pub(super) diff_ids: Vec<Digest>,
    /// First part of the command line. A service's key `command` replaces only the second part.
    pub entrypoint: Vec<String>,
    /// Second part of the command line.
    pub command: Vec<String>,
    /// Environment variables of the process.
    pub env: BTreeMap<String, String>,
    /// User of the process, by name or number, with a colon and a group if the image gives one. `None` means root.
    pub user: Option<String>,
    /// Working folder of the process. `None` means `/`.
    pub cwd: Option<String>,
    /// Paths whose contents are kept when the process ends, sorted by their bytes.
    pub volumes: Vec<String>,
    /// Number of the signal that asks the process to stop.
    pub stop_signal: Option<i32>,
    /// TCP ports on which the process listens, the lowest first.
    pub ports: Vec<u16>,
    /// Command that checks whether the process works.
    pub healthcheck: Option<Healthcheck>,
}

/// A healthcheck, Docker's extension of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Healthcheck {
    /// Program and arguments of the check. Exit status 0 means that the process works.
    pub argv: Vec<String>,
    /// Time after which a container engine gives up, in nanoseconds: the start period and all retries.
    pub limit_ns: u64,
}

impl ImageConfig {
    /// Parses a configuration.
    ///
    /// # Errors
    /// Returns an error that names the key at fault.
    pub fn parse(text: &[u8]) -> Result<ImageConfig, Problem> {
        let document = |error: serde_json::Error| Problem::Document {
            what: "the configuration",
            problem: error.to_string(),
        };
        let image: Configuration = serde_json::from_slice(text).map_err(document)?;
        let platform = Platform { architecture: image.architecture, os: image.os };
        if !platform.is_ours() {
            return Err(Problem::Platform(vec![platform.to_string()]));
        }
        if image.rootfs.diff_ids.len() > LAYERS_MAX {
            return Err(Problem::Layers);
        }
        let diff_ids = image.rootfs.diff_ids.iter().map(|id| id.parse()).collect::<Result<_, _>>()?;
        let config = image.config.unwrap_or_default();
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        let keys = |map: Option<BTreeMap<String, _>>| -> Vec<String> {
            map.unwrap_or_default().into_keys().collect()
        };
        Ok(ImageConfig {
            diff_ids,
            entrypoint: words("Entrypoint", config.entrypoint.unwrap_or_default())?,
            command: words("Cmd", config.cmd.unwrap_or_default())?,
            env: environment(config.env.unwrap_or_default())?,
            user: text(config.user).map(user).transpose()?,
            cwd: text(config.working_dir).map(|path| absolute("WorkingDir", &path)).transpose()?,
            volumes: volumes(&keys(config.volumes))?,
            stop_signal: text(config.stop_signal).map(|name| signal(&name)).transpose()?,
            ports: ports(&keys(config.exposed_ports))?,
            healthcheck: config.healthcheck.map(healthcheck_of).transpose()?.flatten(),
        })
    }
}

fn fail<T>(key: &'static str, problem: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Config { key, problem: problem.into() })
}

/// Checks the number and the length of a list of words.
fn words(key: &'static str, words: Vec<String>) -> Result<Vec<String>, Problem> {
    if words.len() > WORDS_MAX {
        return fail(key, format!("more than {WORDS_MAX} words"));
    }
    if words.iter().map(String::len).sum::<usize>() > WORDS_BYTES_MAX {
        return fail(key, format!("more than {WORDS_BYTES_MAX} bytes"));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return fail(key, "a zero byte");
    }
    Ok(words)
}

fn environment(entries: Vec<String>) -> Result<BTreeMap<String, String>, Problem> {
    let mut env = BTreeMap::new();
    for entry in words("Env", entries)? {
        // An entry without `=` is ignored.
        let Some((name, value)) = entry.split_once('=') else { continue };
        if name.is_empty() {
            return fail("Env", "a variable without a name");
        }
        env.insert(name.to_owned(), value.to_owned());
    }
    Ok(env)
}

fn user(user: String) -> Result<String, Problem> {
    if user.len() > USER_BYTES_MAX || user.chars().any(char::is_control) {
        return fail("User", format!("not 1 to {USER_BYTES_MAX} printable bytes"));
    }
    Ok(user)
}

/// Returns a path in normal form. A relative path is taken to start at the root.
fn absolute(key: &'static str, path: &str) -> Result<String, Problem> {
    if path.len() > PATH_BYTES_MAX || path.contains('\0') {
        return fail(key, format!("a path of more than {PATH_BYTES_MAX} bytes, or with a zero byte"));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

fn volumes(paths: &[String]) -> Result<Vec<String>, Problem> {
    if paths.len() > VOLUMES_MAX {
        return fail("Volumes", format!("more than {VOLUMES_MAX} volumes"));
    }
    let mut volumes = Vec::new();
    for path in paths {
        let path = absolute("Volumes", path)?;
        let top = path.split('/').nth(1).unwrap_or_default();
        if matches!(top, "" | "proc" | "sys" | "dev") {
            return fail("Volumes", format!("{path:?} cannot be a volume"));
        }
        volumes.push(path);
    }
    volumes.sort();
    volumes.dedup();
    Ok(volumes)
}

/// Returns the TCP ports of `ExposedPorts`. An entry is `PORT`, `PORT/tcp` or a range. Of a range, only the first port
/// is returned. Leaves out ports of other protocols. Also leaves out malformed entries, because `ExposedPorts` does not
/// affect the process.
fn ports(entries: &[String]) -> Result<Vec<u16>, Problem> {
    if entries.len() > PORTS_MAX {
        return fail("ExposedPorts", format!("more than {PORTS_MAX} ports"));
    }
    let port = |entry: &String| {
        let (ports, protocol) = entry.split_once('/').unwrap_or((entry, "tcp"));
        let first = ports.split('-').next()?.parse().ok()?;
        (protocol == "tcp" && first != 0).then_some(first)
    };
    let mut ports: Vec<u16> = entries.iter().filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// Returns the number of the signal with this name or number.
fn signal(name: &str) -> Result<i32, Problem> {
    everett_input::signal::number(name).map_err(|problem| Problem::Config { key: "StopSignal", problem })
}

/// Returns the healthcheck. `None` if the image disables it or does not set one.
fn healthcheck_of(raw: documents::Healthcheck) -> Result<Option<Healthcheck>, Problem> {
    /// Docker's default for the interval and for the time of one attempt: 30 s. The default number of retries is three.
    const DEFAULT_NS: u64 = 30_000_000_000;
    const DEFAULT_RETRIES: u64 = 3;
    let mut test = words("Healthcheck", raw.test.unwrap_or_default())?.into_iter();
    let argv: Vec<String> = match test.next().as_deref() {
        None | Some("" | "NONE") => return Ok(None),
        Some("CMD") => test.collect(),
        Some("CMD-SHELL") => {
            // buildah splits the command line of CMD-SHELL into words. Everett joins the words again, as podman does.
            let line = test.collect::<Vec<_>>().join(" ");
            if line.is_empty() {
                return fail("Healthcheck", "CMD-SHELL without a command");
            }
            vec!["/bin/sh".to_owned(), "-c".to_owned(), line]
        }
        Some(other) => {
            let other: String = other.chars().take(32).collect();
            return fail("Healthcheck", format!("{other:?} is none of CMD, CMD-SHELL and NONE"));
        }
    };
    if argv.first().is_none_or(String::is_empty) {
        return fail("Healthcheck", "CMD without a program");
    }
    let positive =
        |value: i64, default: u64| u64::try_from(value).ok().filter(|&value| value > 0).unwrap_or(default);
    let each = positive(raw.interval, DEFAULT_NS).saturating_add(positive(raw.timeout, DEFAULT_NS));
    let retries = each.saturating_mul(positive(raw.retries, DEFAULT_RETRIES));
    let limit_ns = positive(raw.start_period, 0).saturating_add(retries).min(TIME_NS_MAX);
    Ok(Some(Healthcheck { argv, limit_ns }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(config: &str) -> Result<ImageConfig, Problem> {
        let id = "0".repeat(64);
        let text = format!(
            "{{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{config},\
             \"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[\"sha256:{id}\"]}},\"history\":[]}}"
        );
        ImageConfig::parse(text.as_bytes())
    }

    fn refused(config: &str) -> String {
        parse(config).unwrap_err().to_string()
    }

    #[test]
    fn a_configuration_is_read_as_docker_writes_it() {
        let config = parse(
            r#"{"Hostname":"","User":"999:101","ExposedPorts":{"5432/tcp":{},"53/udp":{},"80-90":{},"0":{},"x":{}},"Tty":false,
            "Env":["PATH=/usr/bin","A=b=c","EMPTY=","nothing"],"Cmd":["postgres"],
            "Healthcheck":{"Test":["CMD-SHELL","pg_isready"],"Interval":1000000000,"Timeout":2000000000,
            "StartPeriod":5000000000,"Retries":4},
            "Volumes":{"/var/lib/postgresql/data/":{},"a/../b":{}},"WorkingDir":"srv","Entrypoint":["run.sh"],
            "OnBuild":null,"Labels":{"x":"y"},"StopSignal":"SIGINT"}"#,
        )
        .unwrap();
        assert_eq!((config.entrypoint, config.command), (vec!["run.sh".into()], vec!["postgres".into()]));
        let env: Vec<_> = config.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, [("A", "b=c"), ("EMPTY", ""), ("PATH", "/usr/bin")]);
        assert_eq!((config.user.as_deref(), config.cwd.as_deref()), (Some("999:101"), Some("/srv")));
        assert_eq!(config.volumes, ["/b", "/var/lib/postgresql/data"]);
        assert_eq!(config.stop_signal, Some(2));
        assert_eq!(config.ports, [80, 5432]);
        let argv = ["/bin/sh", "-c", "pg_isready"].map(str::to_owned).to_vec();
        assert_eq!(config.healthcheck, Some(Healthcheck { argv, limit_ns: 17_000_000_000 }));
    }

    #[test]
    fn absent_values_are_the_defaults() {
        for text in ["null", "{}", r#"{"Cmd":null,"Env":null,"Volumes":null,"User":"","WorkingDir":""}"#] {
            let config = parse(text).unwrap();
            assert!(config.command.is_empty() && config.env.is_empty() && config.volumes.is_empty());
            assert_eq!((config.user, config.cwd, config.healthcheck), (None, None, None));
        }
        assert_eq!(parse(r#"{"Healthcheck":{"Test":["NONE"]}}"#).unwrap().healthcheck, None);
        let split =
            parse(r#"{"Healthcheck":{"Test":["CMD-SHELL","test","-e","/x"]}}"#).unwrap().healthcheck.unwrap();
        assert_eq!(split.argv, ["/bin/sh", "-c", "test -e /x"]);
        let check = parse(r#"{"Healthcheck":{"Test":["CMD","a"]}}"#).unwrap().healthcheck.unwrap();
        assert_eq!(check.limit_ns, 180_000_000_000);
    }

    #[test]
    fn signals_have_names_and_numbers() {
        for (name, number) in
            [("SIGTERM", 15), ("TERM", 15), ("9", 9), ("SIGRTMIN+3", 37), ("RTMIN", 34), ("SIGRTMAX-2", 62)]
        {
            assert_eq!(signal(name).unwrap(), number, "{name}");
        }
        for name in ["", "SIG", "0", "65", "-1", "SIGRTMIN+31", "RTMAX-99", "SIGNOPE", "RTMAX--2147483648"] {
            assert!(signal(name).is_err(), "{name}");
        }
    }

    #[test]
    fn bad_values_are_named() {
        assert_eq!(
            refused(r#"{"Volumes":{"/":{}}}"#),
            "its configuration: Volumes: \"/\" cannot be a volume"
        );
        assert!(refused(r#"{"Volumes":{"/dev/x":{}}}"#).contains("\"/dev/x\" cannot be a volume"));
        assert!(refused(r#"{"Env":["=x"]}"#).contains("Env: a variable without a name"));
        assert!(refused(r#"{"Cmd":["a\u0000"]}"#).contains("Cmd: a zero byte"));
        assert!(refused(r#"{"User":"a\nb"}"#).contains("User"));
        assert!(refused(r#"{"Healthcheck":{"Test":["CMD"]}}"#).contains("CMD without a program"));
        assert!(refused(r#"{"Healthcheck":{"Test":["RUN","x"]}}"#).contains("\"RUN\" is none of"));
        let many = format!("{{\"Cmd\":[{}\"a\"]}}", "\"a\",".repeat(WORDS_MAX));
        assert!(refused(&many).contains("more than 1024 words"));
        let other = r#"{"architecture":"arm64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}"#;
        let error = ImageConfig::parse(other.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "it has no image for linux on amd64; it has linux/arm64");
        assert!(ImageConfig::parse(b"{").is_err());
    }
}
