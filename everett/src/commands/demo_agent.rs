//! Compares this program's agent with the agent that made the demo's trails in the README.
//!
//! The agent is PID 1 in each guest, so trails depend on its bytes. Its bytes depend on the tools that built it.

use anyhow::Context;
use everett_guest_image::agent::AGENT;
use serde::Deserialize;

/// Record of the agent that made the trails in the README.
const SEEN: &str = include_str!("../../../examples/redis-sentinel/demo.agent");

/// Record of an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// BLAKE3 of the agent's bytes, in hexadecimal digits.
    blake3: String,
    /// Tools that built the agent, as they name themselves in the agent's bytes.
    tools: Vec<String>,
}

/// Returns a clause that says how this program's agent differs from the README's. `None` if the two are equal.
pub(super) fn difference() -> anyhow::Result<Option<String>> {
    let seen: Record = toml::from_str(SEEN).context("invalid record of the demo's agent")?;
    Ok(seen.difference(AGENT))
}

impl Record {
    /// Returns a clause that says how `agent` differs from the recorded agent. It names the recorded tools that did not
    /// build `agent`.
    fn difference(&self, agent: &[u8]) -> Option<String> {
        if blake3::hash(agent).to_hex().as_str() == self.blake3 {
            return None;
        }
        let others = self.tools.iter().filter(|tool| !contains(agent, tool)).cloned().collect::<Vec<_>>();
        let built = if others.is_empty() {
            String::new()
        } else {
            format!(", which was built with {}", others.join(" and "))
        };
        Some(format!("the guests' agent has other bytes than the README's{built}"))
    }
}

/// True if the bytes of a program contain `words`.
fn contains(program: &[u8], words: &str) -> bool {
    !words.is_empty() && program.windows(words.len()).any(|window| window == words.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_agent_is_named_with_the_tools_of_the_recorded_one() {
        let tools = ["rustc version 1.95.0 (5 d)", "GLIBC 2.36"].map(str::to_owned).to_vec();
        let own = b"\0rustc version 1.95.0 (5 d)\0GLIBC 2.36\0";
        let seen = Record { blake3: blake3::hash(own).to_hex().to_string(), tools };
        assert_eq!(seen.difference(own), None);
        let said = |agent: &[u8]| seen.difference(agent).expect("a difference");
        let begin = "the guests' agent has other bytes than the README's";
        assert_eq!(said(b"\0rustc version 1.95.0 (5 d)\0GLIBC 2.36 "), begin);
        assert_eq!(
            said(b"\0rustc version 1.96.0 (6 e)\0GLIBC 2.36\0"),
            format!("{begin}, which was built with rustc version 1.95.0 (5 d)")
        );
        assert_eq!(
            said(b""),
            format!("{begin}, which was built with rustc version 1.95.0 (5 d) and GLIBC 2.36")
        );
    }

    #[test]
    fn the_record_is_read() {
        let seen: Record = toml::from_str(SEEN).unwrap();
        assert!(blake3::Hash::from_hex(&seen.blake3).is_ok(), "{}", seen.blake3);
        assert!(seen.tools[0].starts_with("rustc version "), "{:?}", seen.tools);
        assert!(difference().is_ok());
    }
}
