//! Records timelines at the end of an exploration, for the report, within a budget of host time. It replays each
//! finding once, and then some branches that reached new coverage points.
//!
//! A replay is compared with the exploration all the way, and must end with the same trail and the same finding. If
//! it differs, the exploration was not exact, and the recording is dropped.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::Context;
use everett_explorer::run::branches::Branches;
use everett_explorer::run::{Finding, Merged, Reading, Record};
use everett_host::time::Stopwatch;
use everett_input::causes::with_causes;
use everett_input::units::{Vtime, show_duration_ns};
use everett_report::data::limits::SCENES_MAX;
use everett_report::data::{Different, Recordings};
use everett_report::exploration::figures::counted;
use everett_session::explore::marks;
use everett_session::explore::path_runner::Watch;
use everett_session::explore::replay::{Recorded, Replayed, replay};
use everett_session::explore::setting::Setting;
use everett_session::explore::shrink::Wanted;
use everett_session::output::replace::replace;
use everett_session::world::event::Event;
use everett_vmm::wire::log::FrameStep;

use super::recording::{Key, Recording, is_recorded};
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// Name of the file with the outcome of recording, in the run directory.
pub(super) const FILE: &str = "recorded.json";

/// Maximum number of branches without a finding whose timelines are recorded.
pub(super) const LOGS_MAX: usize = 16;
/// Minimum number of explored branches for each recorded branch without a finding. In short explorations this minimum
/// limits the time that recording adds.
const LOGS_PART: usize = 32;

/// Branch to replay, with the findings that it was the first to show. If there are no such findings, the
/// recording leaves out messages, and the report uses it for its map of branches.
struct Job<'f> {
    record: Record,
    recorded: Recorded,
    findings: Vec<&'f Finding>,
}

impl<'f> Job<'f> {
    fn of(reading: &Reading, choice: u64, findings: Vec<&'f Finding>) -> anyhow::Result<Job<'f>> {
        let record = reading.get(choice)?.with_context(|| format!("there is no branch {choice}"))?;
        Ok(Job { recorded: Recorded::of(reading, &record)?, record, findings })
    }

    /// Returns the keys of the files that this job writes.
    fn keys(&self) -> Vec<Key> {
        match self.findings.as_slice() {
            [] => vec![Key::Branch(self.record.choice)],
            findings => findings.iter().map(|finding| Key::Finding(finding.id)).collect(),
        }
    }
}

/// Chooses branches without a finding to record: the branches that added the most new points of coverage. Skips
/// branches in `covered`, whose lines are part of another recording. Adds the chosen branches and their ancestors to
/// `covered`.
fn interesting(branches: &Branches, covered: &mut BTreeSet<u64>) -> Vec<u64> {
    let mut all: Vec<(Reverse<u64>, u64)> = (0..)
        .zip(&branches.all)
        .filter(|(_, branch)| branch.new_points > 0 && !branch.broken)
        .map(|(n, branch)| (Reverse(branch.new_points), n))
        .collect();
    all.sort_unstable();
    let most = LOGS_MAX.min(branches.all.len() / LOGS_PART);
    let mut chosen = Vec::new();
    for (_, branch) in all {
        if chosen.len() >= most {
            break;
        }
        if !covered.contains(&branch) {
            cover(branches, branch, covered);
            chosen.push(branch);
        }
    }
    chosen
}

/// Adds a branch and its ancestors to `covered`, up to the first one that is covered already.
fn cover(branches: &Branches, branch: u64, covered: &mut BTreeSet<u64>) {
    let mut next = Some(branch);
    while let Some(branch) = next
        && covered.insert(branch)
    {
        let place = usize::try_from(branch).unwrap_or(usize::MAX);
        next = branches.all.get(place).and_then(|branch| branch.from);
    }
}

/// Result of a job.
enum Made {
    Recorded,
    /// The budget ran out first.
    OutOfTime,
    /// The replay differed from the exploration, for this reason.
    Different(String),
}

/// Records timelines of an ended exploration. The timelines of findings come first, in the order of the findings. Then
/// come timelines of branches that reached new coverage points. Stops when `budget_ns` of host time are used up. Writes
/// the outcome into the run directory.
pub(super) fn findings(
    ui: &Ui,
    setting: &Setting,
    folder: &Path,
    merged: &Merged,
    budget_ns: u64,
    workers: usize,
) -> anyhow::Result<Recordings> {
    let mut result = Recordings { budget_ns, ..Recordings::default() };
    if budget_ns == 0 {
        return Ok(result);
    }
    let clock = Stopwatch::start();
    let (reading, _, branches) = Reading::open_with_branches(folder)?;
    let (shown, beyond) = merged.findings().split_at(merged.findings().len().min(SCENES_MAX));
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for finding in shown {
        if let Some(job) = jobs.iter_mut().find(|job| job.record.choice == finding.first) {
            job.findings.push(finding);
            continue;
        }
        jobs.push(Job::of(&reading, finding.first, vec![finding])?);
    }
    let mut covered = BTreeSet::new();
    jobs.iter().for_each(|job| cover(&branches, job.record.choice, &mut covered));
    for branch in interesting(&branches, &mut covered) {
        jobs.push(Job::of(&reading, branch, Vec::new())?);
    }
    if jobs.is_empty() {
        return Ok(result);
    }
    let is_done = |job: &Job<'_>| {
        job.keys()
            .iter()
            .all(|key| is_recorded(folder, *key, &job.record.path.to_string(), &job.record.trail))
    };
    let (done, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_done);
    done.iter().flat_map(Job::keys).for_each(|key| add(&mut result, key));
    let bar = RunBar::endless(ui, "recording");
    let (next, total) = (AtomicUsize::new(0), jobs.len());
    let made = thread::scope(|scope| -> anyhow::Result<Vec<(usize, Made)>> {
        let (send, receive) = mpsc::channel();
        for _ in 0..workers.clamp(1, total.max(1)) {
            let (send, next, jobs) = (send.clone(), &next, &jobs);
            scope.spawn(move || {
                while let place = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(job) = jobs.get(place)
                {
                    let made = record(setting, folder, job, &|| spent_ns(clock) < budget_ns);
                    // The send fails only if the receiver has ended, and an ended receiver needs no result.
                    let _ = send.send((place, made));
                }
            });
        }
        drop(send);
        let mut all = Vec::new();
        for (place, made) in receive {
            all.push((place, made?));
            bar.say(&format!("{} of {total} timelines", all.len()));
        }
        Ok(all)
    });
    bar.clear();
    for (place, made) in made? {
        let Some(job) = jobs.get(place) else { continue };
        let findings = job.findings.iter().map(|finding| finding.id);
        match made {
            Made::Recorded => job.keys().into_iter().for_each(|key| add(&mut result, key)),
            Made::OutOfTime => result.left_out.extend(findings),
            Made::Different(why) => {
                result.different.push(Different {
                    branch: job.record.choice,
                    findings: findings.collect(),
                    why,
                });
            }
        }
    }
    result.left_out.extend(beyond.iter().map(|finding| finding.id));
    result.recorded.sort_unstable();
    result.left_out.sort_unstable();
    result.branches.sort_unstable();
    result.different.sort_unstable_by_key(|different| different.branch);
    result.host_ns = spent_ns(clock);
    replace(&folder.join(FILE), &(serde_json::to_string_pretty(&result)? + "\n"))?;
    Ok(result)
}

fn add(result: &mut Recordings, key: Key) {
    match key {
        Key::Finding(id) => result.recorded.push(id),
        Key::Branch(branch) => result.branches.push(branch),
    }
}

fn spent_ns(clock: Stopwatch) -> u64 {
    u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Replays a branch and writes its timeline to a file. Stops when `go_on` returns false, because the budget is used
/// up.
fn record(setting: &Setting, folder: &Path, job: &Job<'_>, go_on: &dyn Fn() -> bool) -> anyhow::Result<Made> {
    if !go_on() {
        return Ok(Made::OutOfTime);
    }
    let names: Vec<String> = setting.launcher.world.nodes.iter().map(|node| node.name.clone()).collect();
    let mut tape = Tape { recording: Recording::new(&names), messages: !job.findings.is_empty(), go_on };
    let branch = match replay(setting, &job.record.path, &job.recorded, &mut tape) {
        Ok(Replayed::Same(branch)) => branch,
        Ok(Replayed::Ended(_)) => return Ok(Made::OutOfTime),
        Ok(Replayed::Left { vtime_ns, recorded, came }) => {
            let at = Vtime(vtime_ns).to_string();
            return Ok(Made::Different(format!(
                "it left the recorded trail at {} s: the recorded digest is {recorded}…, the replay's {came}…",
                at.trim()
            )));
        }
        Err(error) => return Ok(Made::Different(with_causes(error.as_ref()))),
    };
    let trail = marks::digest(&branch.marks);
    if trail != job.record.trail {
        return Ok(Made::Different(format!(
            "it ends with trail {trail}; the recorded trail is {}",
            job.record.trail
        )));
    }
    for finding in &job.findings {
        if Wanted::of(&finding.hit).in_branch(&branch).is_none() {
            return Ok(Made::Different(
                "it has the recorded trail, but does not show the finding".to_owned(),
            ));
        }
    }
    for key in job.keys() {
        tape.recording.write(folder, key, &job.record.path.to_string(), &job.record.trail)?;
    }
    Ok(Made::Recorded)
}

/// Watches a replay and records it until the budget is used up.
struct Tape<'t> {
    recording: Recording,
    /// True to record messages between machines as well.
    messages: bool,
    go_on: &'t dyn Fn() -> bool,
}

impl Watch for Tape<'_> {
    fn event(&mut self, event: &Event) {
        self.recording.event(event);
    }

    fn message(&mut self, step: &FrameStep) {
        if self.messages {
            self.recording.message(step);
        }
    }

    fn at(&mut self, _: u64) -> bool {
        (self.go_on)()
    }
}

/// Prints which timelines were recorded, and the command that records another one.
pub(super) fn tell(ui: &Ui, result: &Recordings, folder: &str, exact: bool) -> anyhow::Result<()> {
    let Recordings { budget_ns, host_ns, recorded, branches, left_out, different } = result;
    let findings = (!recorded.is_empty()).then(|| numbered(recorded));
    let others =
        (!branches.is_empty()).then(|| counted(branches.len() as u64, "other branch", "other branches"));
    let all: Vec<String> = findings.into_iter().chain(others).collect();
    if !all.is_empty() {
        let (used, budget) =
            (show_duration_ns(host_ns / 1_000_000 * 1_000_000), show_duration_ns(*budget_ns));
        let line = format!(
            "the timelines of {} are recorded; this took {used} of {budget} (--record)",
            all.join(" and ")
        );
        ui.say(style::paint(style::FAINT, line))?;
    }
    if let [first, ..] = left_out.as_slice() {
        let command = format!("everett replay {folder} {first} --record");
        let line = format!("the timelines of {} are not recorded: {command} records one", numbered(left_out));
        ui.say(style::paint(style::NOTE, line))?;
    }
    for Different { branch, why, .. } in different {
        let reason = match exact {
            true => {
                "a defect of Everett; everett verify finds the first instruction at which two runs differ"
            }
            false => "the engine is not exact on this host",
        };
        let line = format!(
            "branch {branch}: its replay differs from the exploration ({reason}): {}",
            printable(why)
        );
        ui.say(style::paint(style::BAD, line))?;
    }
    Ok(())
}

/// Returns numbers of findings as text, such as `finding 3` or `findings 1 to 4, 9`.
fn numbered(ids: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *id => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    let range = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let list = ranges.iter().map(range).collect::<Vec<_>>().join(", ");
    format!("{} {list}", if ids.len() == 1 { "finding" } else { "findings" })
}

#[cfg(test)]
mod tests {
    use everett_explorer::run::branches::Branch;

    use super::*;

    fn branch(from: Option<u64>, new_points: u64) -> Branch {
        Branch {
            from,
            child: 1,
            begin_ns: 0,
            end_ns: 1,
            cpu_ns: 1,
            instructions: 1,
            final_phase: None,
            faults: 0,
            kinds: 0,
            messages: 0,
            new_points,
            open: true,
            checked: false,
            broken: false,
            findings: Vec::new(),
        }
    }

    /// The branches with the most new points are recorded: at most one per timeline, and one for each 32 branches of
    /// the exploration.
    #[test]
    fn interesting_branches_are_on_timelines_of_their_own() {
        let all =
            [branch(None, 9), branch(Some(0), 50), branch(Some(1), 5), branch(None, 7), branch(None, 8)];
        let mut branches = Branches { all: all.into(), ..Branches::default() };
        branches.all.extend((0..59).map(|_| branch(None, 0)));
        assert_eq!(branches.all.len(), 2 * LOGS_PART);
        assert_eq!(interesting(&branches, &mut BTreeSet::new()), [1, 4], "0 is on the way to 1");
        let mut covered = BTreeSet::new();
        cover(&branches, 2, &mut covered);
        assert_eq!(interesting(&branches, &mut covered), [4, 3], "0 and 1 are on the way to 2");
        branches.all.truncate(LOGS_PART - 1);
        assert_eq!(interesting(&branches, &mut BTreeSet::new()), [0u64; 0]);
    }

    #[test]
    fn findings_are_named_by_ranges() {
        assert_eq!(numbered(&[3]), "finding 3");
        assert_eq!(numbered(&[1, 2, 4]), "findings 1, 2, 4");
        assert_eq!(numbered(&[1, 2, 3, 4, 9]), "findings 1 to 4, 9");
    }
}
