//! Bounds of coverage, i.e. of the data about what an exploration reached: states of a world (summaries of its logs and
//! faults), and orders of events.

/// Maximum number of nodes (machines) in a world. Coverage refuses a larger world.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;
/// Maximum number of other names of a node, such as addresses.
pub const ALIASES_MAX: usize = 16;
/// Maximum number of bytes that coverage reads of a log line.
pub use everett_log_template::TEMPLATE_LINE_BYTES_MAX;
/// Maximum length of the name of a unit (a service or driver) or of a kind of fault, in bytes. Longer names are
/// clipped.
pub const NAME_BYTES_MAX: usize = 64;

/// Maximum number of rules in a world file. A rule sets variables of the state when its regular expression matches a
/// log line.
pub const RULES_MAX: usize = 64;
/// Bounds of a rule's regular expression.
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};
/// Maximum number of variables of a rule.
pub const VARIABLES_MAX: usize = 16;
/// Maximum number of values that a rule may declare for a variable.
pub const VALUES_DECLARED_MAX: usize = 64;
/// Maximum length of a variable's value, in bytes. Longer values are clipped.
pub const VALUE_BYTES_MAX: usize = 64;
/// Maximum number of distinct values of a variable in a timeline. Later values become `other`.
pub const VALUES_MAX: usize = 64;
/// Highest value of a world file's key `vocabulary`, the number of different log templates per unit that coverage
/// tells apart.
pub const VOCABULARY_MAX: usize = 256;
/// Maximum number of units plus variables on a timeline. The templates of further units and the values of further
/// variables are not told apart.
pub const FAMILIES_MAX: usize = 256;
/// Maximum number of units in a node's state.
pub const UNITS_MAX: usize = 16;
/// Maximum number of kinds of faults in a node's state. Further kinds are left out.
pub const KINDS_MAX: usize = 64;

/// Maximum number of orders of nodes that Everett compares to compute a state's canonical text. This text is the same
/// for all orders of interchangeable nodes. Six nodes in one group have 6! = 720 orders, so all of them are compared.
pub const PERMUTATIONS_MAX: usize = 720;
/// Maximum length of a node's state as text, in bytes. A longer text is cut and ends in its hash.
pub const PHASE_BYTES_MAX: usize = 512;
/// Maximum length of a world's state as text, in bytes. A longer text is cut and ends in its hash.
pub const STATE_BYTES_MAX: usize = 1024;

/// Maximum number of event types of a timeline. Coverage tracks which of two events happened before the other only for
/// events of these types.
pub const TYPES_MAX: usize = 64;
/// Number of latest events of each node that coverage compares with a new event to find their order. Only events with
/// a tracked type count.
pub const WINDOW: usize = 64;
/// Maximum number of sent messages that are remembered. The messages with the lowest numbers are forgotten first.
pub const SENDS_MAX: usize = 1024;

/// Maximum number of coverage points (e.g. states or orders of events) that one branch can reach. Further points are
/// only counted.
pub const DELTA_POINTS_MAX: usize = 1 << 16;
/// Maximum number of points of an exploration. Further points are only counted.
pub const POINTS_MAX: usize = 1 << 18;
/// Maximum number of points that have a number. The run directory stores the texts of a numbered point once, and the
/// texts of any other point again for each branch that reaches it. Points get numbers when results arrive. Coverage
/// counts points later, in the order in which the branches were chosen, and stops at [`POINTS_MAX`]. Some points with
/// numbers are never counted, so the maximum is twice [`POINTS_MAX`].
pub const DICTIONARY_MAX: usize = 2 * POINTS_MAX;
/// Maximum total length of the texts of numbered points in memory, in bytes. In memory each point has its own copy of
/// its texts, so a text that two points have counts twice.
pub const DICTIONARY_BYTES_MAX: usize = 1 << 29;
/// Maximum number of samples of the growth curve, which shows the number of points against the number of branches.
pub const GROWTH_MAX: usize = 512;
/// Maximum number of listed gaps of each kind. A gap is a point that no branch reached, although it seems reachable.
/// Further gaps are only counted.
pub const GAPS_MAX: usize = 1000;
