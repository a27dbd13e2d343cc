//! The settings of each kind of fault, with their defaults and bounds, as one table.
//!
//! The defaults test a world as a whole, with about 20 faults in a minute of vtime. Quiet periods, in which the world
//! can recover without faults, are not counted. Faults of networks and machines are frequent (partitions, crashes,
//! pauses, slow and lossy links). Faults of clocks and schedulers are occasional, and faults of disks are rare. Kinds
//! that most software does not claim to survive are off by default.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use everett_fault::distribution::TIME_NS_MAX;
use everett_fault::{
    BIT_ROT_BITS, CLOCK_DRIFT_PPM_MAX, CLOCK_STEP_NS_MAX, FaultKind, PPM, PRIORITIES_EVERY_NS_MIN, Ppm,
    Requests, SLOW_CPU_PPM, STALL_EVERY_INSTRUCTIONS, STALL_NS_MAX,
};
use serde::{Deserialize, Serialize};

use crate::plan::limits::FOR_NS_MAX;

use super::error::{ConfigError, ConfigProblem};
use super::frequency::EVERY_NS;
use super::quiet::Quiet;
use super::span::{Between, Bounded, Span};

/// Bounds of a fault's duration, in nanoseconds.
const LASTS: RangeInclusive<u64> = 1..=FOR_NS_MAX;
/// Bounds of an added latency, in nanoseconds.
const TIMES: RangeInclusive<u64> = 0..=TIME_NS_MAX;
/// Bounds of shares, in ppm.
const SHARES: RangeInclusive<u64> = 0..=PPM as u64;
/// Bounds of the number of commands in the setting `argv`.
const COMMANDS: RangeInclusive<u64> = 0..=64;

/// Settings that all kinds have.
pub(super) struct Common<'c> {
    pub(super) kind: FaultKind,
    pub(super) enabled: bool,
    pub(super) every: Span,
    pub(super) nodes: Option<&'c BTreeSet<String>>,
}

/// Settings of one kind.
pub(super) trait Kind {
    fn common(&self) -> Common<'_>;
    /// Reports settings that are out of bounds.
    fn check(&self, found: &mut Vec<ConfigError>);
}

/// Choice of links for a network fault: the links between one node and all others, the links between a group and all
/// others, or all links of the nodes that may be targets. A group has at most half of the world's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LinkChoice {
    /// Probability that only one direction is affected, in ppm.
    pub one_way: Ppm,
    /// Probability that the fault affects all links of all nodes that may be targets, in ppm. Otherwise Everett draws
    /// one node or a group.
    pub everywhere: Ppm,
}

impl Default for LinkChoice {
    fn default() -> LinkChoice {
        LinkChoice { one_way: 200_000, everywhere: 100_000 }
    }
}

impl Bounded for LinkChoice {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), ConfigProblem> {
        self.one_way.check(bounds)?;
        self.everywhere.check(bounds)
    }
}

macro_rules! kinds {
    ($($(#[$about:meta])* $Kind:ident $key:ident $([$stored:meta])?: $enabled:literal, every $every:literal s {
        $($(#[$field_about:meta])* $field:ident: $type:ty = $default:expr, $(within $bounds:expr)?;)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(default, deny_unknown_fields, expecting = "a table")]
            pub struct $Kind {
                /// True if faults of this kind are drawn.
                pub enabled: bool,
                /// Mean time from one fault of this kind to the next, anywhere in the world.
                pub every: Span,
                /// Nodes that may be targets. If absent, all nodes may.
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
            /// Returns all kinds, in the order of this table.
            pub(super) fn kinds(&self) -> Vec<&dyn super::choose::Choose> {
                vec![$(&self.$key),*]
            }
        }

        /// The `[faults]` table of a world file: kinds of faults with their frequency and strength.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields, expecting = "a table")]
        pub struct FaultConfig {
            /// Kinds of faults that may be drawn. If absent, all enabled kinds.
            pub only: Option<Vec<FaultKind>>,
            /// Time after *ready* before which no fault starts. *Ready* is the moment at which all services are up.
            pub start: Span,
            /// Quiet periods. All faults end when a quiet period begins, and no fault starts before it is over.
            pub quiet: Quiet,
            /// Length of the quiet period at the end of the plan. If the length is 0, faults may last to the end.
            pub calm_end: Span,
            /// Maximum number of nodes that are off, paused or recovering at once. If absent, a minority of the nodes,
            /// but at least one node.
            pub max_down: Option<u32>,
            /// Time for which a restarted node counts as recovering.
            pub recovery: Span,
            $($(#[$about])* $(#[$stored])? pub $key: $Kind,)*
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
    /// Frames arrive late.
    Latency latency: true, every 30 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Added latency. Each fault draws its own minimum and maximum from this range.
        extra: Between<Span> = Between(Span::ms(1), Span::ms(500)), within TIMES;
    }
    /// Frames are lost.
    Loss loss: true, every 45 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Share of frames that are lost, in ppm.
        ppm: Between<Ppm> = Between(10_000, 500_000), within SHARES;
    }
    /// Frames arrive twice.
    Duplicate duplicate: true, every 90 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Share of frames that are duplicated, in ppm.
        ppm: Between<Ppm> = Between(10_000, 300_000), within SHARES;
    }
    /// Later frames overtake earlier frames.
    Reorder reorder: true, every 90 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Share of frames that are held back, in ppm.
        ppm: Between<Ppm> = Between(10_000, 300_000), within SHARES;
        /// Time for which a frame is held back. Each fault draws its own minimum and maximum from this range.
        hold: Between<Span> = Between(Span::ms(1), Span::ms(100)), within TIMES;
    }
    /// One bit of a frame is flipped.
    Corrupt corrupt: true, every 180 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(10)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Share of frames that are corrupted, in ppm.
        ppm: Between<Ppm> = Between(1_000, 50_000), within SHARES;
    }
    /// Links have less bandwidth.
    Bandwidth bandwidth: true, every 180 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Remaining bandwidth, in bits per second.
        bits_per_s: Between<u64> = Between(100_000, 100_000_000), within everett_fault::BITS_PER_S;
    }
    /// Links carry no frames.
    Partition partition: true, every 15 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(500), Span::s(20)), within LASTS;
        /// Affected links.
        links: LinkChoice = LinkChoice::default(), within SHARES;
        /// Probability that frames are held until the fault ends, instead of being lost, in ppm.
        hold: Ppm = 150_000, within SHARES;
        /// Probability that frames arrive late instead of being lost, in ppm. It is used only if frames are not held.
        slow: Ppm = 100_000, within SHARES;
    }
    /// A node's network card neither sends nor receives.
    Clog clog: true, every 120 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(500), Span::s(10)), within LASTS;
    }
    /// A node loses power and starts again.
    PowerLoss power_loss: true, every 30 s {
        /// Time for which the node stays off.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(100), Span::s(15)), within LASTS;
        /// Minimum time from a node's restart to its next power loss.
        up: Span = Span::s(0), within 0..=FOR_NS_MAX;
        /// Probability of a cold restart, in ppm. A cold restart executes the whole boot, which takes much more host
        /// time.
        cold: Ppm = 0, within SHARES;
        /// True if a power loss can leave a sector partly written. Correct software may rely on sectors being written
        /// whole.
        tear_sectors: bool = false,;
    }
    /// A node is reset.
    Reset reset: true, every 90 s {
        /// Probability of a cold restart, in ppm. A cold restart executes the whole boot, which takes much more host
        /// time.
        cold: Ppm = 0, within SHARES;
    }
    /// A node stops executing.
    Pause pause: true, every 45 s {
        /// Duration of a fault. By default less than ten seconds, because kernels start to print warnings after a
        /// longer pause.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(100), Span::ms(9_500)), within LASTS;
    }
    /// A node's CPU runs slower.
    SlowCpu slow_cpu: true, every 90 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Remaining speed, in ppm.
        ppm: Between<Ppm> = Between(20_000, 500_000), within numbers(SLOW_CPU_PPM);
    }
    /// Requests to a disk fail.
    DiskError disk_error: true, every 300 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::ms(100), Span::s(5)), within LASTS;
        /// Types of requests that may fail. Each fault draws one type.
        requests: Vec<Requests> = vec![Requests::Read, Requests::Write, Requests::Flush, Requests::All], within 1..=16;
        /// Share of the requests of this type that fail, in ppm.
        ppm: Between<Ppm> = Between(10_000, PPM), within SHARES;
    }
    /// Requests to a disk take longer.
    DiskLatency disk_latency: true, every 120 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Added latency. Each fault draws its own minimum and maximum from this range.
        extra: Between<Span> = Between(Span::ms(1), Span::ms(500)), within TIMES;
    }
    /// A disk has no free space.
    DiskFull disk_full: true, every 300 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(10)), within LASTS;
    }
    /// Bits of a disk flip. Off by default, because few programs claim to survive flipped bits.
    BitRot bit_rot: false, every 300 s {
        /// Number of bits that flip.
        bits: Between<u32> = Between(1, 64), within numbers(BIT_ROT_BITS);
    }
    /// A clock runs fast or slow, with equal probabilities.
    ClockDrift clock_drift: true, every 90 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(5), Span::s(30)), within LASTS;
        /// Drift, in ppm.
        ppm: Between<u32> = Between(100, 50_000), within 0..=CLOCK_DRIFT_PPM_MAX.unsigned_abs().into();
    }
    /// A clock is set forward or back, with equal probabilities.
    ClockStep clock_step: true, every 60 s {
        /// Size of the step.
        step: Between<Span> = Between(Span::ms(10), Span::s(300)), within 0..=CLOCK_STEP_NS_MAX.unsigned_abs();
    }
    /// A node stalls again and again, like a virtual machine whose host gives the CPU to others.
    Stalls stalls: true, every 60 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Mean number of instructions from one stall to the next.
        every_instructions: Between<u64> = Between(100_000, 100_000_000), within STALL_EVERY_INSTRUCTIONS;
        /// Length of a stall. Each fault draws its own minimum and maximum from this range.
        stall: Between<Span> = Between(Span::ms(1), Span::ms(10)), within 0..=STALL_NS_MAX;
    }
    /// The threads of a unit get random priorities. A unit is a service or a driver.
    Priorities priorities: true, every 120 s {
        /// Duration of a fault.
        #[serde(rename = "for")]
        lasts: Between<Span> = Between(Span::s(1), Span::s(15)), within LASTS;
        /// Time from one change of priorities to the next. Each fault draws its own minimum and maximum from this
        /// range.
        change: Between<Span> = Between(Span::ms(10), Span::s(1)), within PRIORITIES_EVERY_NS_MIN..=TIME_NS_MAX;
    }
    /// The guest's kernel reseeds its random number generator.
    Reseed reseed: true, every 300 s {
    }
    /// A node runs a command of the operator. No fault of this kind is drawn if the operator gives no commands.
    Command command: true, every 30 s {
        /// Commands with their arguments. Each fault draws one command.
        argv: Vec<Vec<String>> = Vec::new(), within COMMANDS;
    }
    /// A service is stopped and started again. Off by default.
    ///
    /// This table is serialized only if it differs from the default. An exploration's name contains a digest of the
    /// serialized tables. Explorations that are older than this kind of fault therefore keep their names. Stored tables
    /// must be JSON or TOML, because the binary format Postcard cannot leave out a field.
    RestartService restart_service [serde(skip_serializing_if = "is_default")]: false, every 60 s {
    }
}

fn is_default(kind: &RestartService) -> bool {
    *kind == RestartService::default()
}

fn numbers(bounds: RangeInclusive<u32>) -> RangeInclusive<u64> {
    (*bounds.start()).into()..=(*bounds.end()).into()
}
