//! Every bound of coverage, by name.

/// The most nodes of a world. Events of other nodes are counted and otherwise ignored.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;
/// The most other names of a node, such as its addresses.
pub const ALIASES_MAX: usize = 16;
/// The most bytes of a line that are read; the rest is ignored.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// The most bytes of a template.
pub const TEMPLATE_BYTES_MAX: usize = 160;
/// The most bytes of a unit's or fault kind's name; longer ones are clipped.
pub const NAME_BYTES_MAX: usize = 64;

/// The most declared rules.
pub const RULES_MAX: usize = 64;
/// The bounds of a rule's expression.
pub use crate::pattern::{REGEX_BYTES_MAX, REGEX_SIZE_MAX};
/// The most variables of a rule.
pub const VARIABLES_MAX: usize = 16;
/// The most values that a rule may declare for a variable.
pub const VALUES_DECLARED_MAX: usize = 64;
/// The most bytes of a variable's value; longer ones are clipped.
pub const VALUE_BYTES_MAX: usize = 64;
/// The most values of a variable in a timeline; later ones are `other`.
pub const VALUES_MAX: usize = 64;
/// The most template classes of a unit that a world file can request.
pub const VOCABULARY_MAX: usize = 256;
/// The most units and variables with a vocabulary of their own.
pub const FAMILIES_MAX: usize = 256;
/// The most units of a node in its state.
pub const UNITS_MAX: usize = 16;
/// The most kinds of faults that are active on a node at once; others do not enter its state.
pub const KINDS_MAX: usize = 64;

/// The most orders of nodes that are compared for the least text. A group of six is always exact: 6! = 720.
pub const PERMUTATIONS_MAX: usize = 720;
/// The most bytes of a node state as text; a longer one ends in its hash.
pub const PHASE_BYTES_MAX: usize = 512;
/// The most bytes of a global state as text; a longer one ends in its hash.
pub const STATE_BYTES_MAX: usize = 1024;

/// The most types of events that are ordered, in the order of first sight in a timeline.
pub const TYPES_MAX: usize = 64;
/// Number of a node's latest typed events that are compared for orders.
pub const WINDOW: usize = 64;
/// The most sent messages that are remembered; those with the least numbers are forgotten.
pub const SENDS_MAX: usize = 1024;

/// The most points that one branch can reach; others are counted.
pub const DELTA_POINTS_MAX: usize = 1 << 16;
/// The most points of an exploration; others are counted.
pub const POINTS_MAX: usize = 1 << 18;
/// The most points that have a number. A numbered point is sent once; one without a number is sent by each branch that
/// reaches it. Twice [`POINTS_MAX`], because the numbered points depend on the order of results, and the kept points on the
/// order of choices.
pub const DICTIONARY_MAX: usize = 2 * POINTS_MAX;
/// The most samples of the growth curve.
pub const GROWTH_MAX: usize = 512;
/// The most gaps of each sort that are listed; all are counted.
pub const GAPS_MAX: usize = 1000;
