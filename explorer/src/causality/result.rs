//! The causality of a finding, as the run directory stores it in `causality-ID.json`. A *future* is a rerun of the
//! finding's timeline that draws new random numbers from some vtime on. The *likelihood* at a vtime is the share of the
//! futures from there that show the finding.

use std::ops::Add;

use serde::{Deserialize, Serialize};

/// Version of the file format. Version 1 has no source lines ([`Code::lines`]); files with this version can still be
/// read. Files with another version are refused.
pub const SCHEMA_VERSION: u32 = 2;
/// Oldest version of the file format that can be read.
pub const OLDEST_VERSION: u32 = 1;
/// Maximum size of a file, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of vtimes from which futures start.
pub const POINTS_MAX: usize = 100_000;
/// Maximum number of steps in each list of steps.
pub const STEPS_MAX: usize = 40;
/// Maximum number of functions in a [`Jump`].
pub const CODE_MAX: usize = 40;
/// Maximum number of source lines of a function.
pub const LINES_MAX: usize = 8;
/// Maximum length of a text field, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_000;

/// Part of a timeline that each future draws for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vary {
    /// Streams of random numbers, and faults. Each future draws its faults as a branch of an exploration does.
    #[default]
    All,
    /// Streams of random numbers only. All futures have the faults of the finding's timeline.
    Streams,
}

/// Counts of the futures from one vtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Number of futures.
    pub futures: u64,
    /// Number of futures that showed the finding.
    pub shown: u64,
}

impl Count {
    /// Returns the share of futures that showed the finding, or 0 if no futures were run.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.shown as f64 / self.futures.max(1) as f64
    }

    /// Returns the bounds of the likelihood at a confidence of 95 % (Wilson's score interval).
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

/// Vtime from which futures started, with their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of futures, and how many of them showed the finding.
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

/// Step of a timeline: one observed event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Vtime of the step, in nanoseconds.
    pub vtime_ns: u64,
    /// Kind of the step.
    pub kind: StepKind,
    /// Description of the step, in the same form as in a finding's evidence.
    pub text: String,
}

/// Function that a node executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Name of the node.
    pub node: String,
    /// Path of the program in the image, or `kernel`.
    pub program: String,
    /// Name of the function, or the address in the program if no name is known.
    pub place: String,
    /// Number of distinct control-flow edges that were executed in the function.
    pub edges: u64,
    /// Source lines in the function to which execution jumped, each as `FILE:LINE`, or as `FUNCTION (inlined) at
    /// FILE:LINE`. Empty if the program has no debug information.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// Interval of vtime in which the likelihood jumps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jump {
    /// Beginning, in nanoseconds of vtime.
    pub from_ns: u64,
    /// End, in nanoseconds of vtime.
    pub to_ns: u64,
    /// Results of the futures from the beginning of the interval.
    pub before: Count,
    /// Results of the futures from the end of the interval. `None` if the interval ends at the finding itself.
    pub after: Option<Count>,
    /// Probability that the likelihood jumps within this interval, in parts of a million, assuming a single jump.
    pub probability_ppm: u32,
    /// True if at most one step lies in the interval, so that no search can narrow it.
    pub is_narrowest: bool,
    /// Steps within the interval. If there are more than [`STEPS_MAX`], only the last ones.
    pub steps: Vec<Step>,
    /// Number of all steps within the interval.
    pub steps_count: u64,
    /// Last steps before the interval.
    pub steps_before: Vec<Step>,
    /// First steps after the interval.
    pub steps_after: Vec<Step>,
    /// Steps that may explain a message in the interval, in the order of vtime: the last fault before the message, the
    /// next faults after it, and output lines of the message's nodes shortly before and after it. Empty if the interval
    /// has no message, or has steps other than messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Step>,
    /// Functions that were executed within the interval. Empty if the functions are unknown.
    pub code: Vec<Code>,
}

/// Reason for the end of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CausalityEnd {
    /// The search found the decisive step, within the allowed error.
    Named,
    /// No step is decisive: the finding is as likely at the root moment as later.
    Flat,
    /// The requested number of futures was run.
    Futures,
    /// The budget of host time was used up.
    Budget,
    /// The operator interrupted the search.
    Interrupted,
    /// The host or the engine failed.
    Failed,
    /// The search is still running. The file has an intermediate result.
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

/// Causality of a finding, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Causality {
    /// Version of the format, from [`OLDEST_VERSION`] to [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the finding's timeline.
    pub timeline: String,
    /// Violated property.
    pub property: String,
    /// Signature of the finding, which all violations by the same bug share.
    pub signature: String,
    /// Vtime of the finding, in nanoseconds.
    pub found_ns: u64,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// Vtime at which the finding's timeline ends, in nanoseconds, not including the checks that run afterwards.
    pub end_ns: u64,
    /// Parts of a timeline that each future draws for itself.
    pub vary: Vary,
    /// Maximum allowed probability that the named step is wrong, in parts of a million.
    pub error_ppm: u32,
    /// Reason why the search ended.
    pub why: CausalityEnd,
    /// Total number of futures that were run.
    pub futures: u64,
    /// Vtimes from which futures started, in ascending order.
    pub points: Vec<Point>,
    /// Interval in which the likelihood jumps. `None` if the search established no jump.
    pub jump: Option<Jump>,
    /// Digest of the finding's name and of the main results, in hexadecimal digits: see [`Causality::digest_of`].
    pub digest: String,
}

/// Reason why a causality file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CausalityError {
    /// The file is not JSON, or the JSON lacks a field or has a field of another type.
    #[error("{0}")]
    Json(String),
    /// The file has another format version.
    #[error("format version {0}; this Everett reads format versions {OLDEST_VERSION} to {SCHEMA_VERSION}")]
    Version(u64),
    /// A value is out of its bounds.
    #[error("{0}")]
    Bound(&'static str),
}

impl Causality {
    /// Parses the contents of a causality file.
    ///
    /// # Errors
    /// Returns an error if the text is not the JSON of a causality, if it has another format version, or if a value is
    /// out of bounds.
    pub fn parse(text: &str) -> Result<Causality, CausalityError> {
        let json = |error: serde_json::Error| CausalityError::Json(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
        match value.get("schema_version").and_then(serde_json::Value::as_u64) {
            Some(version) if !(u64::from(OLDEST_VERSION)..=u64::from(SCHEMA_VERSION)).contains(&version) => {
                return Err(CausalityError::Version(version));
            }
            _ => {}
        }
        let causality: Causality = serde_json::from_value(value).map_err(json)?;
        causality.check()?;
        Ok(causality)
    }

    /// Serializes the causality to the contents of a file.
    ///
    /// # Errors
    /// Returns an error if serialization fails. No value is known to cause this.
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
            let lines = jump.code.iter().all(|code| code.lines.len() <= LINES_MAX);
            bound(lines, "jump: a function has too many source lines")?;
        }
        Ok(())
    }

    /// Returns the counts at the root moment, or `None` if no futures started there.
    #[must_use]
    pub fn at_root(&self) -> Option<Count> {
        self.points.first().filter(|point| point.vtime_ns <= self.root_ns).map(|point| point.count)
    }

    /// Computes a digest of the timeline's name, the property, the signature, `vary`, the counts at each point, and the
    /// jump (its beginning, end and steps). The digest does not depend on the host.
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
