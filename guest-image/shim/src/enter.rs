//! Performs the last steps before the program: limits, environment, folder, capabilities and user.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::options::Options;
use crate::users::{self, Identity};
use crate::{Context as _, Failure};

/// `PATH` for images that set none. It is the same as Docker's.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables of the agent that the program does not get. The others, such as `EVERETT_HISTORY`, reach the program.
const OF_AGENT: [&str; 5] = ["PATH", "LANG", "HOME", "USER", "LOGNAME"];

/// Default capabilities of root in a container. They are the same as Docker's.
const KEPT: [CapabilitySet; 14] = [
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::FSETID,
    CapabilitySet::KILL,
    CapabilitySet::SETGID,
    CapabilitySet::SETUID,
    CapabilitySet::SETPCAP,
    CapabilitySet::NET_BIND_SERVICE,
    CapabilitySet::NET_RAW,
    CapabilitySet::SYS_CHROOT,
    CapabilitySet::MKNOD,
    CapabilitySet::AUDIT_WRITE,
    CapabilitySet::SETFCAP,
];

/// Number of bits in a set of capabilities. The kernel may know fewer capabilities.
const CAPABILITY_BITS: u32 = 64;

/// Exit statuses that container engines use if they cannot start a program.
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Sets up this process and replaces it by the program. Returns only after a failure.
pub(crate) fn enter(options: Options) -> Result<Infallible, Failure> {
    let Options { env, user, cwd, argv, ulimits, capabilities, .. } = options;
    let identity = users::find(user.as_deref().unwrap_or("0"))?;
    let env = environment(env, &identity);
    let cwd = cwd.unwrap_or_else(|| PathBuf::from("/"));
    fs::create_dir_all(&cwd).context(|| format!("make the working folder {}", cwd.display()))?;
    // By default, the kernel derives this limit from the machine's memory. In containers, there is no limit.
    let unlimited = Rlimit { current: None, maximum: None };
    setrlimit(Resource::Nproc, unlimited).context(|| String::from("lift the limit of processes"))?;
    for (name, soft, hard) in ulimits {
        let limit = Rlimit { current: soft, maximum: hard };
        let resource = resource(&name)?;
        setrlimit(resource, limit).context(|| format!("set the limit {name}"))?;
    }
    drop_capabilities(&kept(&capabilities)?)?;
    become_user(&identity)?;
    std::env::set_current_dir(&cwd).context(|| format!("enter the working folder {}", cwd.display()))?;
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let program = program(&argv[0], path.unwrap_or_default())?;
    let error = Command::new(&program).arg0(&argv[0]).args(&argv[1..]).env_clear().envs(env).exec();
    let status = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_EXECUTE };
    Err(Failure { text: format!("cannot start {}: {error}", program.display()), status })
}

/// Adds the variables that container engines set (`PATH`, `HOSTNAME`, `HOME`), and the agent's variables for programs.
fn environment(given: Vec<(OsString, OsString)>, identity: &Identity) -> Vec<(OsString, OsString)> {
    let has = |wanted: &str| given.iter().any(|(name, _)| name == wanted);
    let mut added: Vec<(OsString, OsString)> = Vec::new();
    let mut add = |name: &str, value: OsString| {
        if !has(name) {
            added.push((name.into(), value));
        }
    };
    add("PATH", DEFAULT_PATH.into());
    let hostname = rustix::system::uname().nodename().to_bytes().to_vec();
    add("HOSTNAME", OsStr::from_bytes(&hostname).to_owned());
    add("HOME", identity.home.clone().unwrap_or_else(|| "/".to_owned()).into());
    added.extend(given);
    added.extend(std::env::vars_os().filter(|(name, _)| !OF_AGENT.iter().any(|known| name == known)));
    added
}

/// Returns a container's default capabilities after these changes. As in container engines, a change with the name
/// `ALL` concerns every capability and comes first.
fn kept(changes: &[(bool, String)]) -> Result<CapabilitySet, Failure> {
    let has = |add: bool| changes.iter().any(|(is_more, name)| *is_more == add && name == "ALL");
    let mut kept: CapabilitySet = KEPT.into_iter().collect();
    if has(true) {
        kept = CapabilitySet::all();
    }
    if has(false) {
        kept = CapabilitySet::empty();
    }
    for (is_more, name) in changes.iter().filter(|(_, name)| name != "ALL") {
        let one = CapabilitySet::from_name(name)
            .ok_or_else(|| Failure::new(format!("there is no capability {name}")))?;
        kept.set(one, *is_more);
    }
    Ok(kept)
}

/// Returns the resource with this name. The names are those of container engines.
fn resource(name: &str) -> Result<Resource, Failure> {
    Ok(match name {
        "as" => Resource::As,
        "core" => Resource::Core,
        "cpu" => Resource::Cpu,
        "data" => Resource::Data,
        "fsize" => Resource::Fsize,
        "locks" => Resource::Locks,
        "memlock" => Resource::Memlock,
        "msgqueue" => Resource::Msgqueue,
        "nice" => Resource::Nice,
        "nofile" => Resource::Nofile,
        "nproc" => Resource::Nproc,
        "rss" => Resource::Rss,
        "rtprio" => Resource::Rtprio,
        "rttime" => Resource::Rttime,
        "sigpending" => Resource::Sigpending,
        "stack" => Resource::Stack,
        _ => return Err(Failure::new(format!("there is no limit {name}"))),
    })
}

/// Removes all capabilities except `kept` from the bounding set, so that the program cannot get them.
fn drop_capabilities(kept: &CapabilitySet) -> Result<(), Failure> {
    for bit in 0..CAPABILITY_BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The kernel knows neither this capability nor any higher one.
            Err(Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error).context(|| format!("drop capability {bit}")),
        }
    }
    Ok(())
}

/// Sets the groups before the user, because only root can set groups. The process has no other thread.
fn become_user(identity: &Identity) -> Result<(), Failure> {
    let what = || format!("become user {} in group {}", identity.uid, identity.gid);
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: Vec<Gid> = identity.groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
    rustix::thread::set_thread_groups(&groups).context(what)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).context(what)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).context(what)
}

/// Returns the path of a program. If the name has no slash, searches the folders of `path`.
fn program(name: &OsStr, path: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let folders = path.as_bytes().split(|&byte| byte == b':');
    let mut not_executable = None;
    for folder in folders {
        let folder = if folder.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(folder) };
        let candidate = Path::new(folder).join(name);
        match fs::metadata(&candidate) {
            Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate);
            }
            Ok(metadata) if metadata.is_file() => not_executable = Some(candidate),
            _ => {}
        }
    }
    let name = name.to_string_lossy();
    Err(match not_executable {
        Some(path) => Failure {
            text: format!("cannot start {name}: {} is not executable", path.display()),
            status: CANNOT_EXECUTE,
        },
        None => Failure { text: format!("cannot start {name}: no such program in PATH"), status: NOT_FOUND },
    })
}
