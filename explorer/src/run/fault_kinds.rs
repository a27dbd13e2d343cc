//! Kinds of faults that began on a branch, as a set of bits.

use super::merge_input::MergeInput;
use crate::coverage::{Dictionary, Kind, Point};

/// Maximum number of kinds of faults that have a bit.
pub const KINDS_MAX: usize = 32;

/// Kinds of faults, in the order in which they first occurred on branches.
#[derive(Debug, Clone, Default)]
pub struct FaultKinds {
    /// Name of the kind for each bit, at most [`KINDS_MAX`] names.
    names: Vec<String>,
    /// An entry for each coverage point, by the point's number. If the point is a fault, the entry is 1 plus the
    /// position of the bit of its kind. It is 0 if the point is not a fault, or if no bit was left.
    bits: Vec<u8>,
}

impl FaultKinds {
    /// Returns the name of the kind for each bit.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the kinds of faults that began on a branch, as a set of bits. The numbers of the branch's points must
    /// come from `dictionary`, which numbers coverage points. Every call must pass the same dictionary.
    pub fn of(&mut self, dictionary: &Dictionary, input: &MergeInput) -> u32 {
        let mut kinds = 0;
        self.learn(dictionary, input.numbers.end());
        for number in input.numbers.steps().flat_map(|(_, numbers)| numbers) {
            let bit = self.bits.get(*number as usize).copied().unwrap_or_default();
            if bit > 0 {
                kinds |= 1 << (bit - 1);
            }
        }
        for unnumbered in input.numbers.unnumbered() {
            kinds |= self.bit(&unnumbered.point).map_or(0, |bit| 1 << bit);
        }
        kinds
    }

    /// Assigns bits to the faults among the points with numbers below `end`.
    fn learn(&mut self, dictionary: &Dictionary, end: u32) {
        if self.bits.len() >= end as usize {
            return;
        }
        let entries = dictionary.read();
        for number in self.bits.len() as u64..u64::from(end) {
            let entry = u32::try_from(number).ok().and_then(|number| entries.get(number));
            let point = entry.filter(|entry| entry.kind == Kind::Fault).map(|entry| &*entry.point);
            let bit = point.and_then(|point| self.bit(point));
            self.bits.push(bit.map_or(0, |bit| bit + 1));
        }
    }

    /// Returns the bit of a point's kind of fault. Returns `None` if the point is not a fault, or if no bit is left.
    fn bit(&mut self, point: &Point) -> Option<u8> {
        let Point::Fault { fault, .. } = point else { return None };
        let place = self.names.iter().position(|name| name == fault).or_else(|| {
            (self.names.len() < KINDS_MAX).then(|| {
                self.names.push(fault.clone());
                self.names.len() - 1
            })
        });
        place.and_then(|place| u8::try_from(place).ok())
    }
}
