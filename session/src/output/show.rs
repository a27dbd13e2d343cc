//! Events as lines of text.

use everett_explorer::sdk::{self, Guidance, SdkLine, Value};
use everett_input::text::printable;
use everett_input::units::Vtime;

use crate::output::style;
use crate::world::event::{Event, Loss, StreamName, What};

/// Width of the column for unit names, in characters. A longer name moves its line to the right.
const UNIT_WIDTH: usize = 12;

/// Formats an event as a line of vtime, unit and description. The unit is the source of the event: a service, a driver,
/// or a word such as `kernel`. With `several_nodes`, the node's name and `/` precede the unit.
#[must_use]
pub fn line(event: &Event, several_nodes: bool) -> String {
    let (unit, text) = match &event.what {
        What::Hello { release } => ("guest", format!("Linux {} is up", printable(release))),
        What::Mounted => ("guest", style::paint(style::FAINT, "the root is mounted")),
        What::Kernel { text } => ("kernel", format!("| {}", printable(text))),
        What::Fork { path } => ("world", format!("the timeline becomes {path}")),
        What::Begin { seed } => ("world", format!("the timeline begins under seed {seed}")),
        What::Ready => ("guest", "services are ready".to_owned()),
        What::End => ("world", "the timeline's end: drivers stop, checks run".to_owned()),
        What::Start { unit, round: 0 } => (unit.as_str(), style::paint(style::FAINT, "starts")),
        What::Start { unit, round } => {
            (unit.as_str(), style::paint(style::FAINT, format!("starts, round {round}")))
        }
        What::Line { unit, stream, text, truncated } => {
            let mark = match stream {
                StreamName::Stdout => "|",
                StreamName::Stderr => "!",
            };
            (unit.as_str(), format!("{mark} {}{}", printable(text), cut(*truncated)))
        }
        What::History { text, truncated } => {
            ("history", style::paint(style::FAINT, format!("{}{}", printable(text), cut(*truncated))))
        }
        What::Sdk { text } => ("sdk", sdk(text)),
        What::Edge { module, edge } => {
            ("sdk", style::paint(style::FAINT, format!("edge {edge} of {}", printable(module))))
        }
        What::Exit { unit, status, success: true } => {
            (unit.as_str(), style::paint(style::FAINT, format!("ends with {}", printable(status))))
        }
        What::Exit { unit, status, success: false } => {
            (unit.as_str(), style::paint(style::NOTE, format!("ends with {}", printable(status))))
        }
        What::Fault { id, line } => {
            ("fault", style::paint(style::NOTE, format!("#{id} {}", printable(line))))
        }
        What::Loss(loss) => {
            ("disk", style::paint(style::FAINT, format!("disk {}: {}", loss.disk, loss_text(loss))))
        }
        What::Access { rip, symbol, cr3, address, size, store, value } => {
            let by = symbol
                .as_deref()
                .map_or_else(|| format!("{rip:#x}"), |name| format!("{rip:#x} {}", printable(name)));
            let did = if *store { "stores" } else { "loads" };
            ("watch", format!("{by} {did} {value:#x} at {address:#x}, {size} bytes (cr3 {cr3:#x})"))
        }
        What::Effect { text } => ("fault", style::paint(style::FAINT, printable(text))),
        What::Healed { id } => ("fault", style::paint(style::FAINT, format!("#{id} ends"))),
        What::Probe { probe, text, violated: true, .. } => {
            ("probe", style::paint(style::BAD, format!("{}: {}", printable(probe), printable(text))))
        }
        What::Probe { probe, text, .. } => ("probe", format!("{}: {}", printable(probe), printable(text))),
        What::Finding { text, .. } => ("FOUND", style::paint(style::BAD, printable(text))),
    };
    let unit = printable(unit);
    let unit = if several_nodes && !event.node.is_empty() { format!("{}/{unit}", event.node) } else { unit };
    format!("{} {unit:UNIT_WIDTH$} {text}", style::paint(style::FAINT, Vtime(event.vtime_ns)))
}

/// Describes a line from the SDK.
fn sdk(text: &str) -> String {
    let faint = |text: String| style::paint(style::FAINT, text);
    match sdk::parse(text) {
        Ok(SdkLine::Assertion(assertion)) if assertion.is_violated() => {
            style::paint(style::BAD, printable(&assertion.evidence()))
        }
        Ok(SdkLine::Assertion(assertion)) => {
            let did = match (assertion.hit, assertion.condition) {
                (false, _) => "is registered",
                (true, true) => "holds",
                (true, false) => "was reached and does not hold",
            };
            faint(format!("{} {:?} {did}", assertion.kind.name(), assertion.name))
        }
        Ok(SdkLine::Guidance(Some(Guidance { name, value }))) => {
            let (Value::Number { text: value, .. } | Value::Other(value)) = value;
            faint(format!("guidance {name:?} is {}", printable(&value)))
        }
        Ok(SdkLine::Guidance(None)) => faint("guidance is registered".to_owned()),
        Ok(SdkLine::Setup) => "the setup is complete".to_owned(),
        Ok(SdkLine::Header { language, version }) => {
            faint(format!("SDK {} for {}", printable(&version), printable(&language)))
        }
        _ => faint(printable(text).to_string()),
    }
}

/// Returns the mark at the end of a line that was cut.
fn cut(truncated: bool) -> &'static str {
    if truncated { " …" } else { "" }
}

/// Describes the effects of a power loss on a disk.
#[must_use]
pub fn loss_text(loss: &Loss) -> String {
    let Loss { disk: _, unflushed, lost, in_between, torn, requests, landed, in_part } = loss;
    let mut parts = vec![format!("{lost} of {unflushed} unflushed sectors lost their newest contents")];
    if *in_between > 0 {
        parts.push(format!("{in_between} of them hold older unflushed contents"));
    }
    if *torn > 0 {
        parts.push(format!("{torn} are torn"));
    }
    if *requests > 0 {
        parts.push(format!(
            "{landed} of {requests} requests in flight were written completely and {in_part} in part"
        ));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use everett_streams::Seed;

    use super::*;

    fn plain(what: What) -> String {
        let event = Event { vtime_ns: 1_500_000_000, node: "a".to_owned(), what };
        anstream::adapter::strip_str(&line(&event, false)).to_string()
    }

    #[test]
    fn lines() {
        let output = |stream, truncated| What::Line {
            unit: "redis".to_owned(),
            stream,
            text: "a\x1b[31mb".to_owned(),
            truncated,
        };
        assert_eq!(plain(output(StreamName::Stdout, false)), "   1.500000000 redis        | a\\u{1b}[31mb");
        assert_eq!(plain(output(StreamName::Stderr, true)), "   1.500000000 redis        ! a\\u{1b}[31mb …");
        let history = |truncated| What::History { text: "{\"f\":\"a\x1b\"}".to_owned(), truncated };
        assert_eq!(plain(history(false)), "   1.500000000 history      {\"f\":\"a\\u{1b}\"}");
        assert_eq!(plain(history(true)), "   1.500000000 history      {\"f\":\"a\\u{1b}\"} …");
        let finding = What::Finding { property: "agent failure".to_owned(), text: "gone".to_owned() };
        assert_eq!(plain(finding), "   1.500000000 FOUND        gone");
        assert_eq!(
            plain(What::Begin { seed: Seed::new(7) }),
            "   1.500000000 world        the timeline begins under seed 7"
        );
        let assertion = |hit, condition| {
            let text = format!(
                "{{\"antithesis_assert\":{{\"assert_type\":\"always\",\"must_hit\":true,\"hit\":{hit},\"condition\":{condition},\
                 \"id\":\"a\\u001b\",\"location\":{{\"file\":\"f\",\"begin_line\":3}},\"details\":{{\"x\":1}}}}}}"
            );
            plain(What::Sdk { text })
        };
        assert_eq!(assertion(false, false), "   1.500000000 sdk          Always \"a\\u{1b}\" is registered");
        assert_eq!(assertion(true, true), "   1.500000000 sdk          Always \"a\\u{1b}\" holds");
        assert_eq!(
            assertion(true, false),
            "   1.500000000 sdk          Always \"a\\u{1b}\" does not hold at f:3:0: {\"x\":1}"
        );
        assert_eq!(plain(What::Ready), "   1.500000000 guest        services are ready");
    }
}
