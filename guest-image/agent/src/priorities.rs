//! Real-time priorities for the threads of a service. With them, the host decides which thread runs, in place of
//! Linux's fair scheduler (sched(7)).
#![allow(unsafe_code)]

use std::fs;
use std::io;

use everett_protocol::limits::PRIORITY_MAX;

use crate::agent::Agent;
use crate::failure::{Context as _, Failure};

/// Priority of the agent while services have priorities. It is the highest, so a spinning service cannot block it.
const OWN: u8 = PRIORITY_MAX + 1;
/// Thread ID that stands for the calling thread in `sched_setscheduler(2)`.
const SELF: i32 = 0;

impl Agent {
    /// Gives the threads of a service's process group these priorities, in the order of their thread IDs. If there are
    /// more threads than priorities, the list repeats. Priority 0 makes an ordinary thread.
    pub(crate) fn prioritize(&mut self, name: &str, priorities: &[u8]) -> Result<(), Failure> {
        let ordinary = priorities.iter().all(|&priority| priority == 0);
        if ordinary {
            self.prioritized.remove(name);
        } else {
            set(SELF, OWN).context(|| "raise the agent's priority".to_owned())?;
            self.prioritized.insert(name.to_owned());
        }
        let result = self.give(name, priorities);
        // This comes last, because a thread that still has a real-time priority could keep the agent from running.
        if self.prioritized.is_empty() {
            set(SELF, 0).context(|| "give the agent its own priority back".to_owned())?;
        }
        result
    }

    fn give(&self, name: &str, priorities: &[u8]) -> Result<(), Failure> {
        let watched = self.services.get(name);
        let watched = watched.ok_or_else(|| Failure::new(format!("there is no service {name}")))?;
        let group = watched.pid.ok_or_else(|| Failure::new(format!("the service {name} does not run")))?;
        let mut threads =
            threads_of(group.as_raw_nonzero().get()).context(|| format!("look for the threads of {name}"))?;
        threads.sort_unstable();
        for (thread, &priority) in threads.into_iter().zip(priorities.iter().cycle()) {
            match set(thread, priority) {
                // The thread has ended since this function listed it.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                result => result.context(|| format!("set the priority of thread {thread}"))?,
            }
        }
        Ok(())
    }
}

/// Returns the thread IDs of all processes of a process group.
fn threads_of(group: i32) -> io::Result<Vec<i32>> {
    let mut threads = Vec::new();
    for process in fs::read_dir("/proc")? {
        let process = process?.path();
        // An entry without the file `stat` is no process, or the process has ended.
        let Ok(stat) = fs::read_to_string(process.join("stat")) else { continue };
        // In proc_pid_stat(5), the group is the third field after the name. The name may contain any character.
        let of_group = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(2));
        if of_group.and_then(|text| text.parse().ok()) != Some(group) {
            continue;
        }
        let Ok(tasks) = fs::read_dir(process.join("task")) else { continue };
        let number = |task: io::Result<fs::DirEntry>| task.ok()?.file_name().to_str()?.parse::<i32>().ok();
        threads.extend(tasks.filter_map(number));
    }
    Ok(threads)
}

fn set(thread: i32, priority: u8) -> io::Result<()> {
    let policy = match priority {
        0 => libc::SCHED_OTHER,
        // With this flag, the agent's children start as ordinary processes.
        OWN => libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
        _ => libc::SCHED_FIFO,
    };
    let param = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    // SAFETY: the call reads `param`, which lives until it returns.
    if unsafe { libc::sched_setscheduler(thread, policy, &raw const param) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
