//! Chooses the version that each sector holds after a power loss.

use std::collections::{BTreeMap, BTreeSet};

use chacha20::rand_core::Rng;

use super::landing::Landing;
use super::{LossMode, PowerLoss, PowerLossOptions};
use crate::disk::cache::Record;
use crate::disk::content::Content;
use crate::disk::draw;

/// Maximum number of tries to find a choice that loses data.
const LOSS_DRAWS_MAX: usize = 8;

/// Versions of all sectors that have unflushed writes or requests in flight.
pub(super) struct Versions<'a> {
    /// Records, i.e. the contents of sectors before each write, in the order of writing. Requests in flight come last.
    records: &'a [Record],
    /// Number of the first write that was in flight.
    first_in_flight: u64,
    /// Bytes per logical sector.
    size: u64,
    /// Indices of each sector's records, in ascending order. Version `i` of a sector is the content before the write of
    /// its `i`th record, from 0. The sector has one more version than records: the current content.
    sectors: BTreeMap<u64, Vec<usize>>,
}

/// Versions of one sector.
struct Sector<'a> {
    versions: Vec<&'a [u8]>,
    /// Index of the newest version that a completed write made.
    completed: usize,
}

impl<'a> Versions<'a> {
    pub(super) fn new(records: &'a [Record], first_in_flight: u64, size: u64) -> Versions<'a> {
        let mut sectors: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, record) in records.iter().enumerate() {
            for sector in record.sector..record.sector + u64::from(record.sectors) {
                sectors.entry(sector).or_default().push(index);
            }
        }
        Versions { records, first_in_flight, size, sectors }
    }

    /// Chooses the version of each sector and writes it to the content. Counts the losses in `loss`.
    pub(super) fn decide(
        &self,
        content: &mut Content,
        mode: LossMode,
        options: PowerLossOptions,
        rng: &mut impl Rng,
        loss: &mut PowerLoss,
    ) {
        let chosen = match mode {
            LossMode::AllKept => self.choose(mode, rng),
            _ => self.lose(mode, content, rng),
        };
        let torn_ppm = options.tear_sectors.then(|| draw::odds(rng));
        // For each request in flight: the number of sectors that hold its data, and the number of sectors that it
        // writes.
        let mut landed: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut newest = vec![0; self.size as usize];
        for ((&number, records), chosen) in self.sectors.iter().zip(chosen) {
            content.read(number * self.size, &mut newest);
            let sector = self.sector(number, records, &newest);
            let mut outcome = sector.versions[chosen].to_vec();
            let mut torn = false;
            if let Some(ppm) = torn_ppm
                && draw::hits(rng, ppm)
            {
                torn = sector.tear(chosen, &mut outcome, rng);
            }
            sector.count(chosen, torn, loss);
            for (i, &record) in records.iter().enumerate().skip(sector.completed) {
                let (there, of) = landed.entry(self.records[record].write).or_default();
                *there += u64::from(chosen == i + 1 && !torn);
                *of += 1;
            }
            if outcome != newest {
                content.write(number * self.size, &outcome);
            }
        }
        landed.values().for_each(|&(there, of)| loss.in_flight.count(there, of));
    }

    fn sector<'b>(&'b self, number: u64, records: &[usize], newest: &'b [u8]) -> Sector<'b> {
        let mut versions: Vec<&[u8]> = Vec::with_capacity(records.len() + 1);
        let mut completed = 0;
        for &index in records {
            let record = &self.records[index];
            let at = (number - record.sector) * self.size;
            versions.push(record.before.part(at as usize, self.size as usize));
            completed += usize::from(record.write < self.first_in_flight);
        }
        versions.push(newest);
        Sector { versions, completed }
    }

    /// Chooses versions so that at least one sector loses data, if that is possible.
    ///
    /// A sector loses data if it holds an older version that differs from the newest completed one. If
    /// [`LOSS_DRAWS_MAX`] tries find no such choice, every sector gets its oldest version, which each mode allows.
    fn lose(&self, mode: LossMode, content: &Content, rng: &mut impl Rng) -> Vec<usize> {
        let completed = |records: &Vec<usize>| {
            records.iter().filter(|&&record| self.records[record].write < self.first_in_flight).count()
        };
        let completed: Vec<usize> = self.sectors.values().map(completed).collect();
        if completed.iter().all(|&completed| completed == 0) {
            return self.choose(mode, rng);
        }
        (0..LOSS_DRAWS_MAX)
            .map(|_| self.choose(mode, rng))
            .find(|chosen| {
                let mut sectors = self.sectors.iter().zip(chosen.iter().zip(&completed));
                sectors.any(|((&number, records), (&chosen, &completed))| {
                    chosen < completed && self.differs(number, records, chosen, content)
                })
            })
            .unwrap_or_else(|| vec![0; completed.len()])
    }

    /// True if a version of a sector differs from the newest completed version.
    fn differs(&self, number: u64, records: &[usize], version: usize, content: &Content) -> bool {
        let mut newest = vec![0; self.size as usize];
        content.read(number * self.size, &mut newest);
        let sector = self.sector(number, records, &newest);
        sector.versions[version] != sector.versions[sector.completed]
    }

    /// Returns the index of the chosen version of each sector, in the order of sector numbers.
    fn choose(&self, mode: LossMode, rng: &mut impl Rng) -> Vec<usize> {
        let kept = match mode {
            LossMode::AllLost => vec![0; self.records.len()],
            LossMode::AllKept => self.landed(rng),
            LossMode::Prefix => self.prefix(rng),
            LossMode::Requests => self.requests(rng),
            LossMode::Sectors => {
                let newest_ppm = draw::odds(rng);
                let mut choose = |records: &Vec<usize>| match draw::hits(rng, newest_ppm) {
                    true => records.len(),
                    false => draw::below(rng, records.len() as u64 + 1) as usize,
                };
                return self.sectors.values().map(&mut choose).collect();
            }
        };
        let survives =
            |sector: u64, record: usize| kept[record] >> (sector - self.records[record].sector) & 1 == 1;
        let newest = |(&sector, records): (&u64, &Vec<usize>)| {
            records.iter().rposition(|&record| survives(sector, record)).map_or(0, |last| last + 1)
        };
        self.sectors.iter().map(newest).collect()
    }

    /// Draws which prefix of the writes survives. Returns the surviving sectors of each record, as bits.
    fn prefix(&self, rng: &mut impl Rng) -> Vec<u8> {
        if draw::coin(rng) {
            let writes: BTreeSet<u64> = self.records.iter().map(|record| record.write).collect();
            let end = draw::below(rng, writes.len() as u64 + 1) as usize;
            let end = writes.into_iter().nth(end).unwrap_or(u64::MAX);
            return self.records.iter().map(|record| if record.write < end { u8::MAX } else { 0 }).collect();
        }
        let sectors = self.records.iter().map(|record| u64::from(record.sectors)).sum::<u64>();
        let mut left = draw::below(rng, sectors + 1);
        let take = |record: &Record| {
            let take = left.min(record.sectors.into());
            left -= take;
            ((1u16 << take) - 1) as u8
        };
        self.records.iter().map(take).collect()
    }

    /// Draws for each write request whether it survives. Returns the surviving sectors of each record, as bits.
    fn requests(&self, rng: &mut impl Rng) -> Vec<u8> {
        let survive_ppm = draw::odds(rng);
        let (mut last, mut survives) = (None, false);
        let mut bits = |record: &Record| {
            if last != Some(record.write) {
                (last, survives) = (Some(record.write), draw::hits(rng, survive_ppm));
            }
            if survives { u8::MAX } else { 0 }
        };
        self.records.iter().map(&mut bits).collect()
    }

    /// Draws which sectors of the requests in flight land; completed requests survive. Returns the surviving sectors of
    /// each record, as bits.
    fn landed(&self, rng: &mut impl Rng) -> Vec<u8> {
        let mut kept = Vec::with_capacity(self.records.len());
        for records in self.records.chunk_by(|a, b| a.write == b.write) {
            let landing = match records[0].write < self.first_in_flight {
                true => Landing::Whole,
                false => Landing::draw(rng, records.iter().map(|record| u64::from(record.sectors)).sum()),
            };
            let mut lands = landing.sectors(rng);
            let mut number = 0;
            for record in records {
                let bit = |bits, sector: u8| {
                    number += 1;
                    bits | u8::from(lands(number - 1)) << sector
                };
                kept.push((0..record.sectors).fold(0, bit));
            }
        }
        kept
    }
}

impl Sector<'_> {
    /// Replaces a random part of `outcome` by the same part of another random version. Returns true if the result
    /// equals neither version.
    fn tear(&self, chosen: usize, outcome: &mut [u8], rng: &mut impl Rng) -> bool {
        let other = draw::below(rng, self.versions.len() as u64 - 1) as usize;
        let other = self.versions[other + usize::from(other >= chosen)];
        let at = 1 + draw::below(rng, outcome.len() as u64 - 1) as usize;
        let part = if draw::coin(rng) { 0..at } else { at..outcome.len() };
        outcome[part.clone()].copy_from_slice(&other[part]);
        *outcome != *other && *outcome != *self.versions[chosen]
    }

    fn count(&self, chosen: usize, torn: bool, loss: &mut PowerLoss) {
        let (durable, newest, now) = (self.versions[0], self.versions[self.completed], self.versions[chosen]);
        let older = chosen < self.completed && now != newest;
        let unflushed = self.versions[..=self.completed].iter().any(|version| *version != durable);
        loss.unflushed += u64::from(unflushed);
        loss.torn += u64::from(torn);
        loss.lost_newest += u64::from(older && !torn);
        loss.in_between += u64::from(older && now != durable && !torn);
    }
}
