//! Facts about processes as the guest states them: files of its `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use everett_inspect::task::arguments;

use super::fact::{Facts, Part, plain_name};

/// Files by their paths below `/proc`.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Returns the processes that the files are about.
pub(super) fn processes(files: &Files) -> BTreeSet<u32> {
    files.keys().filter_map(|path| pid_of(path)).collect()
}

/// Returns the facts that the files state. See `proc(5)` for their formats.
pub(super) fn facts(files: &Files) -> Facts {
    let mut facts = Facts::new();
    let mut threads: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (path, content) in files {
        let Some(pid) = pid_of(path) else { continue };
        let text = String::from_utf8_lossy(content);
        let names: Vec<&str> = path.split('/').collect();
        let thread = names.get(2).and_then(|tid| tid.parse().ok());
        let fact = match (&names[1..], thread) {
            (["stat"], _) => status(&text).map(|fact| (Part::Status, fact)),
            (["status"], _) => user(&text).map(|fact| (Part::User, fact)),
            (["cmdline"], _) => Some((Part::Command, command_line(&arguments(content)))),
            (["maps"], _) => Some((Part::Mappings, trimmed(&text))),
            (["task", _, "comm"], Some(tid)) => {
                let name = text.strip_suffix('\n').unwrap_or(&text);
                threads.entry(pid).or_default().push(thread_line(tid, name));
                None
            }
            (["task", _, "stack"], Some(tid)) => Some((Part::Stack(tid), stack(&text))),
            (["task", _, "syscall"], Some(tid)) => entry(&text).map(|fact| (Part::Entry(tid), fact)),
            _ => None,
        };
        facts.extend(fact.map(|(part, fact)| ((pid, part), fact)));
    }
    for (pid, mut lines) in threads {
        lines.sort();
        facts.insert((pid, Part::Threads), lines.join("\n"));
    }
    facts
}

fn pid_of(path: &str) -> Option<u32> {
    Path::new(path).iter().next()?.to_str()?.parse().ok()
}

/// Returns the line of a thread.
pub(super) fn thread_line(tid: u32, name: &str) -> String {
    format!("{tid} {}", plain_name(name))
}

/// Returns the line of a process's arguments.
pub(super) fn command_line(arguments: &[String]) -> String {
    arguments.join(" ").trim_end().to_owned()
}

/// Returns name, state and parent. The name can contain spaces and parentheses.
fn status(text: &str) -> Option<String> {
    let (name, rest) = text.split_once(" (")?.1.rsplit_once(") ")?;
    let mut rest = rest.split(' ');
    Some(format!("{} {} {}", plain_name(name), rest.next()?, rest.next()?))
}

/// Returns the real user.
fn user(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Returns the lines without spaces at their ends: the kernel writes some after an address that fills its column.
fn trimmed(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Returns the functions of a stack with distances and modules. `[<0>] ep_poll+0x2a0/0x300 [m]` is `ep_poll+0x2a0 [m]`.
fn stack(text: &str) -> String {
    let frame = |line: &str| {
        let (function, rest) = line.strip_prefix("[<0>] ")?.split_once('/')?;
        let module = rest.split_once(' ').map_or(String::new(), |(_, module)| format!(" {module}"));
        Some(function.to_owned() + &module)
    };
    text.lines().map(|line| frame(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Returns program counter and stack pointer. `None` if the thread is ready to run, so that the kernel states neither.
fn entry(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().rev();
    let (counter, stack) = (words.next()?, words.next()?);
    // A thread of the kernel has neither.
    (counter != "0x0" || stack != "0x0").then(|| format!("{counter} {stack}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_taken_from_the_formats_of_proc() {
        let files = [
            ("7/stat", "7 (a) (b) S 1 7 7 0"),
            ("7/status", "Name:\ta\nUid:\t100\t101\t101\t101\n"),
            ("7/cmdline", "a\0-b\0"),
            ("7/maps", "1000-2000 r--p 00000000 00:00 0 \n"),
            ("7/task/8/comm", "kworker/0:1-events\n"),
            ("7/task/7/comm", "a) (b\n"),
            ("7/task/7/stack", "[<0>] ep_poll+0x2a0/0x300\n[<0>] f+0x1/0x2 [m]\n"),
            ("7/task/7/syscall", "232 0x4 0x7ff0 0x1 0x0 0x0 0x0 0x7ffc 0x7f0b\n"),
            ("7/task/8/syscall", "running\n"),
            ("9/task/x/stack", "[<0>] f+0x1/0x2\n"),
            ("self/stat", "7 (a) S 1"),
        ];
        let files: Files =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        let expected = [
            (Part::Status, "a) (b S 1"),
            (Part::User, "100"),
            (Part::Command, "a -b"),
            (Part::Threads, "7 a) (b\n8 kworker/0:1"),
            (Part::Stack(7), "ep_poll+0x2a0\nf+0x1 [m]"),
            (Part::Entry(7), "0x7f0b 0x7ffc"),
            (Part::Mappings, "1000-2000 r--p 00000000 00:00 0"),
        ];
        let expected: Facts = expected.into_iter().map(|(part, fact)| ((7, part), fact.to_owned())).collect();
        assert_eq!(facts(&files), expected);
        assert_eq!(processes(&files), BTreeSet::from([7, 9]));
    }

    #[test]
    fn arguments_are_cut_as_those_in_memory() {
        use everett_inspect::limits::{ARGUMENTS_MAX, COMMAND_BYTES_MAX};
        let stated = |text: String| {
            let files = Files::from([("7/cmdline".to_owned(), text.into_bytes())]);
            facts(&files)[&(7, Part::Command)].clone()
        };
        let long = "x".repeat(COMMAND_BYTES_MAX);
        assert_eq!(stated(format!("{long}\0")), long);
        assert_eq!(stated(format!("{long}y\0z\0")), long);
        assert_eq!(stated("a\0".repeat(ARGUMENTS_MAX)), ["a"; ARGUMENTS_MAX].join(" "));
        assert_eq!(stated("a\0".repeat(ARGUMENTS_MAX + 9)), ["a"; ARGUMENTS_MAX].join(" "));
        assert_eq!(stated("a\0b c\0\0".to_owned()), "a b c");
    }

    #[test]
    fn damaged_files_state_nothing() {
        let files = ["stat", "status", "task/7/syscall"].map(|name| (format!("7/{name}"), vec![0xff, b'\n']));
        assert_eq!(facts(&files.into_iter().collect()), Facts::new());
    }
}
