//! The agent (Everett's program in the guests) that made the trails and the digest of the demo in the README.

use std::fs;
use std::path::Path;

use everett_guest_image::agent::AGENT;

use crate::trials::{Lacking, Ran};

/// The file `demo.agent` names build tools and a BLAKE3 hash. If these tools built this agent, it must have this hash.
/// If this test fails, the README's trails and its digest are out of date.
pub(crate) fn the_recorded_tools_build_the_recorded_agent() -> Ran {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/redis-sentinel/demo.agent");
    let record: toml::Table = fs::read_to_string(&file).unwrap().parse().unwrap();
    for tool in record["tools"].as_array().unwrap() {
        let words = tool.as_str().unwrap();
        if !AGENT.windows(words.len()).any(|window| window == words.as_bytes()) {
            return Err(Lacking::new(format!("another tool than {words} built the agent")));
        }
    }
    let found = blake3::hash(AGENT).to_hex().to_string();
    assert_eq!(record["blake3"].as_str(), Some(found.as_str()), "{}: record the new agent", file.display());
    Ok(())
}
