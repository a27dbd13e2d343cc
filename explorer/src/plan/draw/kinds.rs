//! The settings of each kind of fault, with their defaults and bounds: one table.
//!
//! The defaults are for a world in which everything is to be tried: often what networks and machines do to a cluster
//! (partitions, crashes, pauses, slow and lossy links), now and then what clocks and schedulers do, rarely what disks do. A
//! minute of vtime sees about a dozen faults. Off by default is only what most software does not claim to survive.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use everett_fault::check::{
    BIT_ROT_BITS, CLOCK_DRIFT_PPM_MAX, CLOCK_STEP_NS_MAX, PRIORITIES_EVERY_NS_MIN, SLOW_CPU_PPM,
    STALL_EVERY_INSTRUCTIONS, STALL_NS_MAX,
};
use everett_fault::distribution::TIME_NS_MAX;
use everett_fault::{FaultKind, PPM, Ppm, Requests};
use serde::{Deserialize, Serialize};

use crate::plan::limits::FOR_NS_MAX;

use super::config::{ConfigError, EVERY_NS, Quiet};
use super::span::{Between, Bounded, Span};

/// How long a fault may last.
const LASTS: RangeInclusive<u64> = 1..=FOR_NS_MAX;
/// Times that a fault adds.
const TIMES: RangeInclusive<u64> = 0..=TIME_NS_MAX;
/// Shares.
const SHARES: RangeInclusive<u64> = 0..=PPM as u64;
/// How many commands a world may choose from.
const COMMANDS: RangeInclusive<u64> = 0..=64;

/// What all kinds have.
pub(super) struct Common<'c> {
    pub(super) kind: FaultKind,
    pub(super) enabled: bool,
    pub(super) every: Span,
    pub(super) nodes: Option<&'c BTreeSet<String>>,
}

/// The settings of one kind.
pub(super) trait Kind {
    fn common(&self) -> Common<'_>;
    /// Tell of settings that are out of their bounds.
    fn check(&self, found: &mut Vec<ConfigError>);
}

/// Which links a network fault is drawn for: those of one node to all others, of a group to the others, or all. Groups are
/// at most half of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LinkChoice {
    /// How often only one direction is meant.
    pub one_way: Ppm,
    /// How often all links of the world are.
    pub everywhere: Ppm,
}

impl Default for LinkChoice {
    fn default() -> LinkChoice {
        LinkChoice { one_way: 200_000, everywhere: 100_000 }
    }
}

impl Bounded for LinkChoice {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), super::config::ConfigProblem> {
        self.one_way.check(bounds)?;
        self.everywhere.check(bounds)
    }
}

macro_rules! kinds {
    ($($(#[$about:meta])* $Kind:ident $key:ident: $enabled:literal, every $every:literal s {
        $($(#[$field_about:meta])* $field:ident: $type:ty = $default:expr, $(within $bounds:expr)?;)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(default, deny_unknown_fields, expecting = "a table")]
            pub struct $Kind {
                /// Whether any are drawn.
                pub enabled: bool,
                /// The mean time from one to the next, in the whole world.
                pub every: Span,
                /// To which nodes it is done; to any, if absent.
                pub nodes: Option<BTreeSet<String>>,
                $($(#[$field_about])* pub $field: $type,)*
            }

            impl Default for $Kind {
                fn default() -> $Kind {
                    $Kind { enabled: $enabled, every: Span::s($every), nodes: None, $($field: $default),* }
                }
            }

            impl Kind for $Kind {
                fn common(&self) -> Common<'_> {
                    let $Kind { enabled, every, nodes, .. } = self;
                    let kind = FaultKind::$Kind;
                    Common { kind, enabled: *enabled, every: *every, nodes: nodes.as_ref() }
                }

                fn check(&self, found: &mut Vec<ConfigError>) {
                    let kind = FaultKind::$Kind.name();
                    let mut tell = |key: &str, what: Result<(), _>| {
                        let key = if key == "lasts" { "for" } else { key };
                        found.extend(what.err().map(|what| ConfigError { key: format!("{kind}.{key}"), what }));
                    };
                    tell("every", self.every.check(&EVERY_NS));
                    $($(tell(stringify!($field), self.$field.check(&$bounds));)?)*
                }
            }
        )*

        impl FaultConfig {
            /// All kinds, in the order of the catalogue.
            pub(super) fn kinds(&self) -> Vec<&dyn super::choose::Choose> {
                vec![$(&self.$key),*]
            }
        }

        /// Which faults are drawn, how often, how strong: the `[faults]` table of a world file.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields, expecting = "a table")]
        pub struct FaultConfig {
            /// If given, only faults of these kinds are drawn.
            pub only: Option<Vec<FaultKind>>,
            /// Nothing is done before this time after *ready*.
            pub start: Span,
            /// Quiet periods.
            pub quiet: Quiet,
            /// How long the world is quiet at the end of the horizon. Nothing: faults may go on to the end.
            pub calm_end: Span,
            /// How many nodes may be off, paused or recovering at once. If absent, a minority, but at least one.
            pub max_down: Option<u32>,
            /// For how long a node that was started again counts as recovering.
            pub recovery: Span,
            $($(#[$about])* pub $key: $Kind,)*
        }

        impl Default for FaultConfig {
            fn default() -> FaultConfig {
                FaultConfig {
                    only: None,
                    start: Span::s(0),
                    quiet: Quiet::default(),
                    calm_end: Span::s(0),
                    max_down: None,
                    recovery: Span::s(3),
                    $($key: $Kind::default(),)*
                }
            }
        }
    };
}

kinds! {
    /// Frames take longer.
    Latency latency: true, every 30 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// How much longer: a fault draws its least and its most from this range.
        extra: Between<Span> = Between(Span::ms(1), Span::ms(500)), within TIMES;
    }
    /// Frames are lost.
    Loss loss: true, every 45 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// How many.
        ppm: Between<Ppm> = Between(10_000, 500_000), within SHARES;
    }
    /// Frames arrive twice.
    Duplicate duplicate: true, every 90 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// How many.
        ppm: Between<Ppm> = Between(10_000, 300_000), within SHARES;
    }
    /// Frames are overtaken.
    Reorder reorder: true, every 90 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// How many are held back.
        ppm: Between<Ppm> = Between(10_000, 300_000), within SHARES;
        /// For how long: a fault draws its least and its most from this range.
        hold: Between<Span> = Between(Span::ms(1), Span::ms(100)), within TIMES;
    }
    /// A bit of a frame flips.
    Corrupt corrupt: true, every 180 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(10)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// How many frames.
        ppm: Between<Ppm> = Between(1_000, 50_000), within SHARES;
    }
    /// Links are slower.
    Bandwidth bandwidth: true, every 180 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// What is left, in bits a second.
        bits_per_s: Between<u64> = Between(100_000, 100_000_000), within everett_fault::check::BITS_PER_S;
    }
    /// Nothing gets through.
    Partition partition: true, every 15 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(500), Span::s(20)), within LASTS;
        /// Where.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// How often frames wait for the end instead of being lost.
        hold: Ppm = 150_000, within SHARES;
        /// How often, of the others, frames come late.
        slow: Ppm = 100_000, within SHARES;
    }
    /// A node's card neither sends nor receives.
    Clog clog: true, every 120 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(500), Span::s(10)), within LASTS;
    }
    /// A node loses power, and starts again.
    PowerLoss power_loss: true, every 30 s {
        /// How long it stays off.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(100), Span::s(15)), within LASTS;
        /// How long a node that was started again is left alone.
        up: Span = Span::s(0), within 0..=FOR_NS_MAX;
        /// How often it executes the whole boot, which takes the host much longer.
        cold: Ppm = 0, within SHARES;
        /// Sectors may be torn inside. Correct software relies on whole ones.
        tear_sectors: bool = false,;
    }
    /// A node is reset.
    Reset reset: true, every 90 s {
        /// How often it executes the whole boot, which takes the host much longer.
        cold: Ppm = 0, within SHARES;
    }
    /// A node executes nothing.
    Pause pause: true, every 45 s {
        /// For how long. Beyond ten seconds kernels begin to complain.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(100), Span::ms(9_500)), within LASTS;
    }
    /// A node's CPU is slower.
    SlowCpu slow_cpu: true, every 90 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// What is left of its speed.
        ppm: Between<Ppm> = Between(20_000, 500_000), within numbers(SLOW_CPU_PPM);
    }
    /// Requests to a disk fail.
    DiskError disk_error: true, every 300 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(100), Span::s(5)), within LASTS;
        /// Which requests; a fault draws one of these.
        requests: Vec<Requests> = vec![Requests::Read, Requests::Write, Requests::Flush, Requests::All], within 1..=16;
        /// How many of them.
        ppm: Between<Ppm> = Between(10_000, PPM), within SHARES;
    }
    /// Requests to a disk take longer.
    DiskLatency disk_latency: true, every 120 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// How much longer: a fault draws its least and its most from this range.
        extra: Between<Span> = Between(Span::ms(1), Span::ms(500)), within TIMES;
    }
    /// A disk has no room.
    DiskFull disk_full: true, every 300 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(10)), within LASTS;
    }
    /// Bits of a disk flip. Off by default: few programs claim to survive it.
    BitRot bit_rot: false, every 300 s {
        /// How many.
        bits: Between<u32> = Between(1, 64), within numbers(BIT_ROT_BITS);
    }
    /// A clock runs fast or slow, the one as often as the other.
    ClockDrift clock_drift: true, every 90 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(5), Span::s(30)), within LASTS;
        /// By how much.
        ppm: Between<u32> = Between(100, 50_000), within 0..=CLOCK_DRIFT_PPM_MAX.unsigned_abs().into();
    }
    /// A clock is set, forward as often as back.
    ClockStep clock_step: true, every 60 s {
        /// By how much.
        step: Between<Span> = Between(Span::ms(10), Span::s(300)), within 0..=CLOCK_STEP_NS_MAX.unsigned_abs();
    }
    /// Time is stolen from a node.
    Stalls stalls: true, every 60 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Instructions from one stall to the next, in the mean.
        every_instructions: Between<u64> = Between(100_000, 100_000_000), within STALL_EVERY_INSTRUCTIONS;
        /// How long each is: a fault draws its least and its most from this range.
        stall: Between<Span> = Between(Span::ms(1), Span::ms(10)), within 0..=STALL_NS_MAX;
    }
    /// The threads of a unit get drawn priorities.
    Priorities priorities: true, every 120 s {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// From one change to the next: a fault draws its least and its most from this range.
        change: Between<Span> = Between(Span::ms(10), Span::s(1)), within PRIORITIES_EVERY_NS_MIN..=TIME_NS_MAX;
    }
    /// The kernel draws its randomness anew.
    Reseed reseed: true, every 300 s {
    }
    /// A command of the user's runs; none unless some are given.
    Command command: true, every 30 s {
        /// Programs and their arguments; a fault draws one of these.
        argv: Vec<Vec<String>> = Vec::new(), within COMMANDS;
    }
}

fn numbers(bounds: RangeInclusive<u32>) -> RangeInclusive<u64> {
    (*bounds.start()).into()..=(*bounds.end()).into()
}
