//! Tests of run directories. This file has their helpers, e.g. a simulated world in which the path of a branch decides
//! the branch's result.

mod computed_by_hand;
mod concurrent_reader;
mod crash;
mod explored;
mod figures;
mod finished;
mod folders;
mod headers;
mod hostile;
mod older_formats;
mod power;
mod records;
pub(crate) mod sample;

use std::fs;
use std::num::NonZero;
use std::path::Path as File;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use everett_input::causes::with_causes;
use proptest::prelude::*;
use serde_json::json;
use tempfile::{TempDir, tempdir};

pub(crate) use sample::{ROOT_NS, delta, header, hit, record, state, tally};

use super::*;
use crate::composer::Counts;
use crate::coverage::{Delta, Dictionary, Point};
use crate::search::strategy::Novelty;
use crate::search::{Choice, ForkPoint, Ledger, Next, Search, Tree};

/// Returns records of branches that start at the root moment.
fn row(branches: u64) -> Vec<Record> {
    (0..branches).map(|choice| record(choice, None, &format!("{ROOT_NS}.{}", choice + 1))).collect()
}

/// Runs a chosen branch in the simulated world, and returns the branch's record. Only the costs on the host depend on
/// the worker.
fn run(choice: &Choice, worker: u64) -> Record {
    let hash = blake3::hash(choice.path.to_string().as_bytes());
    let byte = |i: usize| u64::from(hash.as_bytes()[i]);
    let from = match choice.from {
        ForkPoint::Root => None,
        ForkPoint::After(number) => Some(number),
    };
    let begin = choice.path.forks().last().map_or(ROOT_NS, |fork| fork.vtime_ns);
    let end_ns = begin + 1 + byte(1);
    let points: Vec<_> =
        (0..byte(2) % 5).map(|i| (state(&(byte(3 + i as usize) % 60).to_string()), begin + i)).collect();
    let hits = (0..byte(9) % 3).map(|i| hit("p", &(byte(10 + i as usize) % 5).to_string(), begin)).collect();
    Record {
        open_ns: Some(end_ns).filter(|_| byte(0) % 4 > 0),
        end_ns,
        instructions: byte(20) * 1000,
        final_phase: (byte(21) % 2 == 0).then(|| FinalPhase {
            calm: Span { instructions: byte(20) * 100, vtime_ns: byte(30) },
            checks: Span { instructions: byte(20) * 200, vtime_ns: byte(31) },
        }),
        executed: worker,
        cpu_ns: worker * 77,
        trail: hash.to_hex().to_string(),
        messages: byte(26),
        checked: byte(21) % 2 == 0,
        delta: delta(&points),
        hits,
        sometimes: (0..byte(22) % 3).map(|i| format!("s{i}")).collect(),
        commands: tally(&[("anytime_a", [byte(27) % 3, byte(28) % 2, byte(29) % 2])]),
        history: Some(HistoryCount { operations: byte(23), ..HistoryCount::default() })
            .filter(|_| byte(24) % 2 == 0),
        broken: Some("a host's trouble".to_owned()).filter(|_| byte(25) % 16 == 0),
        ..record(choice.number, from, &choice.path.to_string())
    }
}

/// Runs an exploration, and stops after `most` new branches. The generator seeded with `dice` decides which running
/// branch ends next. Recorded branches are not run again.
fn explore(
    branches: u64,
    workers: usize,
    dice: u64,
    mut journal: Option<&mut Journal>,
    most: usize,
) -> (Tree, Merged) {
    let header = header();
    let mut dice = ChaCha20Rng::seed_from_u64(dice);
    let in_flight = NonZero::new(header.in_flight).unwrap();
    let dictionary =
        journal.as_ref().map_or_else(Dictionary::default, |journal| journal.dictionary().clone());
    let merged = Merged::new(dictionary.clone());
    let mut search =
        Search::new(header.seed, header.root_ns, in_flight, branches, Novelty::default(), merged);
    let mut running: Vec<Choice> = Vec::new();
    let mut new = 0;
    loop {
        match if running.len() < workers { search.choose() } else { Next::Wait(0) } {
            Next::Run(choice) => {
                let recorded = journal.as_ref().and_then(|journal| journal.recorded(&choice).unwrap());
                match recorded {
                    Some(input) => search.deliver(choice.number, input),
                    None => running.push(choice),
                }
                continue;
            }
            Next::Over if running.is_empty() => break,
            Next::Wait(_) | Next::Over => {}
        }
        if new == most {
            break;
        }
        new += 1;
        let done = running.swap_remove(dice.next_u64() as usize % running.len());
        let record = run(&done, dice.next_u64() % 1000);
        let input = match &mut journal {
            Some(journal) => journal.append(record).unwrap(),
            None => MergeInput::new(record, &dictionary).unwrap(),
        };
        search.deliver(done.number, input);
    }
    search.finish(u64::MAX)
}

/// Returns a run directory with these records.
fn written(records: &[Record]) -> TempDir {
    let folder = tempdir().unwrap();
    let mut journal = Journal::create(folder.path(), &header()).unwrap();
    append(&mut journal, records);
    folder
}

fn append(journal: &mut Journal, records: &[Record]) {
    for record in records {
        journal.append(record.clone()).unwrap();
    }
}

fn branches(run: &File) -> std::path::PathBuf {
    run.join(names::BRANCHES)
}

/// Returns the records of all branches, in the order in which the search chose the branches. Panics if the record of
/// a branch before the last one is missing.
fn all(run: &File) -> Vec<Record> {
    let reading = Reading::open(run).unwrap();
    let records: Vec<Record> = (0..).map_while(|choice| reading.get(choice).unwrap()).collect();
    assert_eq!(records.len() as u64, reading.len(), "a choice is missing");
    records
}

/// Resumes a run that must be intact or repairable.
fn resumed(run: &File) -> Journal {
    Journal::resume(run, &header()).unwrap()
}

/// Returns an error's message as operators see it, without the path of the run directory.
fn message(error: &RunError, run: &File) -> String {
    with_causes(error).replace(&format!("{}/", run.display()), "").replace(&run.display().to_string(), "RUN")
}
