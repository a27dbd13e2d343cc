//! The state of a world at a vtime does not depend on the stops of its run, nor on the vtimes at which the world is
//! stored and restored. The nodes of a world run in rounds: one after the other, each up to the same vtime.

use everett_fault::Distribution;
use everett_snapshot::Pool;
use everett_vmm::Machine;
use everett_vmm::digest::Breakdown;
use everett_vmm::wire::log::{DropReason, FrameStep, FrameStepKind};
use everett_vmm::world::{WORLD_VERSION, WorldMoment, WorldUntil};
use proptest::prelude::*;

use crate::card::{Script, frame, mac, node};
use crate::plan::{Act, Course, MS, Plan, trio, working};
use crate::worker::quitter;

const END: u64 = 4 * MS;

/// Returns a plan with every possible action on a node; some of them overlap.
fn plan() -> Plan {
    let stalls = Distribution::Uniform(3_001, 40_007);
    vec![
        (311_113, 0, Act::Drift(437)),
        (400_003, 1, Act::Stalls(Some((9_001, stalls)))),
        (555_557, 2, Act::Pause),
        (700_001, 1, Act::Speed(333_333)),
        (777_781, 0, Act::Pause),
        (900_007, 2, Act::Off),
        (1_000_000, 0, Act::Resume),
        (1_000_000, 0, Act::Drift(-12_345)),
        (1_234_567, 2, Act::On),
        (1_500_001, 2, Act::Speed(71_003)),
        (1_800_017, 1, Act::Stalls(None)),
        (1_900_009, 1, Act::Speed(1_000_000)),
        (2_200_001, 0, Act::Off),
        (2_200_001, 1, Act::Pause),
        (2_250_001, 1, Act::Drift(-400_000)),
        (2_345_679, 1, Act::Resume),
        (2_600_011, 0, Act::On),
        (2_900_023, 2, Act::Off),
        (3_000_000, 2, Act::On),
        (3_400_009, 0, Act::Drift(99_999)),
    ]
}

fn course() -> Course {
    Course::new(trio(), plan())
}

/// Returns the digests at [`END`] of a world that stops only for the actions of the plan.
fn whole() -> Breakdown {
    let mut course = course();
    course.run(END);
    course.world.breakdown()
}

/// Returns vtimes at uneven distances, close together at first.
fn cuts() -> impl Iterator<Item = u64> {
    (0..).scan(0, |at, i: u64| {
        *at += 1_009 + 131 * i;
        (*at < END).then_some(*at)
    })
}

#[test]
fn cuts_are_invisible() {
    let expected = whole();
    let mut course = course();
    for (i, at) in cuts().enumerate() {
        course.run(at);
        assert_eq!(course.world.vtime(), at);
        if i % 5 == 0 {
            course.world.digest();
        }
    }
    course.run(END);
    assert_eq!(course.world.breakdown(), expected);
    assert_eq!(whole(), expected, "the run repeats");
}

/// Power losses of the plan do not set a node's count back.
#[test]
fn stops_at_counts_of_all_nodes_are_exact_and_invisible() {
    const EVERY: u64 = 3_001;
    let mut course = course();
    let mut stops = [0; 3];
    for node in 0..stops.len() {
        course.world.node_mut(node).stop_at(EVERY);
    }
    course.run_counted(END, &mut |world, node| {
        stops[node] += 1;
        assert_eq!(world.nodes()[node].retired(), EVERY * stops[node]);
        world.node_mut(node).stop_at(EVERY * (stops[node] + 1));
    });
    for (node, stops) in course.world.nodes().iter().zip(stops) {
        assert!(stops > 20 && stops == node.retired() / EVERY, "{stops} stops in {}", node.retired());
    }
    assert_eq!(course.world.breakdown(), whole());
}

/// Every action of the plan has an effect.
#[test]
fn every_action_of_the_plan_matters() {
    let expected = whole();
    for left_out in 0..plan().len() {
        let mut plan = plan();
        let act = plan.remove(left_out);
        let mut course = Course::new(trio(), plan);
        course.run(END);
        assert_ne!(course.world.breakdown(), expected, "leaving out {act:?} must make a difference");
    }
}

/// Returns two nodes that sleep most of the time, often for much longer than a frame takes to arrive.
fn sleepers() -> Vec<Machine> {
    vec![working(0, true, mac(1)), working(1, true, mac(0))]
}

/// Returns two nodes that send to a third one. The third one powers off by itself while frames arrive.
fn quitting() -> Vec<Machine> {
    let mut script = Script::driver(&frame(mac(0), mac(2), 60));
    script.spin(500_000);
    vec![working(0, true, mac(2)), working(1, false, mac(2)), node(2, &quitter(), &script)]
}

/// Returns vtimes at which runs end: within rounds, between rounds, and while all nodes sleep.
fn ends() -> impl Iterator<Item = u64> {
    (1..20).map(|i| i * 190_003).filter(|&at| at < END)
}

/// A world has one state at each vtime. The end of a run and earlier stops do not change the state.
#[test]
fn where_a_run_ends_is_invisible() {
    let courses: [fn() -> Course; 3] =
        [course, || Course::new(sleepers(), Vec::new()), || Course::new(quitting(), Vec::new())];
    for course in courses {
        let mut cut = course();
        let mut cuts = cuts().peekable();
        for end in ends() {
            while let Some(at) = cuts.next_if(|&at| at < end) {
                cut.run(at);
            }
            cut.run(end);
            let mut whole = course();
            whole.run(end);
            assert_eq!(cut.world.breakdown(), whole.world.breakdown(), "ends at {end}");
            let pool = Pool::default();
            assert_eq!(cut.world.moment(&pool).state(), whole.world.moment(&pool).state(), "ends at {end}");
        }
    }
}

#[test]
fn frames_to_a_node_that_has_ended_are_lost() {
    let mut course = Course::new(quitting(), Vec::new());
    course.run(END);
    let [.., ended] = course.world.nodes() else { panic!("the world must have nodes") };
    assert!(!ended.is_on());
    let at = ended.vtime();
    let steps = course.world.wire().take_steps();
    let lost = |step: &&FrameStep| {
        step.kind == FrameStepKind::Drop { why: DropReason::Detached } && step.to == Some(2)
    };
    let (first, count) = (steps.iter().find(lost).unwrap().vtime, steps.iter().filter(lost).count());
    let noticed = at + course.world.wire().lookahead_ns();
    assert!(
        first >= noticed && first < noticed + 100_000 && count > 20,
        "{count} frames were dropped, the first at {first}"
    );
    assert!(
        !steps
            .iter()
            .any(|step| step.kind == FrameStepKind::Deliver && step.to == Some(2) && step.vtime > noticed)
    );
}

/// Moments do not depend on the end of the run that takes them, nor on the end of the run that continues from them.
#[test]
fn moments_do_not_depend_on_the_end_of_a_run() {
    let pool = Pool::default();
    for make in [trio, sleepers, quitting] {
        for end in ends().step_by(3) {
            let mut whole = Course::new(make(), Vec::new());
            whole.run(end);
            let expected = whole.world.breakdown();
            // These distances before `end` are shorter and longer than the time that a frame takes to arrive.
            for before in [1, 777, 50_000, 99_999, 100_001, 170_003] {
                let mut course = Course::new(make(), Vec::new());
                course.run(end - before);
                let moment = stored(&course.world.moment(&pool));
                course.reborn(&moment, make());
                course.run(end);
                assert_eq!(course.world.breakdown(), expected, "a moment {before} ns before {end}");
            }
        }
    }
}

/// A stop at an instruction count of one node lies within a round, where some nodes are ahead of others.
#[test]
fn stops_within_a_round_are_invisible() {
    let expected = whole();
    let mut course = course();
    for (i, at) in cuts().enumerate() {
        course.run(at);
        for step in 0..3 {
            course.step((i + step) % 3, 1 + 37 * i as u64, END);
        }
    }
    course.run(END);
    assert_eq!(course.world.breakdown(), expected);
}

/// Returns the moment as a reader would get it from a file.
fn stored(moment: &WorldMoment) -> WorldMoment {
    WorldMoment::from_parts(WORLD_VERSION, &moment.state(), moment.machines.clone()).unwrap()
}

#[test]
fn worlds_created_from_moments_continue_as_before() {
    let expected = whole();
    let pool = Pool::default();
    let mut course = course();
    for (i, at) in cuts().enumerate() {
        course.run(at);
        // Every other stop lies within a round.
        course.step(1, 1_003 * (i as u64 % 2), END);
        if i % 16 == 0 {
            let moment = stored(&course.world.moment(&pool));
            let digest = course.world.digest();
            course.reborn(&moment, trio());
            assert_eq!(course.world.digest(), digest, "after cut {i}");
        }
    }
    course.run(END);
    assert_eq!(course.world.breakdown(), expected);
}

#[test]
fn a_restored_world_continues_as_before() {
    let pool = Pool::default();
    let mut course = Course::new(trio(), Vec::new());
    course.run(777_777);
    let moment = course.world.moment(&pool);
    course.run(END);
    let expected = course.world.breakdown();
    for at in [777_778, 1_111_111, END] {
        course.world.restore(&moment).unwrap();
        assert_eq!(course.world.vtime(), 777_777);
        course.run(at);
        for act in [Act::Pause, Act::Drift(5), Act::Off] {
            course.act(2, act);
        }
        course.world.restore(&moment).unwrap();
        course.run(END);
        assert_eq!(course.world.breakdown(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    /// A world either rejects a manipulated stored state or runs from it. In the second case, the world can be restored
    /// from a moment of its own.
    #[test]
    fn hostile_state_is_harmless(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut course = course();
        course.run(650_003);
        // The moment lies within a round, with frames in all parts of the wire.
        course.step(1, 1_003, END);
        let moment = course.world.moment(&Pool::default());
        let mut state = moment.state().to_vec();
        for (index, value) in changes {
            let index = index.index(state.len());
            state[index] = value;
        }
        let made = WorldMoment::from_parts(WORLD_VERSION, &state, moment.machines.clone());
        if let Ok(made) = made && course.world.restore(&made).is_ok() {
            let icount = course.world.nodes()[0].retired().saturating_add(20_000);
            let vtime = course.world.vtime().saturating_add(100_000);
            let until = WorldUntil { vtime, port_lines: 0, node: 0, icount };
            course.world.run(&until);
            let (digest, again) = (course.world.digest(), course.world.moment(&Pool::default()));
            prop_assert!(course.world.restore(&again).is_ok());
            prop_assert_eq!(course.world.digest(), digest);
        }
    }
}
