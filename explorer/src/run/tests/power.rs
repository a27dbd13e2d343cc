//! Tests of power losses while a run directory is written: unsynced bytes survive, are lost, or survive in part, sector
//! by sector.

use std::io;
use std::sync::{Arc, Mutex};

use super::*;
use crate::expedition::{self, Aim, ExpeditionError, Job, SearchProgress, Workers};
use crate::run::media::Media;

/// Number of bytes that a disk writes completely or not at all.
const SECTOR: usize = 512;

/// File: the bytes that programs read, and the bytes that are durable.
#[derive(Debug, Default)]
struct Disk {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// File size beyond which writes fail. `None` for no limit.
    full_at: Option<usize>,
    /// True if syncs fail.
    sync_fails: bool,
    /// True if truncation fails.
    cut_fails: bool,
}

#[derive(Debug, Clone, Default)]
struct Recorder(Arc<Mutex<Disk>>);

impl Media for Recorder {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.0.lock().unwrap();
        let from = disk.seen.get(offset as usize..).unwrap_or_default();
        let most = bytes.len().min(from.len());
        bytes[..most].copy_from_slice(&from[..most]);
        Ok(most)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        let room = disk.full_at.map_or(usize::MAX, |most| most.saturating_sub(offset as usize));
        let (offset, written) = (offset as usize, bytes.len().min(room));
        let end = disk.seen.len().max(offset + written);
        disk.seen.resize(end, 0);
        disk.seen[offset..offset + written].copy_from_slice(&bytes[..written]);
        match written < bytes.len() {
            true => Err(io::Error::from(io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.cut_fails {
            return Err(io::Error::other("the disk does not answer"));
        }
        disk.seen.resize(length as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.sync_fails {
            return Err(io::Error::other("the disk does not answer"));
        }
        disk.durable = disk.seen.clone();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().seen.len() as u64)
    }
}

/// Effect of a power loss on the bytes that are not durable.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// All bytes are lost.
    All,
    /// Only the end of the file is lost. The number decides how many bytes are lost. Durable bytes are never lost.
    Torn(u64),
    /// The file keeps its length, and the bytes that are not durable become zero.
    Zeroes,
    /// This seed decides for each sector whether it was written before the power loss. The file either keeps its length
    /// or loses the zeros at its end. It never becomes shorter than the durable bytes.
    Sectors(u64),
}

impl Disk {
    fn after(&self, loss: Loss) -> Vec<u8> {
        let Disk { seen, durable, .. } = self;
        match loss {
            Loss::All => durable.clone(),
            Loss::Torn(dice) => {
                let least = durable.len().min(seen.len());
                seen[..least + dice as usize % (seen.len() - least + 1)].to_vec()
            }
            Loss::Zeroes => {
                let mut left = durable.clone();
                left.resize(seen.len().max(durable.len()), 0);
                left
            }
            Loss::Sectors(dice) => {
                let mut dice = ChaCha20Rng::seed_from_u64(dice);
                let mut left = Vec::new();
                for from in (0..seen.len()).step_by(SECTOR) {
                    let end = (from + SECTOR).min(seen.len());
                    let kept = dice.next_u64() % 2 == 0;
                    let of = |bytes: &[u8]| {
                        (from..end).map(|at| bytes.get(at).copied().unwrap_or(0)).collect::<Vec<u8>>()
                    };
                    left.extend(if kept { of(seen) } else { of(durable) });
                }
                if dice.next_u64() % 2 == 0 {
                    let end = left.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                    left.truncate(end.max(durable.len()));
                }
                left
            }
        }
    }
}

/// Returns a run directory, and its journal, which writes the records to `disk`.
fn on_disk(disk: &Recorder) -> (TempDir, Journal) {
    let folder = tempdir().unwrap();
    let mut journal = Journal::create(folder.path(), &header()).unwrap();
    journal.use_file(Arc::new(disk.clone()));
    (folder, journal)
}

/// After a power loss of any kind at any record, the run resumes with all durable records and ends with the same
/// digest.
#[test]
fn a_loss_of_power_at_every_record_costs_nothing_but_time() {
    // The run has more records than are written between two syncs, so some records are durable.
    let branches = limits::UNSYNCED_RECORDS_MAX + 70;
    let whole = explore(branches, 4, 7, None, usize::MAX).1.digest();
    let disk = Recorder::default();
    let (_folder, mut journal) = on_disk(&disk);
    let run = written(&[]);
    let (mut durable, mut cuts) = (0, 0);
    for most in 1..=branches as usize {
        // Each call adds one record. The search makes the same choices again, and reads recorded branches from the
        // journal instead of running them.
        explore(branches, 4, 7, Some(&mut journal), 1);
        assert_eq!(journal.len(), most as u64);
        durable =
            if (most as u64).is_multiple_of(limits::UNSYNCED_RECORDS_MAX) { most as u64 } else { durable };
        let losses = [Loss::All, Loss::Zeroes, Loss::Torn(most as u64 * 977)];
        let losses = losses.into_iter().chain((0..4).map(|i| Loss::Sectors(most as u64 * 10 + i)));
        for loss in losses {
            let left = disk.0.lock().unwrap().after(loss);
            fs::write(super::branches(run.path()), left).unwrap();
            let mut resumed = resumed(run.path());
            assert!(resumed.len() >= durable, "{most} {loss:?}: durable records survive");
            cuts += u64::from(resumed.cut().is_some());
            let (_, merged) = explore(branches, 3, 9, Some(&mut resumed), usize::MAX);
            assert_eq!(merged.digest(), whole, "{most} {loss:?}");
            drop(resumed);
            let read = Reading::open_merged(run.path()).unwrap().1;
            assert_eq!(read.digest(), whole, "{most} {loss:?}: the file, when read again");
        }
    }
    assert!(cuts > branches, "only {cuts} losses left a damaged record");
}

/// Four runs in a row end in a power loss. The run after each loss resumes from the bytes that the loss left. The fifth
/// run completes the exploration.
#[test]
fn losses_of_power_in_a_row() {
    let branches = 150;
    let whole = explore(branches, 4, 7, None, usize::MAX).1.digest();
    for dice in 0..20 {
        let mut left = Vec::new();
        for round in 0..5 {
            let run = written(&[]);
            fs::write(super::branches(run.path()), &left).unwrap();
            let mut journal = resumed(run.path());
            // Resuming has cut and synced the file, so all of its bytes are durable now.
            let now = fs::read(super::branches(run.path())).unwrap();
            let disk =
                Recorder(Arc::new(Mutex::new(Disk { seen: now.clone(), durable: now, ..Disk::default() })));
            journal.use_file(Arc::new(disk.clone()));
            let most = if round == 4 { usize::MAX } else { 40 };
            let (_, merged) = explore(branches, 4, dice * 7 + round, Some(&mut journal), most);
            if round == 4 {
                assert_eq!(merged.digest(), whole, "{dice}");
            }
            left = disk.0.lock().unwrap().after(Loss::Sectors(dice * 100 + round));
        }
    }
}

#[test]
fn errors_of_the_disk_are_reported() {
    let disk = Recorder::default();
    let (folder, mut journal) = on_disk(&disk);
    let records = row(9);
    append(&mut journal, &records[..3]);
    let length = journal.dictionary().len();
    disk.0.lock().unwrap().full_at = Some(disk.len().unwrap() as usize + 100);
    let error = journal.append(records[3].clone()).unwrap_err();
    assert_eq!(message(&error, folder.path()), "cannot write branches.bin: no storage space");
    assert_eq!((journal.len(), journal.dictionary().len()), (3, length), "nothing was added");
    // The disk has room again.
    disk.0.lock().unwrap().full_at = None;
    append(&mut journal, &records[3..5]);
    // After a failed sync the data may be lost, even if the next sync reports success.
    disk.0.lock().unwrap().sync_fails = true;
    let error = journal.sync().unwrap_err();
    assert_eq!(message(&error, folder.path()), "cannot sync branches.bin: the disk does not answer");
    disk.0.lock().unwrap().sync_fails = false;
    let refused = "branches.bin: an earlier sync failed, so nothing more is written";
    assert_eq!(message(&journal.sync().unwrap_err(), folder.path()), refused);
    assert_eq!(message(&journal.append(records[5].clone()).unwrap_err(), folder.path()), refused);
    let left = disk.0.lock().unwrap().seen.clone();
    let run = written(&[]);
    fs::write(branches(run.path()), left).unwrap();
    append(&mut resumed(run.path()), &records);
    assert_eq!(all(run.path()), records);
}

/// An append fails, and its partial record cannot be cut off at once. `finish` cuts the record off before it writes
/// `end.json`, the file that marks the end of a run. So a run that has ended has no damaged record.
#[test]
fn a_run_ends_with_whole_records() {
    let disk = Recorder::default();
    let (_folder, mut journal) = on_disk(&disk);
    append(&mut journal, &row(3));
    let whole = disk.len().unwrap();
    disk.0.lock().unwrap().full_at = Some(whole as usize + 100);
    disk.0.lock().unwrap().cut_fails = true;
    journal.append(row(4).remove(3)).unwrap_err();
    assert_eq!(disk.len().unwrap(), whole + 100);
    disk.0.lock().unwrap().cut_fails = false;
    journal.finish(&Merged::default().end(EndReason::Stopped, 0)).unwrap();
    assert_eq!(disk.len().unwrap(), whole);
}

#[test]
fn the_cut_is_reported() {
    let disk = Recorder::default();
    let (_folder, mut journal) = on_disk(&disk);
    append(&mut journal, &row(5));
    let mut left = disk.0.lock().unwrap().seen.clone();
    let places = super::crash::places(&left);
    left[places[2] + 40] ^= 1;
    let run = written(&[]);
    fs::write(branches(run.path()), &left).unwrap();
    let cut =
        resumed(run.path()).cut().unwrap().to_string().replace(&format!("{}/", run.path().display()), "");
    let bytes = left.len() - places[2];
    let expected = format!(
        "branches.bin: record 3 is damaged; it and 2 whole records after it were cut off ({bytes} bytes); the missing \
         branches are run again"
    );
    assert_eq!(cut, expected);
    assert_eq!(resumed(run.path()).cut(), None, "the cut is reported once");
}

/// Several branches can have the same finding. Each occurrence of the finding is a *hit* and comes with evidence (log
/// lines). The evidence of the branch with the lowest number is recorded, in whatever order the branches end. The
/// evidence of another branch is dropped if a branch with a lower number and the same finding is already recorded.
#[test]
fn evidence_is_recorded_if_it_may_be_the_first() {
    let mut records = row(4);
    records.iter_mut().for_each(|record| record.hits = vec![hit("p", "s", 1)]);
    let run = written(&[]);
    let mut journal = resumed(run.path());
    for i in [2, 3, 0, 1] {
        journal.append(records[i].clone()).unwrap();
    }
    drop(journal);
    let kept: Vec<bool> = all(run.path()).iter().map(|r| r.hits[0].evidence != Evidence::default()).collect();
    assert_eq!(kept, [true, false, true, false]);
    let merged = Reading::open_merged(run.path()).unwrap().1;
    assert_eq!(merged.findings()[0].hit, records[0].hits[0]);
    let mut plain = Merged::default();
    for record in records {
        plain.merge(record).unwrap();
    }
    assert_eq!(merged.digest(), plain.digest());
}

/// Worker for the simulated world. It runs the newest job first, and passes each record through `change`.
struct Stack {
    jobs: Vec<Job>,
    change: fn(Record) -> Record,
}

impl Stack {
    fn new() -> Stack {
        Stack { jobs: Vec::new(), change: |record| record }
    }
}

impl Workers for Stack {
    type Error = String;

    fn waiting(&self) -> usize {
        self.jobs.len()
    }

    fn ask(&mut self, job: Job) {
        self.jobs.push(job);
    }

    fn result(&mut self, _: bool) -> Result<Option<(u64, Record)>, String> {
        let Some(job) = self.jobs.pop() else { return Ok(None) };
        Ok(Some((job.choice.number, (self.change)(super::run(&job.choice, 1)))))
    }

    fn call_off(&mut self) {
        self.jobs.clear();
    }
}

fn aim(branches: u64) -> Aim<Novelty> {
    let (strategy, in_flight) = (Novelty::default(), NonZero::new(header().in_flight).unwrap());
    let Header { seed, root_ns, .. } = header();
    Aim { seed, root_ns, in_flight, strategy, branches, until_found: false, waiting: 8 }
}

/// If a write and then a sync fails, the exploration reports the error of the write.
#[test]
fn the_first_error_of_an_exploration_is_reported() {
    let whole = expedition::explore(aim(90), None, &mut Stack::new(), &mut ()).unwrap();
    assert_eq!(whole.merged.digest(), explore(90, 4, 7, None, usize::MAX).1.digest());
    let disk = Recorder::default();
    let (folder, mut journal) = on_disk(&disk);
    {
        let mut disk = disk.0.lock().unwrap();
        (disk.full_at, disk.sync_fails) = (Some(9_000), true);
    }
    let ended = expedition::explore(aim(90), Some(&mut journal), &mut Stack::new(), &mut ());
    let ExpeditionError::Run(error) = ended.unwrap_err() else { panic!("expected an error of the journal") };
    assert_eq!(message(&error, folder.path()), "cannot write branches.bin: no storage space");
    drop(journal);
    // Once the disk has room, the exploration continues from the records that were written.
    fs::write(branches(folder.path()), &disk.0.lock().unwrap().seen).unwrap();
    let mut journal = resumed(folder.path());
    assert!(journal.len() > 5, "only {} records survive", journal.len());
    let end = expedition::explore(aim(90), Some(&mut journal), &mut Stack::new(), &mut ()).unwrap();
    assert_eq!(end.merged.digest(), whole.merged.digest());
}

/// The sums of vtimes and costs saturate, because records are untrusted and may contain any number.
#[test]
fn sums_of_progress_are_bounded() {
    const MOST: u64 = u64::MAX;
    let longest = |record| Record { open_ns: None, end_ns: MOST, executed: MOST, cpu_ns: MOST, ..record };
    let run = written(&[]);
    for ran in [2, 0] {
        let mut workers = Stack { change: longest, ..Stack::new() };
        let mut journal = resumed(run.path());
        let ended = expedition::explore(aim(2), Some(&mut journal), &mut workers, &mut ()).unwrap();
        let SearchProgress { run, vtime_ns, instructions, cpu_ns, .. } = ended.progress;
        assert_eq!((run, vtime_ns), (ran, u64::MAX));
        let here = if ran == 0 { 0 } else { u64::MAX };
        assert_eq!((instructions, cpu_ns), (here, here));
    }
}
