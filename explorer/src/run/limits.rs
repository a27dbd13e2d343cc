//! Every bound of a run directory, by name.

use crate::composer::limits::{COMMANDS_MAX, NAME_BYTES_MAX as COMMAND_BYTES_MAX};
use crate::coverage::limits::{DELTA_POINTS_MAX, STATE_BYTES_MAX};

/// The most records of a run.
pub const RECORDS_MAX: usize = 1 << 22;
/// The most bytes of what a record says. What a branch can reach at the most fits in; see below.
pub const FRAME_BYTES_MAX: usize = 1 << 28;
/// The most bytes behind damage that may be a crash's, and the most that are read there in search of whole records.
pub const SEARCH_BYTES_MAX: u64 = 1 << 30;
/// The most texts that points are made of and that are written once; others are written with each point that has them.
pub const WORDS_MAX: usize = 1 << 20;
/// The most signatures of which it is known whether a record has evidence; hits of others are all recorded with theirs.
pub const EVIDENCE_KEYS_MAX: usize = 4 * FINDINGS_MAX;
/// After so many records at the latest, what was written is made to last.
pub const SYNC_RECORDS: u64 = 64;
/// The most bytes of `run.json` and of `end.json`.
pub const HEADER_BYTES_MAX: usize = 16 << 20;

/// The most hits of a branch, each with another signature.
pub const HITS_MAX: usize = 128;
/// The most bytes of names: of properties, nodes and strategies.
pub const NAME_BYTES_MAX: usize = 128;
/// The most bytes of a signature.
pub const SIGNATURE_BYTES_MAX: usize = 256;
/// The most bytes of what a hit says, and of why a branch broke.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The most lines of each sort of evidence.
pub const EVIDENCE_LINES_MAX: usize = 64;
/// The most bytes of each of them.
pub const EVIDENCE_BYTES_MAX: usize = 512;
/// The most `sometimes` properties that a branch can see.
pub const SOMETIMES_MAX: usize = 1024;
/// The most of them in a run; others are counted.
pub const SOMETIMES_ALL_MAX: usize = 1 << 16;
/// The most bytes of a trail's digest.
pub const TRAIL_BYTES_MAX: usize = 128;

/// The most findings of a run, and the most properties that have some; hits of others are counted.
pub const FINDINGS_MAX: usize = 1024;
/// The most files of a finding's evidence.
pub const FILES_MAX: usize = 64;
/// The most bytes of such a file's name.
pub const FILE_NAME_BYTES_MAX: usize = 64;

/// A point has at most three texts, none longer than a state, and takes four whole numbers of at most ten bytes.
const FRAME_BYTES_WORST: usize = DELTA_POINTS_MAX * (3 * STATE_BYTES_MAX + 64)
    + 40 * DELTA_POINTS_MAX
    + HITS_MAX * (3 * EVIDENCE_LINES_MAX * (EVIDENCE_BYTES_MAX + 3) + 2 * TEXT_BYTES_MAX)
    + SOMETIMES_MAX * (NAME_BYTES_MAX + 3)
    + COMMANDS_MAX * (COMMAND_BYTES_MAX + 64)
    + 64 * crate::search::FORKS_MAX
    + MARKS_MAX * (TRAIL_BYTES_MAX + 16)
    + (1 << 20);
const _: () = assert!(FRAME_BYTES_WORST < FRAME_BYTES_MAX);
/// The most places of a branch of which a digest is recorded.
pub const MARKS_MAX: usize = 100_000;
