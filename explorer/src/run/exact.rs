//! Digest of the exact parts of a branch's record (its entry in the run directory): the parts that depend only on what
//! the exploration was started with.
//!
//! The digest omits values that may differ between hosts: CPU times, the number of instructions that the host really
//! executed (`executed`, which is greater if parts ran again), and the reason why a host could not run a branch to its end.
//! It omits evidence and lengths of logs, because the digest of the trail already tells different timelines apart. It
//! also omits the cost of the final phase, in which the world comes to rest and checks run: older formats lack this cost,
//! and the branch's own cost (`instructions`), which the digest covers, includes it.

use super::digest::Digest;
use super::record::{HistoryCount, Record};
use crate::composer::Counts;

/// Returns the digest of the exact parts of a record. The caller must have called [`Record::bound`], which cuts the
/// record to its maximum size. Two records have the same digest if and only if their exact parts are equal.
pub(super) fn exact(record: &Record) -> blake3::Hash {
    let Record { choice, from, path, open_ns, end_ns, instructions, trail, marks, checked, .. } = record;
    let Record { faults, losses, messages, delta, hits, sometimes, commands, history, broken, .. } = record;
    let mut digest = Digest::new("everett 1 run record");
    digest.number(*choice);
    digest.maybe(*from);
    digest.text(&path.to_string());
    digest.maybe(*open_ns);
    for number in [*end_ns, *instructions, marks.len() as u64, u64::from(*checked)] {
        digest.number(number);
    }
    [*faults, *losses, *messages].into_iter().for_each(|number| digest.number(number));
    digest.text(trail);
    digest.number(broken.is_some().into());
    digest.number(delta.points().count() as u64);
    for (id, reached) in delta.points() {
        // The id of a coverage point is a hash of all texts of the point.
        digest.bytes(&id.0.to_le_bytes());
        digest.number(reached.vtime_ns);
    }
    digest.number(delta.overflow());
    digest.number(delta.strange());
    digest.number(hits.len() as u64);
    for hit in hits {
        [&hit.property, &hit.signature, &hit.text].into_iter().for_each(|text| digest.text(text));
        digest.number(hit.vtime_ns);
        digest.number(hit.node.is_some().into());
        digest.text(hit.node.as_deref().unwrap_or_default());
    }
    digest.number(sometimes.len() as u64);
    sometimes.iter().for_each(|name| digest.text(name));
    digest.number(commands.commands().count() as u64);
    for (name, Counts { started, succeeded, failed }) in commands.commands() {
        digest.text(name);
        [started, succeeded, failed].into_iter().for_each(|number| digest.number(number));
    }
    digest.number(history.is_some().into());
    let HistoryCount { operations, acknowledged, failed, problems, unknown } = history.unwrap_or_default();
    [operations, acknowledged, failed, problems, unknown].into_iter().for_each(|n| digest.number(n));
    digest.finish()
}
