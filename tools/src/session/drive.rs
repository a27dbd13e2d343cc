//! Running a timeline from its beginning to its end, for whoever watches.

use everett_vmm::digest::Digest;
use everett_vmm::digest::trail::TRAIL_INTERVAL_NS;
use everett_vmm::machine::{Stop, Until};

use super::agent::Phase;
use super::event::Event;
use super::timeline::Timeline;

/// Watchers get a word after so much vtime: a fraction of a second of host time.
const STEP_NS: u64 = TRAIL_INTERVAL_NS / 5;
/// What drivers get to die, and the agent to say so, in nanoseconds of vtime.
const GRACE_NS: u64 = 10_000_000_000;

/// Somebody who watches a timeline. Nothing they do changes it, but for ending it early.
pub trait Watch {
    /// Something happened.
    ///
    /// # Errors
    /// The timeline ends with this error.
    fn event(&mut self, event: &Event) -> anyhow::Result<()>;
    /// The serial console got these bytes.
    ///
    /// # Errors
    /// The timeline ends with this error.
    fn console(&mut self, bytes: &[u8]) -> anyhow::Result<()>;
    /// The trail's next point.
    ///
    /// # Errors
    /// The timeline ends with this error.
    fn point(&mut self, vtime_ns: u64, digest: Digest) -> anyhow::Result<()>;
    /// The timeline is here. Returns whether it goes on.
    fn at(&mut self, vtime_ns: u64, instructions: u64) -> bool;
}

/// How a timeline ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All was run: workload and checks, or what the guest left of them.
    Whole,
    /// The watcher wanted no more.
    Cut,
}

/// Run `timeline` for `duration_ns` of vtime, then its checks. It ends at a point of the trail.
///
/// # Errors
/// Those of the watcher.
pub fn drive(timeline: &mut Timeline, duration_ns: u64, watch: &mut impl Watch) -> anyhow::Result<Ended> {
    timeline.end_at(duration_ns);
    let last_ns = duration_ns.saturating_add(GRACE_NS).saturating_add(timeline.checks_ns());
    let mut seen_points = 0;
    let mut next_ns = 0u64;
    loop {
        let stop = timeline.run(&Until::vtime(next_ns));
        let now = timeline.machine().vtime();
        for event in timeline.take_events() {
            watch.event(&event)?;
        }
        let console = timeline.machine_mut().output().take_console();
        if !console.is_empty() {
            watch.console(&console)?;
        }
        for &(vtime_ns, digest) in &timeline.trail().points()[seen_points..] {
            watch.point(vtime_ns, digest)?;
        }
        seen_points = timeline.trail().points().len();
        if !watch.at(now, timeline.machine().icount()) {
            return Ok(Ended::Cut);
        }
        if matches!(stop, Stop::End(_)) {
            return Ok(Ended::Whole);
        }
        let at_point = next_ns.is_multiple_of(TRAIL_INTERVAL_NS);
        match timeline.phase() {
            Phase::Done | Phase::Broken if at_point => return Ok(Ended::Whole),
            Phase::Stopping if now > duration_ns.saturating_add(GRACE_NS) => {
                timeline.give_up("the drivers did not stop when they were killed");
            }
            Phase::Checking if now > last_ns => timeline.give_up("the checks did not end in time"),
            _ => {}
        }
        next_ns = next_ns.saturating_add(STEP_NS);
    }
}
