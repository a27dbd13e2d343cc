//! Run of a timeline from its start to its end, with reports to an observer.

use everett_cpu::Edge;
use everett_vmm::digest::Digest;
use everett_vmm::divergence::trail::TRAIL_INTERVAL_NS;
use everett_vmm::machine::{Stop, Until};
use everett_vmm::wire::log::FrameStep;
use everett_vmm::world::Captured;

use crate::world::conversation::Phase;
use crate::world::event::Event;
use crate::world::timeline::{ANSWER_NS_MAX, CALM_NS_MAX, Timeline};

/// Length of a step, in nanoseconds of vtime. After each step the observer gets a report. A busy guest executes a step
/// in a fraction of a second of host time.
const STEP_NS: u64 = TRAIL_INTERVAL_NS / 5;
/// Time limit of a workload without a duration, in nanoseconds of vtime: ten minutes.
pub const UNTIL_DONE_NS_MAX: u64 = 600_000_000_000;

/// Observer of a timeline. It can end the timeline early, but cannot change it. By default it ignores everything.
pub trait Watch {
    /// Receives an event.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn event(&mut self, _event: &Event) -> anyhow::Result<()> {
        Ok(())
    }
    /// Receives console output of the node with this index.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn console(&mut self, _node: usize, _bytes: &[u8]) -> anyhow::Result<()> {
        Ok(())
    }
    /// Receives the fates of frames. If the world captures frames, also receives the frames.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn wire(&mut self, _steps: &[FrameStep], _frames: &[Captured]) -> anyhow::Result<()> {
        Ok(())
    }
    /// Receives the next point of the trail.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn point(&mut self, _vtime_ns: u64, _digest: Digest) -> anyhow::Result<()> {
        Ok(())
    }
    /// Receives a line about an instruction that a program executed although the CPU model lacks it
    /// ([`Timeline::take_missing_notes`]).
    ///
    /// # Errors
    /// An error ends the timeline.
    fn missing_instruction(&mut self, _line: &str) -> anyhow::Result<()> {
        Ok(())
    }
    /// Receives the edges that a node has executed for the first time. An edge is a branch instruction and the
    /// instruction that was executed after it.
    fn edges(&mut self, _node: usize, _edges: &[Edge]) {}
    /// Receives the timeline when this node has retired the number of instructions that the observer gave to
    /// [`Node::stop_at`](everett_vmm::world::Node::stop_at). The observer must give a higher number, or none; otherwise
    /// the node does not continue.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn counted(&mut self, _node: usize, _timeline: &mut Timeline) -> anyhow::Result<()> {
        Ok(())
    }
    /// Receives the timeline after each step (20 ms of vtime) until *ready*, i.e. until all services are up.
    fn booting(&mut self, _timeline: &mut Timeline) {}
    /// Receives, after each step, the vtime since *ready* in nanoseconds (0 before *ready*) and the number of executed
    /// instructions. Returns false to end the timeline.
    fn at(&mut self, _since_ready_ns: u64, _instructions: u64) -> bool {
        true
    }
}

/// End of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The checks ended, a machine or its agent (Everett's program in the guest) became unusable, or the guests could
    /// not run any further.
    Whole,
    /// The observer ended the run early.
    Cut,
}

/// Runs `timeline` to *ready* (all services are up), then for `duration_ns` of vtime, and then runs its checks. A
/// machine that does not become ready ends the timeline with a finding. After the checks, the run continues to the next
/// point of the trail.
///
/// # Errors
/// Returns an error if the observer fails, if the timeline has no seed, or if an agent (Everett's program in a guest)
/// refused to create a file before *ready* ([`BootError::File`](crate::world::timeline::BootError::File)).
pub fn drive(timeline: &mut Timeline, duration_ns: u64, watch: &mut impl Watch) -> anyhow::Result<Ended> {
    timeline.end_after(duration_ns);
    drive_to_its_end(timeline, watch)
}

/// Like [`drive`], but the workload runs until it is done, for at most [`UNTIL_DONE_NS_MAX`] of vtime.
///
/// # Errors
/// See [`drive`].
pub fn drive_until_done(timeline: &mut Timeline, watch: &mut impl Watch) -> anyhow::Result<Ended> {
    timeline.end_when_done(UNTIL_DONE_NS_MAX);
    drive_to_its_end(timeline, watch)
}

fn drive_to_its_end(timeline: &mut Timeline, watch: &mut impl Watch) -> anyhow::Result<Ended> {
    anyhow::ensure!(timeline.seed().is_some(), "a timeline needs a seed to begin");
    timeline.limit_boot();
    let mut seen_points = 0;
    // The steps end at the same vtimes wherever the timeline starts.
    let mut next_ns = timeline.vtime().next_multiple_of(STEP_NS);
    loop {
        let stop = loop {
            match timeline.run_node(0, &Until::vtime(next_ns)) {
                (Some(node), Stop::Count) => watch.counted(node, timeline)?,
                (_, stop) => break stop,
            }
        };
        let now = timeline.vtime();
        if let Some(refused) = timeline.refused_file() {
            return Err(refused.into());
        }
        let mut events = timeline.take_events();
        if timeline.give_up_hopeless_boot() {
            events.append(&mut timeline.take_events());
        }
        for event in events {
            watch.event(&event)?;
        }
        if timeline.ready_ns().is_none() {
            watch.booting(timeline);
        }
        for node in 0..timeline.world().nodes().len() {
            let console = timeline.machine_mut(node).output().take_console();
            if !console.is_empty() {
                watch.console(node, &console)?;
            }
            let edges = timeline.machine_mut(node).take_edges();
            if !edges.is_empty() {
                watch.edges(node, &edges);
            }
        }
        for line in timeline.take_missing_notes() {
            watch.missing_instruction(&line)?;
        }
        let frames = timeline.world_mut().take_captured();
        watch.wire(&timeline.world_mut().wire().take_steps(), &frames)?;
        for &(vtime_ns, digest) in &timeline.trail().points()[seen_points..] {
            watch.point(vtime_ns, digest)?;
        }
        seen_points = timeline.trail().points().len();
        let since_ready_ns = timeline.ready_ns().map_or(0, |ready_ns| now.saturating_sub(ready_ns));
        if !watch.at(since_ready_ns, timeline.icount()) {
            return Ok(Ended::Cut);
        }
        if matches!(stop, Stop::End(_)) {
            return Ok(Ended::Whole);
        }
        let at_point = next_ns.is_multiple_of(TRAIL_INTERVAL_NS);
        match timeline.phase() {
            Phase::Done | Phase::Broken if at_point => return Ok(Ended::Whole),
            Phase::Stopped if since_ready_ns > checks_end_ns(timeline, timeline.duration_ns()) => {
                timeline.give_up("the checks did not end in time");
            }
            _ => {}
        }
        next_ns = next_ns.saturating_add(STEP_NS);
    }
}

/// Returns the time limit of the checks after a workload of `duration_ns`, in nanoseconds of vtime after *ready*.
pub(crate) fn checks_end_ns(timeline: &Timeline, duration_ns: u64) -> u64 {
    let parts =
        [CALM_NS_MAX, timeline.settle_ns(), timeline.last_commands_ns(), ANSWER_NS_MAX, timeline.checks_ns()];
    parts.into_iter().fold(duration_ns, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use everett_streams::{BootSeed, Seed};
    use everett_vmm::boot::small_kernel;
    use everett_vmm::machine::MachineConfig;
    use everett_vmm::wire::WireConfig;
    use everett_vmm::world::World;

    use super::*;
    use crate::guest::agent_script::WorldCheck;
    use crate::machines::EngineOptions;
    use crate::world::conversation::state;
    use crate::world::conversation::tests::{refused_file, script};
    use crate::world::event::What;
    use crate::world::timeline::BootError;

    #[derive(Default)]
    struct Findings(Vec<String>);

    impl Watch for Findings {
        fn event(&mut self, event: &Event) -> anyhow::Result<()> {
            if let What::Finding { text, .. } = &event.what {
                self.0.push(text.clone());
            }
            Ok(())
        }
    }

    /// Returns a timeline after *ready*, with a guest that halts forever. `conversation` is the state of the messages
    /// between Everett and the guest's agent.
    fn halting(conversation: state::ConversationState) -> Timeline {
        let mut timeline = not_begun();
        timeline.begun_with(conversation);
        timeline
    }

    /// Returns a timeline at power-on, with a guest that halts forever.
    fn not_begun() -> Timeline {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("kernel");
        std::fs::write(&kernel, small_kernel(&[0xfb, 0xf4, 0xeb, 0xfc], 0)).unwrap();
        let machine = EngineOptions::default().machine(MachineConfig::new(&kernel)).unwrap();
        let world = World::new(vec![machine], WireConfig::default(), BootSeed::new(0)).unwrap();
        let mut timeline = Timeline::new(world, vec![script()], vec![WorldCheck::Agent(0, 0)]);
        timeline.begin(Seed::new(3)).unwrap();
        timeline
    }

    /// Runs the timeline to its end. Returns the texts of its findings.
    fn found(timeline: &mut Timeline) -> Vec<String> {
        let mut findings = Findings::default();
        assert_eq!(drive(timeline, 1_000_000, &mut findings).unwrap(), Ended::Whole);
        findings.0
    }

    #[test]
    fn a_world_with_a_broken_conversation_runs_on() {
        let mut timeline = halting(state::tests::broken());
        timeline.end_after(1_000_000);
        timeline.run(&Until::vtime(STEP_NS));
        assert_eq!((timeline.phase(), timeline.vtime()), (Phase::Broken, STEP_NS));
    }

    #[test]
    fn a_file_that_is_refused_before_ready_is_an_error_of_the_world_and_a_finding_later() {
        let mut timeline = halting(state::tests::beginning());
        timeline.with_conversation(refused_file());
        assert_eq!(found(&mut timeline), ["files: cannot write /etc/x: no user"]);

        let mut timeline = not_begun();
        timeline.with_conversation(refused_file());
        let mut findings = Findings::default();
        let error = drive(&mut timeline, 1_000_000, &mut findings).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(BootError::File { .. })), "{error:?}");
        let expected = "node \"a\": files.\"/etc/x\": cannot write /etc/x: no user";
        assert_eq!(error.to_string(), expected);
        assert!(findings.0.is_empty(), "{:?}", findings.0);

        let mut timeline = not_begun();
        timeline.with_conversation(refused_file());
        let error = timeline.run_to(Phase::Ready, &mut |_, _| true).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    /// The guest never answers the request for the check, whose time limit is a second.
    #[test]
    fn a_check_that_hangs_with_its_machine_is_given_up() {
        let mut timeline = halting(state::tests::driven());
        let text = "check alive did not end within its timeout of 1 s, and its machine did not answer for 10 s after that";
        assert_eq!(found(&mut timeline), [text]);
        // The run ends at the trail's first point after 11 s: 1 s is the check's limit, 10 s the wait for the machine.
        assert_eq!((timeline.phase(), timeline.vtime()), (Phase::Done, 11_100_000_000));
    }

    /// The guest never answers the requests to stop its service.
    #[test]
    fn checks_wait_for_a_restart() {
        let mut timeline = halting(state::tests::restarting());
        let text = "node a is not calm 120 s after the workload ended: its service server is being restarted";
        assert_eq!(found(&mut timeline), [text]);
    }

    /// The guest never answers the request to seed its random numbers.
    #[test]
    fn a_guest_that_never_begins_is_given_up() {
        let mut timeline = halting(state::tests::beginning());
        let text = "node a is not calm 10 s after the workload ended: its random numbers were not seeded, so its drivers never \
                    started";
        assert_eq!(found(&mut timeline), [text]);
    }
}
