//! Encoding of records, i.e. results of branches, as bytes. Coverage points become numbers, digests become bytes, and
//! times become differences. A record has these parts in the `postcard` format, one after the other:
//!
//! - [`Heading`]: the fields that the index of the file needs: the branch's number, the new coverage points, and the
//!   hits (violations of properties)
//! - [`Main`]: the other fields that are merged into the summary of the exploration
//! - [`FinalPhase`]: the cost of what the timeline executed after the branch's end, for the checks. Empty if no checks
//!   ran. Format version 3 lacks this part
//! - `Rest`: digests along the trail, which only a replay needs
//!
//! A change of these parts needs a new [`SCHEMA_VERSION`](super::SCHEMA_VERSION).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bounded_list::BoundedList;
use super::error::Damage;
use super::final_phase::FinalPhase;
use super::hit::{Evidence, Hit};
use super::limits::{
    EVIDENCE_LINES_MAX, HITS_MAX, MARKS_MAX, NAME_BYTES_MAX, SIGNATURE_BYTES_MAX, SOMETIMES_MAX,
};
use super::merge_input::MergeInput;
use super::record::{HistoryCount, Record};
use super::string_table::NewPoint;
use super::version::FINAL_PHASE_SINCE;
use crate::composer::limits::COMMANDS_MAX;
use crate::composer::{Counts, Tally};
use crate::coverage::limits::DELTA_POINTS_MAX;
use crate::coverage::{Delta, Numbers, Point, Unnumbered};
use crate::search::{FORKS_MAX, Fork, Path};
use crate::text::clip;

/// Part of a record that the index of the file needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Heading {
    pub(super) choice: u64,
    /// Coverage points that no earlier record has, in the order of their numbers.
    pub(super) points: BoundedList<NewPoint, DELTA_POINTS_MAX>,
    pub(super) hits: BoundedList<StoredHit, HITS_MAX>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredHit {
    property: String,
    signature: String,
    text: String,
    vtime_ns: u64,
    node: Option<String>,
    lines: BoundedList<String, EVIDENCE_LINES_MAX>,
    packets: BoundedList<String, EVIDENCE_LINES_MAX>,
    faults: BoundedList<String, EVIDENCE_LINES_MAX>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Main<'b> {
    exact: [u8; blake3::OUT_LEN],
    from: Option<u64>,
    /// Forks of the path. Each is the vtime since the previous fork, in nanoseconds, and the child number.
    path: BoundedList<(u64, u64), FORKS_MAX>,
    open_ns: Option<u64>,
    end_ns: u64,
    instructions: u64,
    executed: u64,
    cpu_ns: u64,
    checked: bool,
    faults: u64,
    losses: u64,
    messages: u64,
    /// Numbers of the reached coverage points, as [`Numbers::pack`] encodes them.
    reached: &'b [u8],
    unnumbered: BoundedList<(Point, u64), DELTA_POINTS_MAX>,
    overflow: u64,
    strange: u64,
    sometimes: BoundedList<String, SOMETIMES_MAX>,
    commands: BoundedList<(String, Counts), COMMANDS_MAX>,
    history: Option<HistoryCount>,
    log_bytes: u64,
    log_cut: bool,
    broken: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Rest {
    trail: Digits,
    /// Second differences (differences of differences) of the vtimes of `digests`, in nanoseconds.
    times: BoundedList<i64, MARKS_MAX>,
    digests: BoundedList<Digits, MARKS_MAX>,
}

/// Text that usually consists of hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
enum Digits {
    Hex(BoundedList<u8, { super::limits::TRAIL_BYTES_MAX }>),
    Text(String),
}

impl Digits {
    fn of(text: &str) -> Digits {
        let digit = |c: u8| char::from(c).to_digit(16).filter(|_| !c.is_ascii_uppercase());
        let byte = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        };
        match text.as_bytes().chunks(2).map(byte).collect() {
            Some(bytes) => Digits::Hex(BoundedList(bytes)),
            None => Digits::Text(text.to_owned()),
        }
    }

    fn text(self) -> String {
        match self {
            Digits::Hex(BoundedList(bytes)) => crate::text::hex(&bytes),
            Digits::Text(text) => text,
        }
    }
}

impl StoredHit {
    fn of(hit: &Hit) -> StoredHit {
        let Hit { property, signature, text, vtime_ns, node, evidence } = hit.clone();
        let Evidence { lines, packets, faults } = evidence;
        let (lines, packets, faults) = (BoundedList(lines), BoundedList(packets), BoundedList(faults));
        StoredHit { property, signature, text, vtime_ns, node, lines, packets, faults }
    }

    fn hit(self) -> Hit {
        let StoredHit { property, signature, text, vtime_ns, node, lines, packets, faults } = self;
        let evidence = Evidence { lines: lines.0, packets: packets.0, faults: faults.0 };
        Hit { property, signature, text, vtime_ns, node, evidence }
    }

    /// Returns the property and the signature (the text that all hits of one bug have) of the hit, cut to their bounds.
    pub(super) fn key(&self) -> (String, String) {
        (clip(&self.property, NAME_BYTES_MAX), clip(&self.signature, SIGNATURE_BYTES_MAX))
    }
}

/// Encodes a record that is within its bounds. `new_points` lists the coverage points that no earlier record has.
pub(super) fn encode(
    record: &Record,
    input: &MergeInput,
    new_points: Vec<NewPoint>,
) -> Result<Vec<u8>, Damage> {
    parts(record, input, new_points).map(|parts| parts.concat())
}

/// Encodes a record in format version 3.
#[cfg(test)]
pub(super) fn encode_version_3(
    record: &Record,
    input: &MergeInput,
    new_points: Vec<NewPoint>,
) -> Result<Vec<u8>, Damage> {
    let [heading, main, _, rest] = parts(record, input, new_points)?;
    Ok([heading, main, rest].concat())
}

/// Encodes the parts of a record, in their order.
fn parts(record: &Record, input: &MergeInput, new_points: Vec<NewPoint>) -> Result<[Vec<u8>; 4], Damage> {
    let hits = input.record.hits.iter().map(StoredHit::of).collect();
    let heading = Heading { choice: record.choice, points: BoundedList(new_points), hits: BoundedList(hits) };
    let mut before = 0;
    let mut later = |ns: u64| ns.wrapping_sub(std::mem::replace(&mut before, ns));
    let path = record.path.forks().iter().map(|fork| (later(fork.vtime_ns), fork.child)).collect();
    let numbers = &input.numbers;
    let unnumbered = numbers.unnumbered().iter().map(|point| (Point::clone(&point.point), point.vtime_ns));
    let packed = numbers.pack();
    let main = Main {
        exact: *input.exact.as_bytes(),
        from: record.from,
        path: BoundedList(path),
        open_ns: record.open_ns,
        end_ns: record.end_ns,
        instructions: record.instructions,
        executed: record.executed,
        cpu_ns: record.cpu_ns,
        checked: record.checked,
        faults: record.faults,
        losses: record.losses,
        messages: record.messages,
        reached: &packed,
        unnumbered: BoundedList(unnumbered.collect()),
        overflow: numbers.overflow(),
        strange: numbers.strange(),
        sometimes: BoundedList(record.sometimes.clone()),
        commands: BoundedList(
            record.commands.commands().map(|(name, counts)| (name.to_owned(), counts)).collect(),
        ),
        history: record.history,
        log_bytes: record.log_bytes,
        log_cut: record.log_cut,
        broken: record.broken.clone(),
    };
    let (mut at, mut step) = (0u64, 0u64);
    let times = record.marks.iter().map(|(vtime_ns, _)| {
        let next = vtime_ns.wrapping_sub(std::mem::replace(&mut at, *vtime_ns));
        next.wrapping_sub(std::mem::replace(&mut step, next)).cast_signed()
    });
    let rest = Rest {
        trail: Digits::of(&record.trail),
        times: BoundedList(times.collect()),
        digests: BoundedList(record.marks.iter().map(|(_, digest)| Digits::of(digest)).collect()),
    };
    let heading = postcard::to_stdvec(&heading).map_err(postcard_damage)?;
    let main = postcard::to_stdvec(&main).map_err(postcard_damage)?;
    let final_phase = postcard::to_stdvec(&record.final_phase).map_err(postcard_damage)?;
    let rest = postcard::to_stdvec(&rest).map_err(postcard_damage)?;
    Ok([heading, main, final_phase, rest])
}

/// Decodes the heading of a record. Returns the heading, and the bytes after it.
pub(super) fn heading(bytes: &[u8]) -> Result<(Heading, &[u8]), Damage> {
    postcard::take_from_bytes(bytes).map_err(postcard_damage)
}

/// Decodes a record's [`MergeInput`] from its heading and the bytes after the heading. `points` is the number of
/// coverage points that have a number, and `version` is the format version of the run.
pub(super) fn merge_input(
    heading: Heading,
    bytes: &[u8],
    points: usize,
    version: u32,
) -> Result<MergeInput, Damage> {
    main(heading, bytes, points, version).map(|(input, _)| input)
}

/// Decodes a whole record. `points` is the number of coverage points that have a number, and `version` is the format
/// version of the run.
pub(super) fn whole(
    bytes: &[u8],
    points: usize,
    version: u32,
    delta: impl FnOnce(&Numbers) -> Option<Delta>,
) -> Result<Record, Damage> {
    let (heading, bytes) = heading(bytes)?;
    let (MergeInput { mut record, numbers, exact }, bytes) = main(heading, bytes, points, version)?;
    let (Rest { trail, times, digests }, bytes) =
        postcard::take_from_bytes(bytes).map_err(postcard_damage)?;
    if !bytes.is_empty() || times.0.len() != digests.0.len() {
        return Err(Damage::Form);
    }
    record.trail = trail.text();
    let (mut at, mut step) = (0u64, 0u64);
    for (more, digest) in times.0.into_iter().zip(digests.0) {
        step = step.wrapping_add_signed(more);
        at = at.wrapping_add(step);
        record.marks.push((at, digest.text()));
    }
    record.delta = delta(&numbers).ok_or(Damage::Form)?;
    record.bound();
    record.check().map_err(Damage::Record)?;
    if super::exact::exact(&record) == exact { Ok(record) } else { Err(Damage::Exact) }
}

fn main(heading: Heading, bytes: &[u8], points: usize, version: u32) -> Result<(MergeInput, &[u8]), Damage> {
    let (main, bytes): (Main<'_>, _) = postcard::take_from_bytes(bytes).map_err(postcard_damage)?;
    let (final_phase, bytes): (Option<FinalPhase>, _) = match version {
        ..FINAL_PHASE_SINCE => (None, bytes),
        _ => postcard::take_from_bytes(bytes).map_err(postcard_damage)?,
    };
    let Main { exact, from, path, open_ns, end_ns, instructions, executed, cpu_ns, checked, .. } = main;
    let Main { faults, losses, messages, sometimes, commands, history, log_bytes, log_cut, broken, .. } =
        main;
    if main.unnumbered.0.iter().any(|(point, _)| !point.is_bounded()) {
        return Err(Damage::LongText);
    }
    let unnumbered = main.unnumbered.0.into_iter();
    let unnumbered =
        unnumbered.map(|(point, vtime_ns)| Unnumbered { id: point.id(), point: point.into(), vtime_ns });
    let numbers = Numbers::unpack(main.reached, points, unnumbered.collect(), main.overflow, main.strange)
        .map_err(|problem| Damage::Text(problem.to_string()))?;
    let mut before_ns = 0u64;
    let path = path.0.into_iter().try_fold(Path::default(), |mut path, (later, child)| {
        before_ns = before_ns.wrapping_add(later);
        path.push(Fork { vtime_ns: before_ns, child }).map(|()| path)
    });
    let commands: BTreeMap<String, Counts> = commands.0.into_iter().collect();
    let mut record = Record {
        choice: heading.choice,
        from,
        path: path.map_err(|problem| Damage::Text(problem.to_string()))?,
        open_ns,
        end_ns,
        instructions,
        final_phase,
        executed,
        cpu_ns,
        trail: String::new(),
        marks: Vec::new(),
        checked,
        faults,
        losses,
        messages,
        delta: Delta::default(),
        hits: heading.hits.0.into_iter().map(StoredHit::hit).collect(),
        sometimes: sometimes.0,
        commands: Tally::try_from(commands).map_err(|problem| Damage::Text(problem.to_string()))?,
        history,
        log_bytes,
        log_cut,
        broken,
    };
    record.bound();
    record.check().map_err(Damage::Record)?;
    Ok((MergeInput { record, numbers, exact: exact.into() }, bytes))
}

fn postcard_damage(error: postcard::Error) -> Damage {
    Damage::Text(error.to_string())
}
