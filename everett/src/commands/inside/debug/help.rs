//! The commands of a session, with their names.

use everett_session::debug::debugger::command::Direction::{self, Backwards, Forwards};
use everett_session::debug::debugger::entry::Kind;

/// Name of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// `next` and `prev`.
    Move(Direction),
    /// `step` and `back`.
    Instructions(Direction),
    Goto,
    Break,
    Watch,
    Delete,
    Breakpoints,
    Continue(Direction),
    Focus,
    Where,
    Processes,
    Stack,
    Print,
    Memory,
    Who,
    /// The last entries of a kind.
    Last(Kind),
    List,
    State,
    Faults,
    Compare,
    Digest,
    Help,
    Quit,
}

/// A command: its names, the short ones last, its arguments, and what it does.
pub(super) struct Line {
    pub(super) name: Name,
    pub(super) names: &'static [&'static str],
    arguments: &'static str,
    what: &'static str,
}

const fn line(
    name: Name,
    names: &'static [&'static str],
    arguments: &'static str,
    what: &'static str,
) -> Line {
    Line { name, names, arguments, what }
}

/// All commands.
pub(super) const COMMANDS: &[Line] = &[
    line(
        Name::Move(Forwards),
        &["next", "n"],
        "[WHAT]",
        "go to the next event; WHAT is one of the words below",
    ),
    line(Name::Move(Backwards), &["prev", "previous"], "[WHAT]", "go to the previous one"),
    line(
        Name::Instructions(Forwards),
        &["step", "stepi", "s", "si"],
        "[N]",
        "execute N instructions of the node in focus",
    ),
    line(
        Name::Instructions(Backwards),
        &["back", "reverse-stepi", "rsi"],
        "[N]",
        "go back by N instructions",
    ),
    line(
        Name::Goto,
        &["goto", "g"],
        "INSTANT",
        "VTIME, +1ms, -1ms, start, end, log /REGEX/ [NODE], message N, message /REGEX/, finding [PROPERTY]",
    ),
    line(Name::Continue(Forwards), &["continue", "c"], "", "go to the next hit of a breakpoint"),
    line(
        Name::Continue(Backwards),
        &["reverse-continue", "rc"],
        "",
        "go to the previous hit of a breakpoint",
    ),
    line(
        Name::Break,
        &["break", "b"],
        "PLACE",
        "PROGRAM:FUNCTION, PROGRAM:FILE:LINE, PROGRAM:0xADDRESS or kernel:FUNCTION, then [--if EXPRESSION] [on NODE]; \
         or message /REGEX/, log /REGEX/ [NODE], state VARIABLE",
    ),
    line(Name::Watch, &["watch"], "EXPRESSION", "stop at stores to an object, such as a.b or *(u32 *)0x40c0"),
    line(Name::Delete, &["delete", "d"], "[N]", "delete breakpoint N, or all"),
    line(Name::Breakpoints, &["breakpoints"], "", "list the breakpoints"),
    line(Name::Focus, &["focus", "f"], "[NODE:PROCESS]", "look at a process, or with NODE at its CPU"),
    line(Name::Where, &["where", "w"], "", "say where the timeline is"),
    line(Name::Processes, &["ps"], "[all]", "list the programs that run on all nodes, or all processes"),
    line(
        Name::Stack,
        &["stack", "bt", "backtrace"],
        "[PROCESS]",
        "print stacks of the process in focus, or of another one",
    ),
    line(
        Name::Print,
        &["print", "p"],
        "EXPRESSION",
        "print a value; the expressions are those of everett print",
    ),
    line(Name::Memory, &["x"], "EXPRESSION [N]", "print N bytes of memory (default: 64)"),
    line(
        Name::Who,
        &["who"],
        "EXPRESSION|file:PATH|message:N|payload:TEXT",
        "find who wrote these bytes, and where that program had them from, as everett who does",
    ),
    line(Name::List, &["list", "l"], "", "print the source lines of the calls in focus"),
    line(Name::Last(Kind::Log), &["log"], "[N]", "print the last N log lines up to here (default: 10)"),
    line(Name::Last(Kind::Message), &["messages"], "[N]", "print the last N messages up to here"),
    line(Name::Last(Kind::Event), &["events"], "[N]", "print the last N events of all kinds up to here"),
    line(Name::Faults, &["faults"], "", "print the faults up to here"),
    line(Name::State, &["state"], "", "print the state variables that the world file declares"),
    line(
        Name::Compare,
        &["compare"],
        "ID",
        "compare with another finding or branch, and go to the first difference",
    ),
    line(Name::Digest, &["digest"], "", "print the digest of the world, and the recorded one"),
    line(Name::Help, &["help", "h", "?"], "", "print this list"),
    line(Name::Quit, &["quit", "q", "exit"], "", "end the session"),
];

/// Words that name what `next` and `prev` go to.
pub(super) const KINDS: &[&str] =
    &["event", "message", "log", "fault", "state", "finding", "syscall", "line", "instruction"];

/// Returns the lines of the command `help`.
pub(super) fn help() -> Vec<String> {
    const INDENT: usize = 34;
    let mut lines = Vec::new();
    for Line { names, arguments, what, .. } in COMMANDS {
        let usage = format!("  {} {arguments}", names.join(", "));
        let mut rest = *what;
        let mut first = format!("{usage:INDENT$}");
        if first.chars().count() > INDENT {
            lines.push(usage.trim_end().to_owned());
            first = " ".repeat(INDENT);
        }
        while rest.len() > 84 {
            let end = rest[..84].rfind(' ').unwrap_or(84);
            lines.push(format!("{first}{}", &rest[..end]));
            rest = rest[end..].trim_start();
            first = " ".repeat(INDENT);
        }
        lines.push(format!("{first}{rest}"));
    }
    lines.push(format!("WHAT: {}", KINDS.join(", ")));
    lines.push("A command can be shortened as long as it stays the only one. Ctrl-C ends a move.".to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_stands_for_two_commands() {
        let names: Vec<&str> = COMMANDS.iter().flat_map(|line| line.names).copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(help().iter().all(|line| line.chars().count() <= 120));
    }
}
