//! A profile as text.

use everett_report::exploration::figures::{count, counted};
use everett_session::inside::profile::{Amount, KindRow, Tables};

use crate::ui::printable;

/// Maximum length of a name in a table, in characters. The rest is cut off.
const NAME_CHARS_SHOWN_MAX: usize = 80;

/// Line of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_heading: bool,
}

/// Returns a sentence about the number of samples.
pub(super) fn summary(tables: &Tables) -> String {
    let samples = counted(tables.samples, "sample", "samples");
    format!("{samples}, one every {} retired instructions of a node", tables.every_instructions)
}

/// Returns the tables, each with at most `rows` rows.
pub(super) fn lines(tables: &Tables, rows: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let nodes = tables.nodes.iter().map(|row| {
        format!("{}  {:<16}  {}", amount(row.amount), name(&row.node), kinds(&row.kinds, row.amount))
    });
    table(&mut lines, "by node: share, million instructions, node, kinds", nodes, rows);
    let kinds_of_all = tables.kinds.iter().map(|row| format!("{}  {}", amount(row.amount), row.kind.name()));
    table(&mut lines, "by kind: share, million instructions, kind", kinds_of_all, rows);
    let processes = tables.processes.iter().map(|row| {
        let (node, process) = (name(&row.node), name(&row.process));
        let kinds = kinds(&row.kinds, row.amount);
        format!("{}  {node:<16} {:>6}  {process:<16}  {kinds}", amount(row.amount), row.pid)
    });
    table(&mut lines, "by process: share, million instructions, node, PID, process, kinds", processes, rows);
    let functions = tables.functions.iter().map(|row| {
        let object = if row.object.is_empty() { String::new() } else { format!(" ({})", name(&row.object)) };
        format!("{}  {:>6.2} %  {}{object}", amount(row.own), row.total.percent, name(&row.function))
    });
    table(
        &mut lines,
        "by function: share, million instructions, share with callees, function",
        functions,
        rows,
    );
    lines.extend(tables.cut.lines().into_iter().map(|text| Line { text, is_heading: false }));
    lines
}

fn table(lines: &mut Vec<Line>, heading: &str, rows: impl ExactSizeIterator<Item = String>, max: usize) {
    let more = rows.len().saturating_sub(max);
    lines.push(Line { text: heading.to_owned(), is_heading: true });
    lines.extend(rows.take(max).map(|text| Line { text: text.trim_end().to_owned(), is_heading: false }));
    if more > 0 {
        let text = format!("          and {} more, in profile.json", counted(more as u64, "row", "rows"));
        lines.push(Line { text, is_heading: false });
    }
}

fn amount(amount: Amount) -> String {
    // A sample stands for at least 1,000 instructions, so thousandths of a million are exact enough.
    let thousands = amount.instructions / 1_000;
    format!("{:>7.2} %  {:>10}.{:03}", amount.percent, count(thousands / 1_000), thousands % 1_000)
}

/// Returns the shares of the kinds within a row.
fn kinds(kinds: &[KindRow], all: Amount) -> String {
    let shares = kinds.iter().map(|row| {
        let share = (row.amount.samples * 100).checked_div(all.samples).unwrap_or(0);
        format!("{} {share} %", row.kind.name())
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// Returns a name that a guest may have chosen, for a table.
fn name(name: &str) -> String {
    let shown = printable(name);
    let end = shown.char_indices().nth(NAME_CHARS_SHOWN_MAX);
    end.map_or(shown.clone(), |(end, _)| format!("{}…", &shown[..end]))
}

#[cfg(test)]
mod tests {
    use everett_session::inside::profile::Profile;
    use everett_session::inside::sampler::{Function, Kind, Sample};

    use super::*;

    fn sample(process: &str, functions: &[&str]) -> Sample {
        let functions = functions.iter().map(|name| Function {
            name: (*name).to_owned(),
            object: "/bin/x".to_owned(),
            is_kernel: false,
        });
        let functions = functions.collect();
        Sample { pid: 12, process: process.to_owned(), kind: Kind::User, functions }
    }

    #[test]
    fn tables_show_shares_and_hide_control_characters() {
        let mut profile = Profile::new(2_000_000, ["n1".to_owned()]);
        profile.add(0, sample("busy", &["main", "spin"]));
        profile.add(0, sample("busy", &["main", "spin"]));
        profile.add(0, sample("\u{1b}[2J", &["main"]));
        profile.add_unread(0, Kind::Unreadable);
        let tables = profile.tables();
        assert_eq!(summary(&tables), "4 samples, one every 2000000 retired instructions of a node");
        let text: Vec<String> = lines(&tables, 2).into_iter().map(|line| line.text).collect();
        let expected = "\
by node: share, million instructions, node, kinds
 100.00 %           8.000  n1                user code 75 %, unreadable 25 %
by kind: share, million instructions, kind
  75.00 %           6.000  user code
  25.00 %           2.000  unreadable
by process: share, million instructions, node, PID, process, kinds
  50.00 %           4.000  n1                   12  busy              user code 100 %
  25.00 %           2.000  n1                    0  [unreadable]      unreadable 100 %
          and 1 row more, in profile.json
by function: share, million instructions, share with callees, function
  50.00 %           4.000   50.00 %  spin (/bin/x)
  25.00 %           2.000   75.00 %  main (/bin/x)
          and 1 row more, in profile.json";
        assert_eq!(text.join("\n"), expected);
        let all = lines(&tables, 10);
        assert!(all.iter().any(|line| line.text.contains("\\u{1b}[2J")), "{all:?}");
        assert!(all.iter().all(|line| !line.text.contains('\u{1b}')));
    }
}
