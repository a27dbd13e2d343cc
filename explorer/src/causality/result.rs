//! The causality of a finding, as it is kept in the run directory: `causality-ID.json`.

use std::ops::Add;

use serde::{Deserialize, Serialize};

/// Version of the format. Other versions are refused.
pub const SCHEMA_VERSION: u32 = 1;
/// Maximum size of a file, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of vtimes from which futures started.
pub const POINTS_MAX: usize = 100_000;
/// Maximum number of steps that are named in one place.
pub const STEPS_MAX: usize = 40;
/// Maximum number of functions that are named.
pub const CODE_MAX: usize = 40;
/// Maximum length of a text, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_000;

/// Parts of a timeline that each future draws for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vary {
    /// Random streams and faults, drawn as an exploration draws them.
    #[default]
    All,
    /// Random streams only: all futures have the faults of the finding.
    Streams,
}

/// Number of futures, and of those that showed the finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Number of futures.
    pub futures: u64,
    /// Number of those that showed the finding.
    pub shown: u64,
}

impl Count {
    /// Returns the share of futures that showed the finding; 0 without futures.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.shown as f64 / self.futures.max(1) as f64
    }

    /// Returns the bounds of the likelihood that hold with a confidence of 95 % (Wilson's score interval).
    #[must_use]
    pub fn between(&self) -> (f64, f64) {
        const Z: f64 = 1.959_963_985;
        if self.futures == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (self.futures as f64, self.share());
        let middle = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count {
            futures: self.futures.saturating_add(other.futures),
            shown: self.shown.saturating_add(other.shown),
        }
    }
}

/// Vtime from which futures started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// Their number.
    pub count: Count,
}

/// Kind of a step of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A message was sent.
    Sent,
    /// A message arrived or was lost.
    Message,
    /// A fault began or ended, or had an effect.
    Fault,
    /// A client's operation began or ended.
    Operation,
    /// A program or a kernel printed a line, or a process started or ended.
    Line,
}

/// Step of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// Its kind.
    pub kind: StepKind,
    /// Description, in the form of evidence.
    pub text: String,
}

/// Function that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Name of the node.
    pub node: String,
    /// Path of the program in the image, or `kernel`.
    pub program: String,
    /// Name of the function, or a place in the program.
    pub place: String,
    /// Number of edges of code that were executed there.
    pub edges: u64,
}

/// Interval of vtime in which the likelihood jumps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jump {
    /// Beginning, in nanoseconds of vtime.
    pub from_ns: u64,
    /// End, in nanoseconds of vtime.
    pub to_ns: u64,
    /// Futures from the beginning.
    pub before: Count,
    /// Futures from the end; `None` if the end is the finding itself.
    pub after: Option<Count>,
    /// Probability that the likelihood jumps within this interval, in parts of a million, if it jumps once.
    pub probability_ppm: u32,
    /// True if the interval cannot be narrowed: at most one step lies in it.
    pub is_narrowest: bool,
    /// Steps within the interval, the last ones.
    pub steps: Vec<Step>,
    /// Number of all steps within the interval.
    pub steps_count: u64,
    /// Last steps before the interval.
    pub steps_before: Vec<Step>,
    /// First steps after it.
    pub steps_after: Vec<Step>,
    /// Faults and lines of output around a message in the interval, on its nodes, in the order of vtime. Empty if the
    /// interval has no message, or if nothing of that kind is near.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Step>,
    /// Functions that were executed within the interval. Empty if they are unknown.
    pub code: Vec<Code>,
}

/// Reason for the end of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CausalityEnd {
    /// The step is named with the stated error.
    Named,
    /// No step is decisive: the finding is as likely at the root moment as later.
    Flat,
    /// The requested number of futures was run.
    Futures,
    /// The budget of host time was used up.
    Budget,
    /// The interrupt was raised.
    Interrupted,
    /// The host or the engine failed.
    Failed,
    /// The search goes on: this result is from its middle.
    Running,
}

impl CausalityEnd {
    /// Returns the reason in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            CausalityEnd::Named => "the step is named",
            CausalityEnd::Flat => "no step is decisive",
            CausalityEnd::Futures => "the number of futures was reached",
            CausalityEnd::Budget => "the time budget ran out",
            CausalityEnd::Interrupted => "interrupted",
            CausalityEnd::Failed => "the host or the engine failed",
            CausalityEnd::Running => "the search goes on, or was killed",
        }
    }
}

/// Causality of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Causality {
    /// Version of the format: [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the finding's timeline.
    pub timeline: String,
    /// Violated property.
    pub property: String,
    /// Signature of the finding.
    pub signature: String,
    /// Vtime of the finding, in nanoseconds.
    pub found_ns: u64,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// End of the timeline without its checks, in nanoseconds of vtime.
    pub end_ns: u64,
    /// Parts of a timeline that each future draws for itself.
    pub vary: Vary,
    /// Largest probability that a named step is the wrong one, in parts of a million.
    pub error_ppm: u32,
    /// Reason for the end.
    pub why: CausalityEnd,
    /// Number of all futures.
    pub futures: u64,
    /// Vtimes from which they started, ascending.
    pub points: Vec<Point>,
    /// Interval in which the likelihood jumps; `None` if no jump is established.
    pub jump: Option<Jump>,
    /// Digest of everything that does not depend on the host, in hexadecimal digits.
    pub digest: String,
}

/// Reason why a file has no causality.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CausalityError {
    /// It is no JSON of this form.
    #[error("{0}")]
    Json(String),
    /// It is of another format version.
    #[error("format version {0}; this Everett reads format version {SCHEMA_VERSION}")]
    Version(u64),
    /// A value is out of its bounds.
    #[error("{0}")]
    Bound(&'static str),
}

impl Causality {
    /// Reads the contents of a file.
    ///
    /// # Errors
    /// Returns an error if the text is no causality, of another format version, or beyond its bounds.
    pub fn parse(text: &str) -> Result<Causality, CausalityError> {
        let json = |error: serde_json::Error| CausalityError::Json(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
        match value.get("schema_version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(SCHEMA_VERSION) => {
                return Err(CausalityError::Version(version));
            }
            _ => {}
        }
        let causality: Causality = serde_json::from_value(value).map_err(json)?;
        causality.check()?;
        Ok(causality)
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    /// Returns an error if serialization fails. No causality is known to cause this.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    fn check(&self) -> Result<(), CausalityError> {
        let bound =
            |is_good: bool, problem| if is_good { Ok(()) } else { Err(CausalityError::Bound(problem)) };
        bound(self.points.len() <= POINTS_MAX, "points: there are too many")?;
        let ascending = self.points.windows(2).all(|pair| pair[0].vtime_ns < pair[1].vtime_ns);
        bound(ascending, "points: they are not in the order of vtime")?;
        let jump = self.jump.iter();
        let counts = jump.clone().flat_map(|jump| [Some(jump.before), jump.after]).flatten();
        let mut counts = self.points.iter().map(|point| point.count).chain(counts);
        let possible = counts.all(|count| count.shown <= count.futures && count.futures <= self.futures);
        bound(possible, "a count of futures is impossible")?;
        for jump in jump {
            bound(jump.from_ns <= jump.to_ns, "jump: it ends before it begins")?;
            let lists = [&jump.steps, &jump.steps_before, &jump.steps_after, &jump.context];
            bound(lists.iter().all(|list| list.len() <= STEPS_MAX), "jump: there are too many steps")?;
            bound(jump.code.len() <= CODE_MAX, "jump: there are too many functions")?;
        }
        Ok(())
    }

    /// Returns the count at the root moment, if futures started there.
    #[must_use]
    pub fn at_root(&self) -> Option<Count> {
        self.points.first().filter(|point| point.vtime_ns <= self.root_ns).map(|point| point.count)
    }

    /// Returns the digest of everything that does not depend on the host: the futures and their results, in order.
    #[must_use]
    pub fn digest_of(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("everett causality of a finding");
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        for text in [&self.timeline, &self.property, &self.signature] {
            part(text.as_bytes());
        }
        part(&[u8::from(self.vary == Vary::All)]);
        for Point { vtime_ns, count } in &self.points {
            part(&[vtime_ns.to_le_bytes(), count.futures.to_le_bytes(), count.shown.to_le_bytes()].concat());
        }
        if let Some(jump) = &self.jump {
            part(&[jump.from_ns.to_le_bytes(), jump.to_ns.to_le_bytes()].concat());
            jump.steps.iter().for_each(|step| part(step.text.as_bytes()));
        }
        hasher.finalize().to_hex().to_string()
    }
}
