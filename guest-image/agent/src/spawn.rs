//! Starts programs: new session, fresh environment, output to pipes, and the history port if the host requests it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use everett_protocol::{HISTORY_FD, HISTORY_VARIABLE};
use rustix::process::Pid;

use crate::failure::{Context as _, Failure};
use crate::users::Identity;

/// `PATH` of programs whose environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Description of a program to start.
pub(crate) struct Program<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) cwd: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    /// True to connect standard input to a pipe, false for `/dev/null`.
    pub(crate) stdin: bool,
    /// True to connect standard output and error to pipes, false for `/dev/null`.
    pub(crate) output: bool,
    /// The history port, on which drivers and checks report operations. `None` if the program does not get it.
    pub(crate) history: Option<BorrowedFd<'a>>,
}

/// Started program, with the agent's ends of its pipes. Reads and writes of these ends do not block.
pub(crate) struct Started {
    pub(crate) pid: Pid,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// Starts a program as the leader of a new session and a new process group.
pub(crate) fn start(program: &Program<'_>) -> Result<Started, Failure> {
    let name = program.argv.first().ok_or_else(|| Failure::new("cannot start a program without a name"))?;
    let identity = program.user.map(Identity::of_user).transpose()?;
    let home = identity.as_ref().map_or("/root", |identity| identity.home.as_str());

    let mut command = Command::new(name);
    command.args(&program.argv[1..]);
    command.env_clear().env("PATH", DEFAULT_PATH).env("LANG", "C.UTF-8").env("HOME", home);
    if let Some(user) = program.user {
        command.env("USER", user).env("LOGNAME", user);
    }
    command.envs(program.env);
    if program.history.is_some() {
        command.env(HISTORY_VARIABLE, HISTORY_FD.to_string());
    }
    command.current_dir(program.cwd.unwrap_or("/"));
    let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
    command.stdin(pipe(program.stdin)).stdout(pipe(program.output)).stderr(pipe(program.output));
    // Duplicates the port to the lowest free descriptor that is at least HISTORY_FD. HISTORY_FD is then in use, so no
    // pipe of `spawn` gets it. Otherwise the child's dup2 to HISTORY_FD would close a pipe that the child still needs.
    let history = program.history.map(|port| rustix::io::fcntl_dupfd_cloexec(port, HISTORY_FD)).transpose();
    let history = history.context(|| format!("give {name} the history port"))?;
    prepare_child(&mut command, identity, history.as_ref().map(|port| port.as_raw_fd()));

    let mut child = command.spawn().context(|| format!("start {name}"))?;
    drop(history);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::new(format!("cannot start {name}: it has no process number")))?;
    let stdin = child.stdin.take().map(OwnedFd::from);
    let stdout = child.stdout.take().map(OwnedFd::from);
    let stderr = child.stderr.take().map(OwnedFd::from);
    for pipe in [&stdin, &stdout, &stderr].into_iter().flatten() {
        rustix::io::ioctl_fionbio(pipe, true).context(|| format!("prepare a pipe of {name}"))?;
    }
    Ok(Started { pid, stdin, stdout, stderr })
}

/// Registers the steps that the child performs between fork and exec.
fn prepare_child(command: &mut Command, identity: Option<Identity>, history: Option<RawFd>) {
    let in_child = move || {
        // SAFETY: `sigemptyset` initialises the set that the next call reads.
        unsafe {
            let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            check(libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()))?;
        }
        // SAFETY: the system call has no pointers.
        check(unsafe { libc::setsid() })?;
        if let Some(history) = history {
            // HISTORY_FD must stay open across exec. dup2 clears FD_CLOEXEC, but not if both numbers are equal.
            // SAFETY: the system calls have no pointers. In the child, dup2 may
            // close a descriptor of the agent, which the child does not need.
            unsafe {
                if history == HISTORY_FD {
                    check(libc::fcntl(history, libc::F_SETFD, 0))?;
                } else {
                    check(libc::dup2(history, HISTORY_FD))?;
                }
            }
        }
        if let Some(identity) = &identity {
            let groups = identity.groups.as_slice();
            // SAFETY: pointer and length belong to one slice. The other system calls have no pointers.
            // The groups come first, because only root can change them.
            unsafe {
                check(libc::setgroups(groups.len(), groups.as_ptr()))?;
                check(libc::setgid(identity.gid))?;
                check(libc::setuid(identity.uid))?;
            }
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls. It neither allocates nor takes locks, and the agent has no other
    // thread that could hold a lock.
    unsafe {
        command.pre_exec(in_child);
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
