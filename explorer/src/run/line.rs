//! A record as a line: `{"sum":"0123456789abcdef","record":{…}}`.
//!
//! The sum is the beginning of a BLAKE3 hash of the record's bytes. All other bytes of a line are fixed, so that no byte can
//! change unnoticed, and the line is JSON for those who do not care.

use serde::Deserialize;

use super::one_line;
use super::record::{Record, RecordProblem};
use crate::coverage::text::{clip, hex};

const BEGIN: &[u8] = b"{\"sum\":\"";
const SUM_DIGITS: usize = 16;
const MIDDLE: &[u8] = b"\",\"record\":";
const END: &[u8] = b"}\n";

/// The most bytes of what a JSON reader says that are told.
const TOLD_BYTES_MAX: usize = 200;

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It has another form.
    #[error("it does not have a record's form")]
    Form,
    /// It says something else than what was written.
    #[error("its checksum is not that of its text")]
    Sum,
    /// It has no end where lines are over.
    #[error("it is longer than lines are")]
    TooLong,
    /// The text is as it was written, by something that is not this.
    #[error("{0}")]
    Json(String),
    /// What it says cannot be.
    #[error("{0}")]
    Record(RecordProblem),
}

/// All that an index needs to know of a record.
#[derive(Deserialize)]
struct Numbered {
    choice: u64,
}

/// The line of a record.
pub(super) fn encode(record: &Record) -> Result<Vec<u8>, Damage> {
    let json = serde_json::to_vec(record).map_err(json_error)?;
    let mut line = Vec::with_capacity(BEGIN.len() + SUM_DIGITS + MIDDLE.len() + json.len() + END.len());
    line.extend_from_slice(BEGIN);
    line.extend_from_slice(sum(&json).as_bytes());
    line.extend_from_slice(MIDDLE);
    line.extend_from_slice(&json);
    line.extend_from_slice(END);
    Ok(line)
}

/// The record of a line. It is within bounds.
pub(super) fn decode(line: &[u8]) -> Result<Record, Damage> {
    let mut record: Record = serde_json::from_slice(text(line)?).map_err(json_error)?;
    record.check().map_err(Damage::Record)?;
    record.bound();
    Ok(record)
}

/// Of which choice a line is, whose text is as it was written.
pub(super) fn choice(line: &[u8]) -> Result<u64, Damage> {
    let Numbered { choice } = serde_json::from_slice(text(line)?).map_err(json_error)?;
    Ok(choice)
}

/// The bytes of the record, if they are as they were written.
pub(super) fn text(line: &[u8]) -> Result<&[u8], Damage> {
    let rest = line.strip_prefix(BEGIN).ok_or(Damage::Form)?;
    let (digits, rest) = rest.split_at_checked(SUM_DIGITS).ok_or(Damage::Form)?;
    let json = rest.strip_prefix(MIDDLE).and_then(|rest| rest.strip_suffix(END)).ok_or(Damage::Form)?;
    if sum(json).as_bytes() == digits { Ok(json) } else { Err(Damage::Sum) }
}

fn sum(json: &[u8]) -> String {
    hex(&blake3::hash(json).as_bytes()[..SUM_DIGITS / 2])
}

fn json_error(error: serde_json::Error) -> Damage {
    Damage::Json(told(&error))
}

/// What a JSON reader says, on one line and not too long.
pub(super) fn told(error: &serde_json::Error) -> String {
    one_line(&clip(&error.to_string(), TOLD_BYTES_MAX))
}
