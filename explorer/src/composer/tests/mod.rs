//! Tests of the composer, which decides when test commands start, with helpers for templates, random streams and steps.

mod caller;
mod drawn;
mod ends;
mod examples;
mod rules;
mod stored;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

use super::limits::*;
use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn template(files: &[(u16, &str)]) -> Template {
    Template::new(files.iter().map(|(node, name)| (*node, (*name).to_owned()))).unwrap()
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Returns a random stream, and a composer that has drawn from it to begin a timeline at vtime 0.
fn begun(template: &Template, seed: u64) -> (ChaCha20Rng, Composer<'_>) {
    let mut rng = rng(seed);
    let composer = Composer::begin(template, 0, &mut rng);
    (rng, composer)
}

/// Returns the started commands, in the order of their starts.
fn starts(acts: &[Act]) -> Vec<Start> {
    let start = |act: &Act| if let Act::Start(start) = act { Some(*start) } else { None };
    acts.iter().filter_map(start).collect()
}

/// Advances to the vtime at which the composer next has something to do, and returns this vtime and the composer's
/// actions.
fn step(composer: &mut Composer<'_>, rng: &mut ChaCha20Rng) -> (u64, Vec<Act>) {
    let due_ns = composer.due().expect("something is due");
    (due_ns, composer.act(due_ns, rng))
}

/// Repeats [`step`] until a command starts.
fn next_start(composer: &mut Composer<'_>, rng: &mut ChaCha20Rng) -> (u64, Start) {
    loop {
        let (now_ns, acts) = step(composer, rng);
        match starts(&acts).as_slice() {
            [] => {}
            [start] => return (now_ns, *start),
            more => panic!("{more:?} are started at once"),
        }
    }
}
