//! Bounds of a run directory. A record is the stored result of a branch. A hit is a violation of a property on a
//! branch. The signature of a hit is a text that is the same for all hits of one bug.

use crate::composer::limits::{COMMANDS_MAX, NAME_BYTES_MAX as COMMAND_BYTES_MAX};
use crate::coverage::limits::{DELTA_POINTS_MAX, STATE_BYTES_MAX};

/// Maximum number of records in a run.
pub const RECORDS_MAX: usize = 1 << 22;
/// Maximum length of a record in the file, in bytes, without the head (28 bytes with the length and the
/// checksum). Records whose fields are within their bounds are shorter: see `RECORD_BYTES_WORST`.
pub const RECORD_BYTES_MAX: usize = 1 << 28;
/// Maximum length of a damaged tail, i.e. of the file's end after the last whole record, in bytes. A crash leaves a
/// shorter tail, so a longer tail is an error. The search for whole records in a tail reads at most this many bytes.
pub const SEARCH_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of different texts of coverage points that the file stores only once and then refers to by number.
/// The file repeats any further text in each new point that contains the text.
pub const STRINGS_MAX: usize = 1 << 20;
/// Maximum number of findings (pairs of property and signature) for which the writer of the run remembers the recorded
/// branch with the lowest number that has a hit. If a branch with a higher number has a hit of the same finding, the
/// writer leaves out the evidence of this hit. For findings beyond the maximum, the writer records the evidence of
/// every hit.
pub const EVIDENCE_KEYS_MAX: usize = 4 * FINDINGS_MAX;
/// Maximum number of records that are written without a sync.
pub const UNSYNCED_RECORDS_MAX: u64 = 64;
/// Maximum length of `run.json` and of `end.json`, in bytes.
pub const HEADER_BYTES_MAX: usize = 16 << 20;

/// Maximum number of hits in the record of a branch. Only the first hit of each property and signature is recorded.
pub const HITS_MAX: usize = 128;
/// Maximum length of the name of a property or node, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Maximum length of a signature, in bytes.
pub const SIGNATURE_BYTES_MAX: usize = 256;
/// Maximum length of a hit's text, and of the reason why a branch could not run to its end, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Maximum number of lines of each kind of evidence.
pub const EVIDENCE_LINES_MAX: usize = 192;
/// Maximum length of a line of evidence, in bytes.
pub const EVIDENCE_LINE_BYTES_MAX: usize = 512;
/// Maximum number of `sometimes` properties in the record of a branch. A `sometimes` property names an event that some
/// branch should reach.
pub const SOMETIMES_MAX: usize = 1024;
/// Maximum number of `sometimes` properties of a run. Further properties are only counted.
pub const SOMETIMES_ALL_MAX: usize = 1 << 16;
/// Maximum length of a trail's digest, in bytes.
pub const TRAIL_BYTES_MAX: usize = 128;

/// Maximum number of findings of a run. Hits of further findings are only counted.
pub const FINDINGS_MAX: usize = 1024;
/// Maximum number of files of a finding's evidence.
pub const FILES_MAX: usize = 64;
/// Maximum length of the name of a file of evidence, in bytes.
pub const FILE_NAME_BYTES_MAX: usize = 64;

/// Upper bound of the length of a record whose fields are within their bounds, in bytes. A coverage point has at most
/// three texts and four integers. A text has at most `STATE_BYTES_MAX` bytes, and an integer at most ten.
const RECORD_BYTES_WORST: usize = DELTA_POINTS_MAX * (3 * STATE_BYTES_MAX + 64)
    + 40 * DELTA_POINTS_MAX
    + HITS_MAX * (3 * EVIDENCE_LINES_MAX * (EVIDENCE_LINE_BYTES_MAX + 3) + 2 * TEXT_BYTES_MAX)
    + SOMETIMES_MAX * (NAME_BYTES_MAX + 3)
    + COMMANDS_MAX * (COMMAND_BYTES_MAX + 64)
    + 64 * crate::search::FORKS_MAX
    + MARKS_MAX * (TRAIL_BYTES_MAX + 16)
    + (1 << 20);
const _: () = assert!(RECORD_BYTES_WORST < RECORD_BYTES_MAX);
/// Maximum number of marks in the record of a branch. A mark is a vtime on the branch's timeline with a digest of the
/// world's state at this vtime.
pub const MARKS_MAX: usize = 100_000;
