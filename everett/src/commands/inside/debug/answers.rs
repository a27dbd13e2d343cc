//! Answers of a debugger as text.

use everett_input::units::Vtime;
use everett_session::debug::debugger::answer::{
    Answer, Compared, Differing, EntryLine, NodeProcesses, Reason, Stopped, ThreadStack,
};
use everett_session::debug::debugger::entry::Kind;

use super::super::stack::frame_lines;
use super::super::who;
use crate::ui::{printable, style};

/// Number of bytes of memory on a line.
const BYTES_PER_LINE: usize = 16;

/// Returns an answer as lines, in which text of guests is printable.
pub(super) fn lines(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Stopped(stopped) => vec![stopped_line(stopped)],
        Answer::Breakpoint(point) => vec![format!("breakpoint {}", breakpoint(point))],
        Answer::Breakpoints { breakpoints } if breakpoints.is_empty() => vec!["no breakpoints".to_owned()],
        Answer::Breakpoints { breakpoints } => breakpoints.iter().map(breakpoint).collect(),
        Answer::Deleted { numbers } => match numbers[..] {
            [] => vec!["no breakpoints".to_owned()],
            _ => numbers.iter().map(|number| format!("deleted {number}")).collect(),
        },
        Answer::Focus(focus) => {
            let of = match (focus.pid, &focus.process) {
                (Some(pid), Some(process)) => format!("{} {pid} on {}", printable(process), focus.node),
                (Some(pid), None) => format!("process {pid} on {}, which does not exist here", focus.node),
                (None, _) => format!("the CPU of {}", focus.node),
            };
            vec![format!("in focus: {of}")]
        }
        Answer::Processes { nodes } => nodes.iter().flat_map(processes).collect(),
        Answer::Stacks { threads } => threads.iter().flat_map(stack).collect(),
        Answer::Value { expression, value, absent } => {
            let value = value.as_deref().or(absent.as_deref()).unwrap_or_default();
            vec![printable(&format!("{expression} = {value}"))]
        }
        Answer::Memory { address, bytes } => memory(address, bytes),
        Answer::Origins { steps } => {
            let named: Vec<_> =
                steps.iter().map(|one| (&*one.node, one.sender.as_deref(), &one.step)).collect();
            who::lines(&named).concat()
        }
        Answer::Entries { entries, note: None } if entries.is_empty() => vec!["none up to here".to_owned()],
        Answer::Entries { entries, note } => {
            entries.iter().map(|entry| entry.text.clone()).chain(note.clone()).collect()
        }
        Answer::Source { frames } => {
            let known: Vec<String> = frames
                .iter()
                .flat_map(|frame| &frame.source)
                .map(|place| printable(&place.to_string()))
                .collect();
            if known.is_empty() { vec!["the source line is not known".to_owned()] } else { known }
        }
        Answer::State { variables, note: None, probes } if variables.is_empty() && probes.is_empty() => {
            vec!["no state variable has a value".to_owned()]
        }
        Answer::State { variables, note, probes } => {
            let line = |of: &everett_session::debug::debugger::answer::Variable| {
                let node = of.node.as_ref().map(|node| format!("{node}/")).unwrap_or_default();
                printable(&format!("{node}{} = {}", of.variable, of.value))
            };
            let probes = (!probes.is_empty())
                .then(|| printable(&format!("not listed, because probes set them: {}", probes.join(", "))));
            variables.iter().map(line).chain(probes).chain(note.clone()).collect()
        }
        Answer::Digest { digest, recorded, .. } => vec![match recorded {
            None => digest.clone(),
            Some(recorded) if recorded == digest => format!("{digest}, as recorded"),
            Some(recorded) => style::paint(style::BAD, format!("{digest}, but {recorded} was recorded")),
        }],
        Answer::Compared(compared) => comparison(compared),
    }
}

fn stopped_line(stopped: &Stopped) -> String {
    let at = style::paint(style::FAINT, Vtime(stopped.vtime_ns));
    let point = stopped.breakpoint.map(|number| format!("  [breakpoint {number}]")).unwrap_or_default();
    if let Some(entry) = &stopped.entry {
        return format!("{}{point}", entry.text);
    }
    let mut words = Vec::new();
    if let Some(node) = &stopped.node {
        words.push(match &stopped.thread {
            Some(thread) => format!("{node}/{} {}/{}", thread.process, thread.pid, thread.tid),
            None => node.clone(),
        });
    }
    words.extend(stopped.text.clone());
    words.extend(match stopped.reason {
        Reason::Start => Some("the start of the timeline".to_owned()),
        Reason::End => Some("the end of the timeline".to_owned()),
        Reason::Interrupted => Some("interrupted".to_owned()),
        _ => None,
    });
    // A system call says more than the kernel's function at which it begins.
    if stopped.reason != Reason::Syscall {
        words.extend(stopped.place.clone());
    }
    let text = printable(&words.join("  "));
    format!("{at} {text}{point}").trim_end().to_owned()
}

fn breakpoint(point: &everett_session::debug::debugger::answer::Breakpoint) -> String {
    let places = point.places.iter().map(|(node, count)| match count {
        1 => format!("1 place on {node}"),
        count => format!("{count} places on {node}"),
    });
    let places = places.collect::<Vec<_>>().join(", ");
    let places = if places.is_empty() { places } else { format!(": {places}") };
    printable(&format!("{} {}{places}", point.number, point.text))
}

fn processes(of: &NodeProcesses) -> Vec<String> {
    let mut lines = vec![style::paint(style::HEAD, printable(&of.node))];
    if let Some(error) = &of.error {
        lines.push(style::paint(style::BAD, format!("    {}", printable(error))));
        return lines;
    }
    lines.push(style::paint(style::FAINT, "     PID   PPID    UID S COMMAND"));
    for process in &of.processes {
        let command = match process.command.is_empty() {
            true => format!("[{}]", process.name),
            false => process.command.join(" "),
        };
        let (pid, parent, user, state) = (process.pid, process.parent, process.user, process.state);
        lines.push(format!("{pid:>8} {parent:>6} {user:>6} {state} {}", printable(&command)));
    }
    lines
}

fn stack(of: &ThreadStack) -> Vec<String> {
    let unknown =
        |whose| style::paint(style::FAINT, format!("         further frames of the {whose} are unknown"));
    let mut lines = vec![format!("{:>8} {:>6} {} {}", of.pid, of.tid, of.state, printable(&of.name))];
    if let Some(error) = &of.error {
        lines.push(style::paint(style::BAD, format!("         {}", printable(error))));
        return lines;
    }
    lines.extend(of.kernel.iter().map(|frame| format!("         {}", printable(frame))));
    if !of.kernel_complete {
        lines.push(unknown("kernel"));
    }
    lines.extend(of.user.iter().flat_map(frame_lines).map(|line| printable(&line)));
    if !of.user_complete {
        lines.push(unknown("program"));
    }
    lines
}

fn memory(address: &str, bytes: &[String]) -> Vec<String> {
    let start =
        address.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    let line = |(n, bytes): (u64, &[String])| {
        let at = start.wrapping_add(n * BYTES_PER_LINE as u64);
        let shown = |byte: &String| match u8::from_str_radix(byte, 16) {
            Ok(byte @ b' '..=b'~') => byte as char,
            Ok(_) => '.',
            Err(_) => '?',
        };
        let text: String = bytes.iter().map(shown).collect();
        let width = 3 * BYTES_PER_LINE - 1;
        format!("{at:#018x}  {:width$}  {text}", bytes.join(" "))
    };
    let mut lines: Vec<String> = (0..).zip(bytes.chunks(BYTES_PER_LINE)).map(line).collect();
    if bytes.iter().any(|byte| byte == "??") {
        lines.push("?? is unmapped".to_owned());
    }
    lines
}

fn comparison(compared: &Compared) -> Vec<String> {
    let Compared { other, common_ns, until_ns, first, mattered, .. } = compared;
    let common = Vtime(*common_ns).to_string();
    let mut lines = vec![format!("{other} is this timeline up to {} s", common.trim())];
    lines.extend(until_ns.map(|until_ns| {
        let until = Vtime(until_ns).to_string();
        format!("compared up to {} s, because too much happens after it", until.trim())
    }));
    let entry = |entry: &Option<EntryLine>| match entry {
        Some(entry) => entry.text.clone(),
        None => style::paint(style::FAINT, "   nothing of this kind"),
    };
    let mut pair = |title: &str, differing: &Differing| {
        lines.push(title.to_owned());
        lines.push(format!("  here  {}", entry(&differing.here)));
        lines.push(format!("  there {}", entry(&differing.there)));
    };
    let Some(first) = first else {
        lines.push("nothing differs".to_owned());
        return lines;
    };
    let texts = |of: &Differing| [&of.here, &of.there].map(|of| of.as_ref().map(|entry| entry.text.clone()));
    match mattered.first() {
        None => pair("the first difference, which is only one of numbers:", first),
        Some(_) => pair("the first difference:", first),
    }
    for other in mattered.iter().filter(|other| texts(other) != texts(first)) {
        let what = match other.what {
            Kind::Event => "start or end of a program",
            Kind::Message => "message",
            Kind::Log => "log line",
            Kind::Fault => "fault",
            Kind::State => "state variable",
            Kind::Finding => "violation",
        };
        pair(&format!("the first {what} that differs in more than numbers and times:"), other);
    }
    lines
}
