//! Makes records of branches as an exploration writes them.

use everett_explorer::run::{Evidence, Header, Hit, Record};
use everett_streams::Seed;

/// Returns the header of a run of a world with one node.
pub(crate) fn header(identity: &str, world_file: String) -> Header {
    Header {
        identity: identity.to_owned(),
        world_file,
        seed: Seed::new(7),
        root_ns: 1_000,
        segment_ns: 2_000_000_000,
        horizon_ns: 30_000_000_000,
        nodes: vec!["n1".to_owned()],
        ..Header::default()
    }
}

/// Returns the record of a branch that forked at 1 us and has these findings.
pub(crate) fn record(choice: u64, hits: Vec<Hit>) -> Record {
    Record {
        choice,
        path: format!("1000.{}", choice + 1).parse().unwrap(),
        end_ns: 1_000_001_000,
        instructions: 10,
        executed: 10,
        cpu_ns: 60_000_000_000,
        faults: 1,
        hits,
        ..Record::default()
    }
}

/// Returns a finding without evidence.
pub(crate) fn hit(property: &str, signature: &str, text: String) -> Hit {
    Hit {
        property: property.to_owned(),
        signature: signature.to_owned(),
        text,
        vtime_ns: 5_000,
        node: None,
        evidence: Evidence::default(),
    }
}
