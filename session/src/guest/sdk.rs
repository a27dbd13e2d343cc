//! The SDK in guests: files, variables and the collector of its lines.
//!
//! A world without `[sdk]` gets none of them, because a file or a process more is another trail.

use std::collections::BTreeMap;

use everett_guest_image::sdk::{COLLECTOR_PATH, LIBRARY_PATH};
use everett_protocol as protocol;
use everett_protocol::limits::PUT_FILE_BYTES_MAX;
use everett_world_file as world_file;

use crate::guest::programs::{COLLECTOR, LIBRARY};

/// Environment variable with the output folder, for commands of a test template.
pub(crate) const OUTPUT_VARIABLE: &str = "ANTITHESIS_OUTPUT_DIR";
/// Output folder for commands of a test template.
pub(crate) const OUTPUT_FOLDER: &str = "/tmp/antithesis";
/// Environment variable with the file to which programs write if they cannot load the library, such as static ones.
pub(crate) const LOCAL_VARIABLE: &str = "ANTITHESIS_SDK_LOCAL_OUTPUT";
/// Environment variable with the program that asks for quiet periods.
pub(crate) const STOP_FAULTS_VARIABLE: &str = "ANTITHESIS_STOP_FAULTS";
/// Time limit for the start of the collector, in milliseconds of guest time.
const COLLECTOR_LIMIT_MS: u64 = 60_000;

/// The SDK in a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Sdk {
    /// Command that starts the collector. It ends when the collector takes lines.
    pub collector: protocol::Exec,
    /// Time from ready services to a complete setup, in nanoseconds of vtime. `None` if the setup is not waited for.
    pub setup_timeout_ns: Option<u64>,
}

/// Returns the SDK of a node.
pub(crate) fn of_node(sdk: &world_file::Sdk) -> Sdk {
    let argv = vec![COLLECTOR_PATH.to_owned(), "--collect".to_owned()];
    Sdk {
        collector: protocol::Exec { limit_ms: Some(COLLECTOR_LIMIT_MS), ..protocol::Exec::new(argv) },
        setup_timeout_ns: sdk.setup.then_some(sdk.setup_timeout_ns),
    }
}

/// Returns the library and the collector as the agent gets them.
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

/// Returns the environment variables of a program; `unit` is its name.
pub(crate) fn variables(unit: &str) -> BTreeMap<String, String> {
    // Each unit has a file of its own: some libraries begin with an empty one.
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let local: String = unit.chars().map(plain).collect();
    BTreeMap::from([
        (OUTPUT_VARIABLE.to_owned(), OUTPUT_FOLDER.to_owned()),
        (LOCAL_VARIABLE.to_owned(), format!("{OUTPUT_FOLDER}/{local}.local.jsonl")),
        (STOP_FAULTS_VARIABLE.to_owned(), COLLECTOR_PATH.to_owned()),
    ])
}
