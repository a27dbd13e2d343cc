//! Functions and source lines that an exploration reached, as the run directory stores them in `reached-code.json`.
//!
//! Replays of the exploration's branches record them, because branches of an exploration run without records of executed
//! code. A *place* is an instruction to which a branch instruction led. A branch reaches everything that its timeline
//! executes after the root moment, so a branch also reaches what the branches on its path reached.

use everett_streams::Seed;
use serde::{Deserialize, Serialize};

/// Name of the file in the run directory.
pub const FILE: &str = "reached-code.json";
/// Version of the file format. Files with another version are refused.
pub const SCHEMA_VERSION: u32 = 1;
/// Maximum size of a file, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of programs.
pub const PROGRAMS_MAX: usize = 500;
/// Maximum number of functions of a program. The functions that the fewest branches reached are kept.
pub const FUNCTIONS_MAX: usize = 2_000;
/// Maximum number of functions of all programs together.
pub const ALL_FUNCTIONS_MAX: usize = 20_000;
/// Maximum number of findings.
pub const FINDINGS_MAX: usize = 64;
/// Maximum number of places of a finding.
pub const PLACES_MAX: usize = 100;
/// Maximum number of nodes of a program.
pub const NODES_MAX: usize = 256;
/// Maximum length of a text field, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_000;

/// Program name of the kernel's code.
pub const KERNEL: &str = "kernel";

/// Code that an exploration reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReachedCode {
    /// Version of the format; must equal [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Identity of the exploration: digest of everything that its timelines depend on, except the seed and the paths.
    pub identity: String,
    /// Seed of the exploration.
    pub seed: Seed,
    /// Number of branches that were replayed.
    pub branches: u64,
    /// Number of branches that the exploration had.
    pub branches_all: u64,
    /// Number of replayed branches whose timeline shows no finding.
    pub passing: u64,
    /// Reason why the replays ended.
    pub why: ReplaysEnd,
    /// Programs with reached code: programs of images in descending order of reached functions, then the kernel.
    pub programs: Vec<Program>,
    /// Number of programs with reached code, including programs that `programs` omits.
    pub programs_count: u64,
    /// Code that only failing branches reached, for each finding that a replayed branch shows.
    pub findings: Vec<FindingCode>,
}

/// Reason for the end of the replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplaysEnd {
    /// All requested branches were replayed.
    Done,
    /// The budget of host time was used up.
    Budget,
    /// The operator interrupted the replays.
    Interrupted,
}

/// Reached code of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Path of the program in its image, or `kernel`.
    pub path: String,
    /// Names of the nodes that executed the program.
    pub nodes: Vec<String>,
    /// Number of functions that a branch reached.
    pub reached: u64,
    /// Number of functions of the program.
    pub functions_all: u64,
    /// Number of reached places.
    pub places: u64,
    /// True if the program has debug information, so that source lines are known.
    pub has_lines: bool,
    /// Reached functions, in ascending order of their branches.
    pub functions: Vec<Function>,
}

/// Reached function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Demangled name. `None` if neither the program nor its debug information names the function.
    pub name: Option<String>,
    /// First address, as the program's file states it.
    pub address: u64,
    /// Source file and line of the function's first instruction, as `FILE:LINE`.
    pub line: Option<String>,
    /// Number of reached places in the function.
    pub places: u64,
    /// Number of replayed branches that reached the function.
    pub branches: u64,
    /// Lowest number of a replayed branch that reached the function.
    pub first: u64,
    /// True if no branch without a finding reached the function, and some replayed branch has no finding.
    pub only_failing: bool,
}

/// Code that branches with a finding reached, and no branch without a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingCode {
    /// Number of the finding.
    pub id: u32,
    /// Violated property.
    pub property: String,
    /// Signature of the finding.
    pub signature: String,
    /// Number of replayed branches whose timeline shows the finding.
    pub branches: u64,
    /// The code: programs of images before the kernel, then in descending order of branches.
    pub places: Vec<FailingPlace>,
    /// Number of such functions and lines, including those that `places` omits.
    pub places_count: u64,
}

/// Function, or code at a line of a function, that only failing branches reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailingPlace {
    /// Path of the program in its image, or `kernel`.
    pub program: String,
    /// Demangled name of the function. `None` if it is unknown.
    pub function: Option<String>,
    /// Function that the compiler has inlined at this place. `None` if there is none.
    pub inlined: Option<String>,
    /// First address of the code, as the program's file states it.
    pub address: u64,
    /// Source file and line, as `FILE:LINE`.
    pub line: Option<String>,
    /// True if only failing branches reached the whole function.
    pub whole_function: bool,
    /// Number of branches with the finding that reached the code.
    pub branches: u64,
}

/// Reason why a file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachedCodeError {
    /// The file is not JSON, or the JSON lacks a field or has a field of another type.
    #[error("{0}")]
    Json(String),
    /// The file has another format version.
    #[error("format version {0}; this Everett reads format version {SCHEMA_VERSION}")]
    Version(u64),
    /// A value is out of its bounds.
    #[error("{0}")]
    Bound(&'static str),
}

impl ReachedCode {
    /// Parses the contents of a file.
    ///
    /// # Errors
    /// Returns an error if the text is not the JSON of reached code, if it has another format version, or if a value is
    /// out of bounds.
    pub fn parse(text: &str) -> Result<ReachedCode, ReachedCodeError> {
        let json = |error: serde_json::Error| ReachedCodeError::Json(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
        match value.get("schema_version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(SCHEMA_VERSION) => {
                return Err(ReachedCodeError::Version(version));
            }
            _ => {}
        }
        let code: ReachedCode = serde_json::from_value(value).map_err(json)?;
        code.check()?;
        Ok(code)
    }

    /// Serializes the reached code to the contents of a file.
    ///
    /// # Errors
    /// Returns an error if serialization fails. No value is known to cause this.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    fn check(&self) -> Result<(), ReachedCodeError> {
        let bound =
            |is_good: bool, problem| if is_good { Ok(()) } else { Err(ReachedCodeError::Bound(problem)) };
        bound(self.branches <= self.branches_all, "branches: more were replayed than there are")?;
        bound(self.passing <= self.branches, "passing: more branches pass than were replayed")?;
        bound(self.programs.len() <= PROGRAMS_MAX, "programs: there are too many")?;
        let functions: usize = self.programs.iter().map(|program| program.functions.len()).sum();
        bound(functions <= ALL_FUNCTIONS_MAX, "programs: there are too many functions")?;
        for program in &self.programs {
            bound(program.functions.len() <= FUNCTIONS_MAX, "programs: one has too many functions")?;
            bound(program.nodes.len() <= NODES_MAX, "programs: one has too many nodes")?;
            bound(
                program.reached <= program.functions_all,
                "programs: more functions are reached than exist",
            )?;
            let possible = program
                .functions
                .iter()
                .all(|function| function.branches <= self.branches && function.first < self.branches_all);
            bound(possible, "programs: a function has an impossible branch")?;
        }
        bound(self.findings.len() <= FINDINGS_MAX, "findings: there are too many")?;
        for finding in &self.findings {
            bound(finding.branches <= self.branches, "findings: one has too many branches")?;
            bound(finding.places.len() <= PLACES_MAX, "findings: one has too many places")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        let name = Some("f".to_owned());
        Function { name, address: 1, line: None, places: 1, branches: 1, first: 0, only_failing: false }
    }

    fn code() -> ReachedCode {
        let text = || "x".to_owned();
        let program = Program {
            path: text(),
            nodes: vec![text()],
            reached: 1,
            functions_all: 2,
            places: 1,
            has_lines: false,
            functions: vec![function()],
        };
        let place = FailingPlace {
            program: text(),
            function: None,
            inlined: None,
            address: 1,
            line: None,
            whole_function: true,
            branches: 1,
        };
        let finding = FindingCode {
            id: 1,
            property: text(),
            signature: text(),
            branches: 1,
            places: vec![place],
            places_count: 1,
        };
        ReachedCode {
            schema_version: SCHEMA_VERSION,
            identity: text(),
            seed: Seed::new(1),
            branches: 2,
            branches_all: 3,
            passing: 1,
            why: ReplaysEnd::Done,
            programs: vec![program],
            programs_count: 1,
            findings: vec![finding],
        }
    }

    fn refused(change: &dyn Fn(&mut ReachedCode)) -> String {
        let mut code = code();
        change(&mut code);
        ReachedCode::parse(&code.json().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn files_out_of_bounds_are_refused() {
        assert_eq!(ReachedCode::parse(&code().json().unwrap()).unwrap(), code());
        assert!(refused(&|it| it.schema_version = 2).contains("format version 2"));
        assert!(refused(&|it| it.branches = 4).starts_with("branches"));
        assert!(refused(&|it| it.passing = 3).starts_with("passing"));
        assert!(
            refused(&|it| it.programs = vec![it.programs[0].clone(); PROGRAMS_MAX + 1]).contains("too many")
        );
        let functions =
            |count: usize| move |it: &mut ReachedCode| it.programs[0].functions = vec![function(); count];
        assert!(refused(&functions(FUNCTIONS_MAX + 1)).contains("one has too many functions"));
        let all = |it: &mut ReachedCode| {
            it.programs[0].functions = vec![function(); FUNCTIONS_MAX];
            it.programs = vec![it.programs[0].clone(); ALL_FUNCTIONS_MAX / FUNCTIONS_MAX + 1];
        };
        assert!(refused(&all).contains("there are too many functions"));
        assert!(refused(&|it| it.programs[0].reached = 3).contains("than exist"));
        assert!(refused(&|it| it.programs[0].functions[0].first = 3).contains("impossible branch"));
        assert!(refused(&|it| it.programs[0].nodes = vec![String::new(); NODES_MAX + 1]).contains("nodes"));
        assert!(
            refused(&|it| it.findings = vec![it.findings[0].clone(); FINDINGS_MAX + 1]).contains("too many")
        );
        let places = |it: &mut ReachedCode| {
            it.findings[0].places = vec![it.findings[0].places[0].clone(); PLACES_MAX + 1];
        };
        assert!(refused(&places).contains("too many places"));
        assert!(ReachedCode::parse("{}").is_err() && ReachedCode::parse("[").is_err());
    }
}
