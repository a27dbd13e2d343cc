//! The SDK in guests: its files, its environment variables and the collector. The collector is a program that collects
//! the lines that a workload writes through the SDK.
//!
//! Guests of worlds without the section `[sdk]` get nothing from this file, because an extra file or process changes
//! the trail.

use std::collections::BTreeMap;

use everett_guest_image::sdk::{COLLECTOR_PATH, LIBRARY_PATH};
use everett_protocol as protocol;
use everett_protocol::limits::PUT_FILE_BYTES_MAX;
use everett_world_file as world_file;

use crate::guest::programs::{COLLECTOR, LIBRARY};

/// Environment variable with the output folder of test commands.
pub(crate) const OUTPUT_VARIABLE: &str = "ANTITHESIS_OUTPUT_DIR";
/// Output folder of test commands.
pub(crate) const OUTPUT_FOLDER: &str = "/tmp/antithesis";
/// Environment variable with the output file of programs that cannot load the SDK's library, e.g. static ones.
pub(crate) const LOCAL_VARIABLE: &str = "ANTITHESIS_SDK_LOCAL_OUTPUT";
/// Environment variable with the path of a program that requests quiet periods, i.e. pauses without faults.
pub(crate) const STOP_FAULTS_VARIABLE: &str = "ANTITHESIS_STOP_FAULTS";
/// Time limit for the start of the collector, in milliseconds of guest time.
const COLLECTOR_LIMIT_MS: u64 = 60_000;

/// The SDK in a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Sdk {
    /// Command that starts the collector. The command ends as soon as the collector can accept lines.
    pub collector: protocol::Exec,
    /// Time limit from ready services to the SDK's "setup complete" line, in nanoseconds of vtime. `None` if Everett
    /// does not wait for this line.
    pub setup_timeout_ns: Option<u64>,
}

/// Returns the SDK settings of a node.
pub(crate) fn of_node(sdk: &world_file::Sdk) -> Sdk {
    let argv = vec![COLLECTOR_PATH.to_owned(), "--collect".to_owned()];
    Sdk {
        collector: protocol::Exec { limit_ms: Some(COLLECTOR_LIMIT_MS), ..protocol::Exec::new(argv) },
        setup_timeout_ns: sdk.setup.then_some(sdk.setup_timeout_ns),
    }
}

/// Returns the library and the collector, as pieces of files that the agent (Everett's program in the guest) writes.
pub(crate) fn files() -> Vec<protocol::PutFile> {
    let file = |path: &'static str, mode: u32, content: &'static [u8]| {
        let piece = move |(number, data): (usize, &[u8])| protocol::PutFile {
            path: path.to_owned(),
            mode,
            owner: None,
            append: number > 0,
            data: protocol::Bytes(data.to_vec()),
        };
        content.chunks(PUT_FILE_BYTES_MAX).enumerate().map(piece)
    };
    file(LIBRARY_PATH, 0o644, LIBRARY).chain(file(COLLECTOR_PATH, 0o755, COLLECTOR)).collect()
}

/// Returns the SDK's environment variables for the service, driver or check `unit`.
pub(crate) fn variables(unit: &str) -> BTreeMap<String, String> {
    // Each unit has its own file, because some libraries truncate the file when they start.
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let local: String = unit.chars().map(plain).collect();
    BTreeMap::from([
        (OUTPUT_VARIABLE.to_owned(), OUTPUT_FOLDER.to_owned()),
        (LOCAL_VARIABLE.to_owned(), format!("{OUTPUT_FOLDER}/{local}.local.jsonl")),
        (STOP_FAULTS_VARIABLE.to_owned(), COLLECTOR_PATH.to_owned()),
    ])
}
