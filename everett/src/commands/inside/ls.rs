//! `everett ls`: lists files of a machine at an instant, as programs in it see them.

use everett_host::interrupt::Interrupt;
use everett_session::inside::file_entry::{FileEntry, FileKind};
use everett_session::inside::files;
use serde::Serialize;

use super::super::Outcome;
use super::fork::{ForkArgs, ForkAt, at_place};
use super::place::Place;
use crate::ui::{Ui, printable, style};

/// `everett ls`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The fork
    #[command(flatten)]
    pub fork: ForkArgs,
    /// Folder or file in a machine, such as n1:/var/log
    #[arg(value_name = "NODE:PATH")]
    pub place: Place,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    r#type: &'static str,
    /// The name. Bytes that are no text are replaced.
    name: String,
    /// The bytes of the name, if it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<&'a [u8]>,
    inode: u64,
    mode: u32,
    names: u64,
    user: u32,
    group: u32,
    bytes: u64,
    changed_s: i64,
    changed_ns: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

/// Line of `--json` for a file that cannot be read.
#[derive(Serialize)]
struct LeftOut<'a> {
    kind: &'static str,
    node: &'a str,
    error: &'a str,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let mut at = ForkAt::open(ui, &args.fork, Some(&args.place.node), &interrupt)?;
    let listing = files::list(&mut at.fork, at.node, &args.place.path, &|| !interrupt.wanted());
    let listing = listing.map_err(|error| at_place(error, &at.name))?;
    for entry in &listing.entries {
        ui.record(&Line {
            kind: "file",
            node: &at.name,
            r#type: entry.kind.word(),
            name: String::from_utf8_lossy(&entry.name).into_owned(),
            name_bytes: std::str::from_utf8(&entry.name).is_err().then_some(&entry.name),
            inode: entry.inode,
            mode: entry.mode,
            names: entry.names,
            user: entry.user,
            group: entry.group,
            bytes: entry.bytes,
            changed_s: entry.changed_s,
            changed_ns: entry.changed_ns,
            device: is_device(entry).then_some(entry.device),
            target: entry.target.as_deref().map(|target| String::from_utf8_lossy(target).into_owned()),
        })?;
        ui.say(line(entry))?;
    }
    for why in &listing.left_out {
        ui.record(&LeftOut { kind: "left-out", node: &at.name, error: why })?;
        ui.say(style::paint(style::BAD, printable(why)))?;
    }
    Ok(if listing.left_out.is_empty() { Outcome::Fine } else { Outcome::Found })
}

fn is_device(entry: &FileEntry) -> bool {
    matches!(entry.kind, FileKind::CharacterDevice | FileKind::BlockDevice)
}

/// Returns a line as `ls -lain` prints it, with the time in UTC.
fn line(entry: &FileEntry) -> String {
    let FileEntry { inode, names, user, group, .. } = entry;
    let (kind, mode) = (entry.kind.letter(), permissions(entry.mode));
    let size = match is_device(entry) {
        true => format!("{}, {}", entry.device.0, entry.device.1),
        false => entry.bytes.to_string(),
    };
    let time = time(entry.changed_s);
    let mut line = format!("{inode:>9} {kind}{mode} {names:>3} {user:>6} {group:>6} {size:>12} {time} ");
    line.push_str(&printable(&String::from_utf8_lossy(&entry.name)));
    if let Some(target) = &entry.target {
        line.push_str(" -> ");
        line.push_str(&printable(&String::from_utf8_lossy(target)));
    }
    line
}

/// Returns permission bits as `ls -l` shows them, such as `rwxr-xr-x`.
fn permissions(mode: u32) -> String {
    let mut shown = String::new();
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        let is_special = mode & special != 0;
        shown.push(if bits & 4 != 0 { 'r' } else { '-' });
        shown.push(if bits & 2 != 0 { 'w' } else { '-' });
        shown.push(match (bits & 1 != 0, is_special) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    shown
}

/// Returns a time as `2026-01-31 23:59:58`, or as a number of seconds if its year does not have four digits.
fn time(seconds: i64) -> String {
    const DAY_S: i64 = 24 * 60 * 60;
    let (days, second) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let Some((year, month, day)) = date(days) else { return format!("{seconds:>19}") };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Returns the date of a day, counted from 1970-01-01, in the Gregorian calendar. `None` if its year is not 0 to 9999.
fn date(days: i64) -> Option<(i64, i64, i64)> {
    // Counted from 0000-03-01, a leap day is the last day of its year.
    let days = days.checked_add(719_468).filter(|days| (0..3_652_000).contains(days))?;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Some((era * 400 + year + next, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_767_225_599, "2025-12-31 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (i64::MAX, "9223372036854775807"),
        ] {
            assert_eq!(time(seconds), shown);
        }
    }

    #[test]
    fn permissions_are_shown_as_ls_does() {
        for (mode, shown) in [
            (0o755, "rwxr-xr-x"),
            (0o4755, "rwsr-xr-x"),
            (0o2644, "rw-r-Sr--"),
            (0o1777, "rwxrwxrwt"),
            (0o1000, "--------T"),
        ] {
            assert_eq!(permissions(mode), shown);
        }
    }

    #[test]
    fn names_cannot_control_a_terminal() {
        let entry = FileEntry {
            kind: FileKind::Link,
            mode: 0o777,
            user: 0,
            group: 5,
            bytes: 3,
            changed_s: 0,
            changed_ns: 0,
            inode: 12,
            names: 1,
            device: (0, 0),
            name: b"\x1b[2J".to_vec(),
            target: Some(b"../x".to_vec()),
        };
        let expected =
            "       12 lrwxrwxrwx   1      0      5            3 1970-01-01 00:00:00 \\u{1b}[2J -> ../x";
        assert_eq!(line(&entry), expected);
    }
}
