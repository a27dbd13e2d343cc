//! Bounds of coverage.

/// Maximum number of nodes of a world. Events of other nodes are counted and otherwise ignored.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;
/// Maximum number of other names of a node, such as its addresses.
pub const ALIASES_MAX: usize = 16;
/// Maximum number of bytes of a line that are read.
pub use everett_log_template::TEMPLATE_LINE_BYTES_MAX;
/// Maximum length of the name of a unit or a kind of fault, in bytes; longer names are clipped.
pub const NAME_BYTES_MAX: usize = 64;

/// Maximum number of declared rules.
pub const RULES_MAX: usize = 64;
/// Bounds of a rule's expression.
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};
/// Maximum number of variables of a rule.
pub const VARIABLES_MAX: usize = 16;
/// Maximum number of values that a rule may declare for a variable.
pub const VALUES_DECLARED_MAX: usize = 64;
/// Maximum length of a variable's value, in bytes; longer values are clipped.
pub const VALUE_BYTES_MAX: usize = 64;
/// Maximum number of distinct values of a variable in a timeline; later values count as `other`.
pub const VALUES_MAX: usize = 64;
/// Maximum number of template classes of a unit that a world file can request.
pub const VOCABULARY_MAX: usize = 256;
/// Maximum number of units and variables with a vocabulary of their own.
pub const FAMILIES_MAX: usize = 256;
/// Maximum number of units in the state of a node.
pub const UNITS_MAX: usize = 16;
/// Maximum number of kinds of faults in the state of a node; further kinds are left out.
pub const KINDS_MAX: usize = 64;

/// Maximum number of orders of nodes that are compared to find the least text. A single group of up to six nodes is
/// always exact: 6! = 720.
pub const PERMUTATIONS_MAX: usize = 720;
/// Maximum length of the state of a node as text, in bytes; a longer text ends in its hash.
pub const PHASE_BYTES_MAX: usize = 512;
/// Maximum length of the state of a world as text, in bytes; a longer text ends in its hash.
pub const STATE_BYTES_MAX: usize = 1024;

/// Maximum number of types of events that are ordered. A timeline's first types count.
pub const TYPES_MAX: usize = 64;
/// Number of a node's latest typed events that are compared for orders.
pub const WINDOW: usize = 64;
/// Maximum number of sent messages that are remembered; those with the lowest numbers are forgotten first.
pub const SENDS_MAX: usize = 1024;

/// Maximum number of points that one branch can reach; further points are only counted.
pub const DELTA_POINTS_MAX: usize = 1 << 16;
/// Maximum number of points of an exploration; further points are only counted.
pub const POINTS_MAX: usize = 1 << 18;
/// Maximum number of points that have a number. A numbered point is sent once; a point without a number is sent by each
/// branch that reaches it. It is twice [`POINTS_MAX`], because numbers are assigned in the order of results, but points
/// are kept in the order of choices.
pub const DICTIONARY_MAX: usize = 2 * POINTS_MAX;
/// Maximum length of the texts of the points that have a number, in bytes. In a file, points share texts; in memory, each
/// has a copy.
pub const DICTIONARY_BYTES_MAX: usize = 1 << 29;
/// Maximum number of samples of the growth curve.
pub const GROWTH_MAX: usize = 512;
/// Maximum number of gaps of each kind that are listed; all are counted.
pub const GAPS_MAX: usize = 1000;
