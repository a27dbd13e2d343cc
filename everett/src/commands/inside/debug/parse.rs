//! Commands of a session, from the lines that a user writes.

use everett_input::text::quoted;
use everett_input::units::parse_duration_ns;
use everett_session::debug::debugger::command::{Asked, Break, Command, Goal, Step};
use everett_session::debug::debugger::entry::Kind;
use everett_session::debug::debugger::limits::{LISTED_MAX, MEMORY_BYTES_MAX};
use everett_session::probes::code::place;
use everett_session::probes::probe::condition;
use regex::Regex;
use regex::bytes::Regex as BytesRegex;

use super::super::super::id::Id;
use super::super::named_bytes::NamedBytes;
use super::help::{COMMANDS, KINDS, Name};

/// Number of entries that are listed without a number.
const LISTED: usize = 10;
/// Number of bytes of memory that are printed without a number.
const MEMORY_BYTES: usize = 64;

/// A line of a session.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// Command for the debugger.
    Command(Box<Command>),
    /// Comparison with another timeline.
    Compare(Id),
    /// List of commands.
    Help,
    /// End of the session.
    Quit,
}

/// Reads the bytes of which a command asks who wrote them. What is not in the form of `everett who` is an expression.
fn asked(text: &str) -> Result<Asked, String> {
    let is_place = ["file:", "message:", "payload:"].iter().any(|kind| text.starts_with(kind));
    match is_place.then(|| text.parse::<NamedBytes>()).transpose()? {
        Some(NamedBytes::File(file)) => Ok(Asked::File(file)),
        Some(NamedBytes::Message(message)) => Ok(Asked::Message(message)),
        _ => condition(text).map(Asked::Object),
    }
}

/// Reads a line that is not empty.
pub(super) fn parse(line: &str) -> Result<Line, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let name = name(word)?;
    let none = || match rest {
        "" => Ok(()),
        _ => Err(format!("{word} takes no arguments")),
    };
    let given = |what: &str| match rest {
        "" => Err(format!("{word} needs {what}")),
        rest => Ok(rest),
    };
    let command = match name {
        Name::Move(direction) => Command::Step(what(rest)?, direction),
        Name::Instructions(direction) => {
            Command::Step(Step::Instructions(count(rest, 1, u64::MAX)?), direction)
        }
        Name::Goto => Command::Goto(goal(given("an instant")?)?),
        Name::Break => Command::Break(breakpoint(given("a place")?)?, line.to_owned()),
        Name::Watch => Command::Break(Break::Store(condition(given("an expression")?)?), line.to_owned()),
        Name::Delete => Command::Delete(match rest {
            "" => None,
            number => Some(number.parse().map_err(|_| format!("{number} is not a number of a breakpoint"))?),
        }),
        Name::Breakpoints => none().map(|()| Command::Breakpoints)?,
        Name::Continue(direction) => none().map(|()| Command::Continue(direction))?,
        Name::Focus => Command::Focus((!rest.is_empty()).then(|| rest.to_owned())),
        Name::Where => none().map(|()| Command::Where)?,
        Name::Processes => match rest {
            "" => Command::Processes { all: false },
            "all" => Command::Processes { all: true },
            _ => return Err("only all can follow ps".to_owned()),
        },
        Name::Stack => Command::Stack((!rest.is_empty()).then(|| rest.to_owned())),
        Name::Print => Command::Print(condition(given("an expression")?)?, rest.to_owned()),
        Name::Memory => memory(given("an address")?)?,
        Name::Who => Command::Who(asked(given("bytes")?)?),
        Name::Last(kind) => Command::Last(kind, count(rest, LISTED as u64, LISTED_MAX as u64)? as usize),
        Name::List => none().map(|()| Command::Source)?,
        Name::State => none().map(|()| Command::State)?,
        Name::Faults => none().map(|()| Command::Faults)?,
        Name::Digest => none().map(|()| Command::Digest)?,
        Name::Compare => return given("a finding or a branch")?.parse().map(Line::Compare),
        Name::Help => return Ok(Line::Help),
        Name::Quit => return none().map(|()| Line::Quit),
    };
    Ok(Line::Command(Box::new(command)))
}

/// Finds the command that a word names: by a whole name, or by the beginning of names of one command only.
fn name(word: &str) -> Result<Name, String> {
    if let Some(line) = COMMANDS.iter().find(|line| line.names.contains(&word)) {
        return Ok(line.name);
    }
    let begins = |line: &&super::help::Line| line.names.iter().any(|name| name.starts_with(word));
    let found: Vec<_> = COMMANDS.iter().filter(begins).collect();
    match found[..] {
        [line] => Ok(line.name),
        [] => Err(format!("there is no command {}; help lists the commands", quoted(word))),
        _ => {
            let names: Vec<&str> = found.iter().map(|line| line.names[0]).collect();
            Err(format!("{} can be {}", quoted(word), names.join(", ")))
        }
    }
}

fn what(word: &str) -> Result<Step, String> {
    if word.is_empty() {
        return Ok(Step::Entry(Kind::Event));
    }
    let found: Vec<&str> = KINDS.iter().copied().filter(|kind| kind.starts_with(word)).collect();
    Ok(match found[..] {
        ["event"] => Step::Entry(Kind::Event),
        ["message"] => Step::Entry(Kind::Message),
        ["log"] => Step::Entry(Kind::Log),
        ["fault"] => Step::Entry(Kind::Fault),
        ["state"] => Step::Entry(Kind::State),
        ["finding"] => Step::Entry(Kind::Finding),
        ["syscall"] => Step::Syscall,
        ["line"] => Step::Line,
        ["instruction"] => Step::Instructions(1),
        _ => return Err(format!("{} is none of {}", quoted(word), KINDS.join(", "))),
    })
}

fn count(word: &str, default: u64, max: u64) -> Result<u64, String> {
    match word {
        "" => Ok(default),
        _ => match word.parse() {
            Ok(count) if (1..=max).contains(&count) => Ok(count),
            _ => Err(format!("{} is no number from 1 to {max}", quoted(word))),
        },
    }
}

fn goal(text: &str) -> Result<Goal, String> {
    let duration = |text: &str| parse_duration_ns(text).map_err(|error| error.to_string());
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match (word, rest) {
        ("start", "") => Ok(Goal::Start),
        ("end", "") => Ok(Goal::End),
        ("finding", "") => Ok(Goal::Finding(None)),
        ("finding", name) => Ok(Goal::Finding(Some(name.to_owned()))),
        ("log", _) => {
            let (regex, node) = between_slashes(rest)?;
            Ok(Goal::Log(text_regex(&regex)?, node))
        }
        ("message", _) if rest.starts_with('/') => {
            let (regex, after) = between_slashes(rest)?;
            nothing(after.as_deref())?;
            Ok(Goal::MessageLike(bytes_regex(&regex)?))
        }
        ("message", number) => {
            let number = number.trim_start_matches('#');
            let parsed = number.parse();
            parsed.map(Goal::Message).map_err(|_| format!("{} is not a number of a message", quoted(number)))
        }
        (_, "") => match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(later), _) => Ok(Goal::Later(duration(later)?)),
            (_, Some(earlier)) => Ok(Goal::Earlier(duration(earlier)?)),
            _ => Ok(Goal::Vtime(duration(text)?)),
        },
        _ => Err(format!("{} is no instant; help lists them", quoted(text))),
    }
}

fn breakpoint(text: &str) -> Result<Break, String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word {
        "message" => {
            let (regex, after) = between_slashes(rest)?;
            nothing(after.as_deref())?;
            Ok(Break::Message(bytes_regex(&regex)?))
        }
        "log" => {
            let (regex, node) = between_slashes(rest)?;
            Ok(Break::Log(text_regex(&regex)?, node))
        }
        "state" if rest.is_empty() => Err("break state needs the name of a variable".to_owned()),
        "state" => Ok(Break::State(rest.to_owned())),
        _ => {
            let (text, node) = match text.rsplit_once(" on ") {
                Some((text, node)) if !node.trim().contains(char::is_whitespace) => (text, Some(node.trim())),
                _ => (text, None),
            };
            if !text.contains(':') {
                return Err(format!(
                    "{} is no place; a place is PROGRAM:FUNCTION, PROGRAM:FILE:LINE, PROGRAM:0xADDRESS or \
                     kernel:FUNCTION",
                    quoted(text)
                ));
            }
            let node = node.filter(|node| *node != "all").map(str::to_owned);
            Ok(Break::Code(Box::new(place(text)?), node))
        }
    }
}

/// Reads an expression, which a number of bytes can follow.
fn memory(text: &str) -> Result<Command, String> {
    let max = MEMORY_BYTES_MAX;
    if let Some((expression, number)) = text.rsplit_once(char::is_whitespace)
        && let Ok(number) = number.parse::<usize>()
        && let Ok(expression) = condition(expression)
    {
        return match (1..=max).contains(&number) {
            true => Ok(Command::Memory(expression, number)),
            false => Err(format!("{number} is not a number of bytes from 1 to {max}")),
        };
    }
    Ok(Command::Memory(condition(text)?, MEMORY_BYTES))
}

/// Reads `/REGEX/`, in which `\/` is a slash, and what follows it.
fn between_slashes(text: &str) -> Result<(String, Option<String>), String> {
    let needed = || "a regular expression between slashes is needed, such as /failover/".to_owned();
    let inner = text.strip_prefix('/').ok_or_else(needed)?;
    let (mut regex, mut chars) = (String::new(), inner.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, '/')) => regex.push('/'),
                Some((_, other)) => regex.extend(['\\', other]),
                None => return Err(needed()),
            },
            '/' => {
                let after = inner[at + 1..].trim();
                return Ok((regex, (!after.is_empty()).then(|| after.to_owned())));
            }
            c => regex.push(c),
        }
    }
    Err(needed())
}

fn nothing(after: Option<&str>) -> Result<(), String> {
    after.map_or(Ok(()), |after| Err(format!("{} must not follow the expression", quoted(after))))
}

fn text_regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| last_line(&error))
}

fn bytes_regex(text: &str) -> Result<BytesRegex, String> {
    BytesRegex::new(text).map_err(|error| last_line(&error))
}

/// Returns the last line of an error of the library, which says what is wrong.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use everett_session::debug::debugger::command::Direction;

    use super::*;

    fn command(line: &str) -> Command {
        match parse(line) {
            Ok(Line::Command(command)) => *command,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn commands_have_short_forms() {
        let forwards = |line| matches!(command(line), Command::Continue(Direction::Forwards));
        assert!(forwards("c") && forwards(" continue "));
        assert!(matches!(command("rc"), Command::Continue(Direction::Backwards)));
        let next = |kind| Step::Entry(kind);
        for (line, step) in [
            ("next", next(Kind::Event)),
            ("n log", next(Kind::Log)),
            ("next mess", next(Kind::Message)),
            ("n sys", Step::Syscall),
            ("n line", Step::Line),
            ("step 12", Step::Instructions(12)),
        ] {
            let Command::Step(found, Direction::Forwards) = command(line) else { panic!("{line}") };
            assert_eq!(found, step, "{line}");
        }
        assert!(matches!(parse("quit"), Ok(Line::Quit)));
        assert!(matches!(parse("compare b3"), Ok(Line::Compare(Id::Branch(3)))));
    }

    #[test]
    fn instants_and_places_are_read() {
        assert!(matches!(command("goto 3.2s"), Command::Goto(Goal::Vtime(3_200_000_000))));
        assert!(matches!(command("goto +1ms"), Command::Goto(Goal::Later(1_000_000))));
        assert!(matches!(command("g -1ms"), Command::Goto(Goal::Earlier(1_000_000))));
        assert!(matches!(command("goto message #7"), Command::Goto(Goal::Message(7))));
        let Command::Goto(Goal::Log(regex, node)) = command(r"goto log /a\/b\d/ n1") else { panic!() };
        assert_eq!((regex.as_str(), node.as_deref()), (r"a/b\d", Some("n1")));
        let Command::Break(Break::Code(probe, node), text) = command("b p:f --if $rdi > 1 on n2") else {
            panic!()
        };
        assert_eq!((&*probe.name, node.as_deref(), &*text), ("p:f", Some("n2"), "b p:f --if $rdi > 1 on n2"));
        assert!(matches!(command("break p:f on all"), Command::Break(Break::Code(_, None), _)));
        assert!(matches!(command("x $rsp 16"), Command::Memory(_, 16)));
        assert!(matches!(command("x $rsp + 16"), Command::Memory(_, MEMORY_BYTES)));
    }

    #[test]
    fn a_wrong_command_is_refused_in_one_line() {
        for (line, error) in [
            ("nxt", "there is no command \"nxt\"; help lists the commands"),
            ("st", "\"st\" can be step, stack, state"),
            ("where now", "where takes no arguments"),
            ("goto", "goto needs an instant"),
            ("goto log a", "a regular expression between slashes is needed, such as /failover/"),
            ("goto log /a(/", "unclosed group"),
            ("break message /a/ n1", "\"n1\" must not follow the expression"),
            ("break state", "break state needs the name of a variable"),
            ("break p:f $rdi", "a breakpoint prints no values; only --if can follow the place"),
            ("step 0", "\"0\" is no number from 1 to 18446744073709551615"),
            ("log 99999", "\"99999\" is no number from 1 to 10000"),
            ("x $rsp 5000", "5000 is not a number of bytes from 1 to 4096"),
            ("delete a", "a is not a number of a breakpoint"),
        ] {
            assert_eq!(parse(line).map(|_| ()).unwrap_err(), error, "{line}");
        }
        assert!(parse("next foo").unwrap_err().starts_with("\"foo\" is none of event, "));
        assert!(parse("break f").unwrap_err().starts_with("\"f\" is no place; "));
    }
}
