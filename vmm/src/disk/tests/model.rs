//! Tests random interleavings of writes, flushes, power losses, resets and moments against an oracle that keeps a list
//! of all writes.

use std::collections::BTreeMap;

use everett_snapshot::Pool;
use proptest::prelude::*;

use super::*;

/// Maximum number of requests for which the test checks a power loss in the mode [`LossMode::Requests`], in which each
/// request survives completely or not at all. The check tries all subsets of the requests.
const SUBSETS_MAX: usize = 10;

/// Sectors that a request writes, in order, with the value of each.
type Writes = Vec<(u64, u8)>;

/// Everything that was written since the last power loss.
#[derive(Debug, Clone)]
struct Oracle {
    /// Content of the disk after the last power loss.
    first: Vec<u8>,
    /// Completed writes in order, each with its number and the values that it wrote.
    completed: Vec<(u64, Writes)>,
    /// Completed flushes cover all writes with numbers below this number.
    covered: u64,
    /// Writes that were submitted and have not completed, in order.
    in_flight: Vec<(Vec<Change>, Writes)>,
    /// One write number for each flush that has not completed. When the flush completes, it covers all writes with
    /// lower numbers.
    flushes: Vec<u64>,
    /// True after a reset. At the reset, each request in flight may have written only some of its sectors. The oracle
    /// does not know which sectors, and therefore allows more outcomes than are legal.
    guesses: bool,
}

impl Oracle {
    fn new(first: Vec<u8>) -> Oracle {
        let (completed, in_flight, flushes) = (Vec::new(), Vec::new(), Vec::new());
        Oracle { first, completed, covered: 0, in_flight, flushes, guesses: false }
    }
    /// Returns the disk's content after `writes`.
    fn after<'a>(&self, writes: impl IntoIterator<Item = &'a Writes>) -> Vec<u8> {
        let mut disk = self.first.clone();
        writes.into_iter().flatten().for_each(|&(sector, value)| disk[sector as usize] = value);
        disk
    }
    fn newest(&self) -> Vec<u8> {
        self.after(self.completed.iter().map(|(_, writes)| writes))
    }
    fn durable(&self) -> Vec<u8> {
        let covered = self.completed.iter().filter(|(number, _)| *number < self.covered);
        self.after(covered.map(|(_, writes)| writes))
    }
    /// Returns the writes that no flush covers. Writes in flight come last.
    fn open(&self) -> Vec<&Writes> {
        let uncovered = self.completed.iter().filter(|(number, _)| *number >= self.covered);
        uncovered.map(|(_, writes)| writes).chain(self.in_flight.iter().map(|(_, writes)| writes)).collect()
    }
    /// Returns the values that each sector may hold after a power loss.
    fn legal(&self) -> Vec<BTreeSet<u8>> {
        let mut legal: Vec<BTreeSet<u8>> = self.durable().into_iter().map(|value| [value].into()).collect();
        self.open().into_iter().flatten().for_each(|&(sector, value)| {
            legal[sector as usize].insert(value);
        });
        legal
    }

    /// True if the mode allows this content after a power loss.
    fn kept_promise(&self, mode: LossMode, disk: &[u8]) -> bool {
        let (durable, newest, open) = (self.durable(), self.newest(), self.open());
        let after = |writes: &mut dyn Iterator<Item = (u64, u8)>| {
            let mut disk = durable.clone();
            writes.for_each(|(sector, value)| disk[sector as usize] = value);
            disk
        };
        match mode {
            LossMode::AllLost => disk == durable,
            _ if self.guesses => true,
            LossMode::AllKept => {
                let mut legal: Vec<BTreeSet<u8>> = newest.iter().map(|&value| [value].into()).collect();
                for (_, writes) in &self.in_flight {
                    writes.iter().for_each(|&(sector, value)| {
                        legal[sector as usize].insert(value);
                    });
                }
                disk.iter().zip(legal).all(|(value, legal)| legal.contains(value))
            }
            LossMode::Prefix => {
                let order: Writes = open.into_iter().flatten().copied().collect();
                (0..=order.len()).any(|end| after(&mut order[..end].iter().copied()) == disk)
            }
            LossMode::Requests if open.len() <= SUBSETS_MAX => (0..1u32 << open.len()).any(|subset| {
                let kept = open.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
                after(&mut kept.flat_map(|(_, writes)| writes.iter().copied())) == disk
            }),
            LossMode::Requests | LossMode::Sectors => true,
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Submit {
        first: u64,
        sectors: u64,
        value: u8,
    },
    /// Discards two ranges in one request.
    Discard {
        first: u64,
        sectors: u64,
        other: u64,
    },
    Complete(usize),
    Flush,
    /// The flush with this index completes, or fails.
    FlushDone(usize, bool),
    PowerLoss {
        seed: u64,
        tear: bool,
    },
    Reset {
        seed: u64,
    },
    Moment,
    Restore {
        which: usize,
        through_a_file: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..64, 1u64..20, any::<u8>()).prop_map(|(first, sectors, value)| Step::Submit { first, sectors, value }),
        1 => (0u64..64, 1u64..20, 0u64..64).prop_map(|(first, sectors, other)| Step::Discard { first, sectors, other }),
        6 => any::<usize>().prop_map(Step::Complete),
        2 => Just(Step::Flush),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(which, done)| Step::FlushDone(which, done)),
        2 => (any::<u64>(), prop::bool::weighted(0.2)).prop_map(|(seed, tear)| Step::PowerLoss { seed, tear }),
        1 => any::<u64>().prop_map(|seed| Step::Reset { seed }),
        1 => Just(Step::Moment),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(which, through_a_file)| Step::Restore { which, through_a_file }),
    ];
    proptest::collection::vec(step, 1..80)
}

/// A disk, a second disk with the same history but without moments, and the oracle.
#[derive(Clone)]
struct Model {
    disk: Disk,
    plain: Disk,
    oracle: Oracle,
}

impl Model {
    fn new(disk: &Disk) -> Model {
        let first = values(disk).into_iter().map(Option::unwrap).collect();
        Model { disk: disk.clone(), plain: disk.clone(), oracle: Oracle::new(first) }
    }
    fn sectors(&self) -> u64 {
        self.oracle.first.len() as u64
    }
    fn both<T: PartialEq + std::fmt::Debug>(&mut self, act: impl Fn(&mut Disk) -> T) -> T {
        let result = act(&mut self.disk);
        assert_eq!(result, act(&mut self.plain));
        result
    }

    fn step(&mut self, step: &Step, pool: &Pool, moments: &mut Vec<(DiskMoment, Model)>) {
        let end = self.sectors();
        match *step {
            Step::Submit { first, sectors, value } => {
                let first = first % end;
                let values: Vec<u8> =
                    (0..sectors.min(end - first)).map(|i| value.wrapping_add(i as u8 / 3)).collect();
                let writes = (first..).zip(values.iter().copied()).collect();
                self.oracle.in_flight.push((vec![fill(&self.disk, first, &values)], writes));
            }
            Step::Discard { first, sectors, other } => {
                let (first, other) = (first % end, other % end);
                let ranges = [(first, sectors.min(end - first)), (other, 1)];
                let changes =
                    ranges.map(|(first, sectors)| zeroes(&self.disk, first, sectors, other % 2 == 0));
                let writes =
                    ranges.iter().flat_map(|&(first, sectors)| (first..first + sectors).map(|s| (s, 0)));
                self.oracle.in_flight.push((changes.to_vec(), writes.collect()));
            }
            Step::Complete(which) if !self.oracle.in_flight.is_empty() => {
                let which = which % self.oracle.in_flight.len();
                let (changes, writes) = self.oracle.in_flight.remove(which);
                let number = self.both(|disk| disk.complete(&changes));
                self.oracle.completed.push((number, writes));
            }
            Step::Flush => self.oracle.flushes.push(self.disk.completed()),
            Step::FlushDone(which, done) if !self.oracle.flushes.is_empty() => {
                let which = which % self.oracle.flushes.len();
                let covers = self.oracle.flushes.remove(which);
                if done {
                    self.both(|disk| disk.flush(covers));
                    self.oracle.covered = self.oracle.covered.max(covers);
                }
            }
            Step::PowerLoss { seed, tear } => self.power_loss(seed, tear),
            Step::Reset { seed } => {
                let in_flight = std::mem::take(&mut self.oracle.in_flight);
                let changes: Vec<_> = in_flight.iter().map(|(changes, _)| changes.clone()).collect();
                self.both(|disk| disk.abort(&mut rng(seed), &changes));
                self.oracle.flushes.clear();
                self.oracle.guesses = true;
                // The oracle records every request that was in flight as completed, even if the request wrote nothing.
                // Then the oracle records a write of the disk's current content. A later power loss may therefore give
                // a sector the value of any of these requests.
                let number = self.disk.completed().saturating_sub(1);
                let mut legal: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
                let newest = self.oracle.newest();
                for (_, writes) in in_flight {
                    for &(sector, value) in &writes {
                        legal.entry(sector).or_default().extend([value, newest[sector as usize]]);
                    }
                    self.oracle.completed.push((number, writes));
                }
                let now: Writes = (0..).zip(values(&self.disk).into_iter().map(Option::unwrap)).collect();
                for &(sector, value) in &now {
                    let before = [newest[sector as usize]].into();
                    assert!(legal.get(&sector).unwrap_or(&before).contains(&value));
                }
                self.oracle.completed.push((number, now));
            }
            Step::Moment => {
                let moment = self.disk.moment(pool);
                moments.push((moment, self.clone()));
            }
            Step::Restore { which, through_a_file } if !moments.is_empty() => {
                let (moment, then) = moments[which % moments.len()].clone();
                let mut disk = self.disk.clone();
                let mut moment = moment;
                if through_a_file {
                    moment = DiskMoment::from_parts(&moment.to_parts()).unwrap();
                    assert_eq!(moment.make.difference(&disk.make()), None);
                }
                disk.restore(&moment);
                *self = Model { disk, ..then };
            }
            _ => {}
        }
        let newest: Vec<_> = self.oracle.newest().into_iter().map(Some).collect();
        assert_eq!(values(&self.disk), newest, "reads return the newest version");
    }

    fn power_loss(&mut self, seed: u64, tear: bool) {
        let options = PowerLossOptions { tear_sectors: tear };
        let changes: Vec<_> = self.oracle.in_flight.iter().map(|(changes, _)| changes.clone()).collect();
        let loss = self.both(|disk| disk.power_loss(&mut rng(seed), options, &changes));
        assert_eq!(self.disk.cached_bytes(), 0);
        assert_eq!(loss.in_flight.requests, changes.len() as u64);
        assert!(tear || loss.torn == 0);

        let (legal, found) = (self.oracle.legal(), values(&self.disk));
        for (sector, (legal, value)) in legal.iter().zip(&found).enumerate() {
            assert!(value.is_none_or(|value| legal.contains(&value)), "{sector}: {value:?} of {legal:?}");
        }
        assert_eq!(found.iter().filter(|value| value.is_none()).count() as u64, loss.torn);
        if loss.torn > 0 {
            // After torn sectors, the model starts from new content, because the oracle assumes whole sectors.
            let content = vec![7; self.disk.len() as usize];
            self.both(|disk| disk.write(0, &content));
            self.oracle = Oracle::new(vec![7; found.len()]);
            return;
        }
        let found: Vec<u8> = found.into_iter().flatten().collect();
        let (durable, newest) = (self.oracle.durable(), self.oracle.newest());
        if !tear {
            match loss.mode {
                Some(mode) => assert!(self.oracle.kept_promise(mode, &found), "{mode:?}"),
                None => assert_eq!(found, newest),
            }
        }
        if changes.is_empty() && !tear && !self.oracle.guesses {
            let count =
                |differs: &dyn Fn(usize) -> bool| (0..found.len()).filter(|&i| differs(i)).count() as u64;
            assert_eq!(loss.lost_newest, count(&|i| found[i] != newest[i]));
            assert_eq!(loss.in_between, count(&|i| found[i] != newest[i] && found[i] != durable[i]));
            assert_eq!(loss.unflushed, count(&|i| legal[i].len() > 1));
            assert_eq!(loss.lost_anything(), found != newest);
        }
        self.oracle = Oracle::new(found);
    }
}

fn run(disk: &Disk, steps: &[Step]) {
    let pool = Pool::default();
    let (mut model, mut moments) = (Model::new(disk), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        model.step(step, &pool, &mut moments);
        if number % 3 == 0 {
            model.disk.digest();
        }
        if number % 7 == 0 {
            model.disk.moment(&pool);
        }
    }
    assert_eq!(model.disk.digest(), model.plain.digest(), "observers must change nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn small_sectors(steps in steps()) {
        run(&Disk::zeroed(3 * BLOCK + SECTOR).unwrap(), &steps);
    }

    #[test]
    fn large_sectors(steps in steps()) {
        run(&Disk::zeroed(6 * BLOCK).unwrap().with_sectors(SectorSize::Bytes4096).unwrap(), &steps);
    }

    #[test]
    fn a_base_with_content(steps in steps()) {
        let content: Vec<u8> = (0..5 * BLOCK).map(|i| (i / SECTOR) as u8).collect();
        run(&Disk::from_bytes(content.into()).unwrap(), &steps);
    }
}
