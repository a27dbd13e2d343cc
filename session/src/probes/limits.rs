//! Bounds of probes.

/// Maximum number of probes of a command.
pub const PROBES_MAX: usize = 64;
/// Maximum length of a probe's text, in bytes.
pub const PROBE_BYTES_MAX: usize = 4_096;
/// Maximum number of values that a probe prints.
pub const VALUES_MAX: usize = 32;
/// Maximum depth of an expression, in nested parts.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of addresses of a probe in a program. A line has an address for each of its inlined copies.
pub const ADDRESSES_MAX: usize = 4_096;
/// Maximum number of programs that run on a node during a branch in which probes are placed, counted once for each address
/// at which a program is loaded.
pub const LOADED_MAX: usize = 4_096;
/// Maximum length of a text that an expression reads from memory, in bytes. Longer texts are cut off.
pub const TEXT_BYTES_MAX: usize = 256;
/// Maximum length of a text that is read from memory as a whole, without a hit, in bytes. Longer texts are an error.
pub const WHOLE_TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum number of hits of a branch that are kept for printing. Further ones are only counted.
pub const HITS_MAX: usize = 10_000;
/// Maximum length of the texts of a branch's hits, in bytes. Further hits are only counted.
pub const HIT_BYTES_MAX: usize = 64 << 20;
/// Maximum number of events of declared probes that wait until the timeline stops, at most 20 ms of vtime later. Further
/// events are only counted, except the first violation of each probe.
pub const EVENTS_WAITING_MAX: usize = 65_536;
/// Maximum number of hits of declared probes on a branch that become events only because the world file wants them among
/// the log lines. Further ones are only counted.
pub const LOGGED_MAX: usize = 10_000;
/// Maximum number of frames of the stack in the evidence of a violation.
pub const STACK_FRAMES_MAX: usize = 12;
/// Maximum number of addresses on a node at which probes are placed during a branch. A program with whose places there would
/// be more is not probed.
pub const SITES_MAX: usize = 65_536;
/// Maximum number of processes whose programs are remembered, so that hits are cheap.
pub const KNOWN_MAX: usize = 65_536;
/// Maximum number of reasons why code was not probed that are kept.
pub const PROBLEMS_MAX: usize = 1_000;
