//! Tests that power losses reach every legal outcome. Each write of a sector makes a new version of the sector. A power
//! loss draws a mode, which decides which versions may survive. All combinations of versions that the mode allows must
//! occur, and so must the extremes, in which at most two sectors are lost or at most one is kept.

use std::collections::BTreeMap;

use super::*;

/// Returns a disk and a request in flight. A power loss may undo three completed writes of the first sector and one of
/// the second. The request in flight writes both sectors.
fn scene() -> (Disk, Vec<Vec<Change>>) {
    let mut disk = Disk::zeroed(8 * SECTOR).unwrap();
    disk.write(0, &[10; 1024]);
    for value in 11..=13 {
        disk.complete(&[fill(&disk, 0, &[value])]);
    }
    disk.complete(&[fill(&disk, 1, &[11])]);
    let in_flight = vec![vec![fill(&disk, 0, &[14, 14])]];
    (disk, in_flight)
}

#[test]
fn every_legal_combination_is_drawn() {
    let (disk, in_flight) = scene();
    let mut seen: BTreeMap<LossMode, BTreeSet<(u8, u8)>> = BTreeMap::new();
    for seed in 0..3000 {
        let mut disk = disk.clone();
        let loss = disk.power_loss(&mut rng(seed), PowerLossOptions::default(), &in_flight);
        let values = values(&disk);
        assert!(values[2..].iter().all(|value| *value == Some(0)));
        seen.entry(loss.mode.unwrap()).or_default().insert((values[0].unwrap(), values[1].unwrap()));
    }
    let pairs = |pairs: &[(u8, u8)]| pairs.iter().copied().collect::<BTreeSet<_>>();
    let all: BTreeSet<_> = (10..=14).flat_map(|a| [10, 11, 14].map(|b| (a, b))).collect();
    assert_eq!(seen[&LossMode::AllLost], pairs(&[(10, 10)]));
    assert_eq!(seen[&LossMode::AllKept], pairs(&[(13, 11), (14, 11), (13, 14), (14, 14)]));
    assert_eq!(seen[&LossMode::Prefix], pairs(&[(10, 10), (11, 10), (12, 10), (13, 10)]));
    // In the modes `Requests` and `Sectors`, at least one completed write is lost. All combinations with a lost write
    // occur.
    let lost = |&(a, b): &(u8, u8)| a < 13 || b < 11;
    let whole = (10..=13).flat_map(|a| [(a, 10), (a, 11)]).filter(lost).collect();
    assert_eq!(seen[&LossMode::Requests], whole);
    assert_eq!(seen[&LossMode::Sectors], all.into_iter().filter(lost).collect());
}

/// The number of lost sectors varies: all, none, one, two, and all except one occur.
#[test]
fn extremes_are_drawn() {
    const SECTORS: u64 = 256;
    let mut disk = Disk::zeroed(SECTORS * SECTOR).unwrap();
    for sector in 0..SECTORS {
        disk.complete(&[fill(&disk, sector, &[7])]);
    }
    let mut counts = BTreeMap::new();
    for seed in 0..2000 {
        let mut disk = disk.clone();
        let loss = disk.power_loss(&mut rng(seed), PowerLossOptions::default(), &[]);
        let lost = values(&disk).iter().filter(|value| **value == Some(0)).count() as u64;
        assert_eq!((loss.unflushed, loss.lost_newest, loss.in_between), (SECTORS, lost, 0));
        assert_eq!(loss.lost_anything(), lost > 0);
        *counts.entry(lost).or_insert(0) += 1;
    }
    for extreme in [0, 1, 2, SECTORS - 1, SECTORS] {
        assert!(counts.get(&extreme).is_some_and(|&count| count >= 3), "{extreme} lost: {counts:?}");
    }
    assert!(counts.len() > 200, "many counts in between occur");
}

#[test]
fn torn_sectors_hold_parts_of_two_versions_and_occur_only_on_request() {
    let (disk, in_flight) = scene();
    let mut pairs = BTreeSet::new();
    let mut places = BTreeSet::new();
    for seed in 0..4000 {
        let mut disk = disk.clone();
        let loss = disk.power_loss(&mut rng(seed), PowerLossOptions { tear_sectors: true }, &in_flight);
        let torn = values(&disk).iter().filter(|value| value.is_none()).count() as u64;
        assert_eq!(loss.torn, torn);
        let mut sector = [0; SECTOR as usize];
        disk.read(0, &mut sector);
        let runs: Vec<&[u8]> = sector.chunk_by(|a, b| a == b).collect();
        assert!(runs.len() <= 2, "two versions at most");
        if runs.len() == 2 {
            pairs.insert((runs[0][0], runs[1][0]));
            places.insert(runs[0].len());
            assert!(loss.lost_anything());
        }
    }
    assert_eq!(
        pairs,
        (10..=14).flat_map(|a| (10..=14).map(move |b| (a, b))).filter(|(a, b)| a != b).collect()
    );
    assert!(places.len() > 400 && places.contains(&1) && places.contains(&511), "{}", places.len());
}

/// At a reset, a request lands completely, not at all, or in any part.
#[test]
fn aborted_requests_land_in_any_part() {
    let mut seen = BTreeMap::new();
    for seed in 0..2000 {
        let mut disk = Disk::zeroed(8 * SECTOR).unwrap();
        disk.complete(&[fill(&disk, 3, &[1])]);
        let in_flight = [vec![fill(&disk, 0, &[2; 3])], vec![zeroes(&disk, 3, 1, true)]];
        let aborted = disk.abort(&mut rng(seed), &in_flight);
        let values: Vec<u8> = values(&disk)[..4].iter().map(|value| value.unwrap()).collect();
        let landed = values[..3].iter().filter(|&&value| value == 2).count();
        let zeroed = u64::from(values[3] == 0);
        assert_eq!(aborted.landed, u64::from(landed == 3) + zeroed);
        assert_eq!(aborted.in_part, u64::from(landed == 1 || landed == 2));
        *seen.entry(values).or_insert(0) += 1;
        // Landed sectors are ordinary versions: volatile before a flush, durable after it.
        let mut flushed = disk.clone();
        flushed.flush(flushed.completed());
        assert_eq!(flushed.cached_bytes(), 0);
        lose(&mut disk, LossMode::AllLost, seed, &[]);
        assert_eq!(self::values(&disk)[..4], [Some(0); 4]);
    }
    assert_eq!(seen.len(), 16, "{seen:?}");
}
