//! CPU time per branch and memory over the course of an exploration, for each quarter of its branches.
//!
//! In a long exploration both become constant once the stored moments fill their budget. Later growth indicates a
//! defect.

use serde::Serialize;

/// Maximum number of samples of CPU time and memory. At the maximum, every other sample is dropped.
const SAMPLES_MAX: usize = 512;

/// Quarter of the branches that this process has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quarter {
    /// Number of branches at the end of the quarter.
    pub branches: u64,
    /// Mean CPU time of the quarter's branches, in nanoseconds.
    pub cpu_ns: u64,
    /// Anonymous memory of the process at the end of the quarter, in bytes.
    pub resident_bytes: u64,
}

/// Totals at one point of the exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    branches: u64,
    cpu_ns: u64,
    resident_bytes: u64,
}

/// Samples with at least `stride` branches between them, and the latest totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUse {
    samples: Vec<Sample>,
    stride: u64,
    last: Option<Sample>,
}

impl Default for ResourceUse {
    fn default() -> ResourceUse {
        ResourceUse { samples: Vec::new(), stride: 1, last: None }
    }
}

impl ResourceUse {
    /// Records that the workers have run `branches` branches so far, in `cpu_ns` nanoseconds of CPU time.
    pub fn at(&mut self, branches: u64, cpu_ns: u64) {
        if self.last.is_some_and(|last| last.branches >= branches) || branches == 0 {
            return;
        }
        self.take(Sample { branches, cpu_ns, resident_bytes: resident_bytes() });
    }

    fn take(&mut self, sample: Sample) {
        self.last = Some(sample);
        if sample.branches >= self.samples.last().map_or(0, |last| last.branches) + self.stride {
            self.samples.push(sample);
        }
        if self.samples.len() > SAMPLES_MAX {
            self.stride *= 2;
            let mut even = true;
            self.samples.retain(|_| {
                even = !even;
                even
            });
        }
    }

    /// Returns the quarters. There are fewer than four if there were few branches.
    #[must_use]
    pub fn quarters(&self) -> Vec<Quarter> {
        let Some(last) = self.last else { return Vec::new() };
        let mut before = Sample { branches: 0, cpu_ns: 0, resident_bytes: 0 };
        let mut quarters = Vec::new();
        for quarter in 1..=4 {
            let wanted = last.branches.saturating_mul(quarter) / 4;
            let end = self.samples.iter().rev().find(|sample| sample.branches <= wanted);
            let end = if quarter == 4 { last } else { end.copied().unwrap_or(before) };
            let branches = end.branches.saturating_sub(before.branches);
            if branches == 0 {
                continue;
            }
            quarters.push(Quarter {
                branches: end.branches,
                cpu_ns: end.cpu_ns.saturating_sub(before.cpu_ns) / branches,
                resident_bytes: end.resident_bytes,
            });
            before = end;
        }
        quarters
    }
}

/// Returns the anonymous resident memory of this process in bytes, or 0 if the host does not report it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_divide_the_branches_evenly() {
        let mut all = ResourceUse::default();
        assert_eq!(all.quarters(), []);
        // Branches of the second half take twice as long.
        let cpu_ns = |n: u64| 10 * n + 10 * n.saturating_sub(50_000);
        (1..=100_000).for_each(|n| all.take(Sample { branches: n, cpu_ns: cpu_ns(n), resident_bytes: n }));
        assert!(all.samples.len() <= SAMPLES_MAX);
        let told = all.quarters();
        assert_eq!(told.len(), 4);
        for (quarter, (end, cpu)) in
            told.iter().zip([(25_000, 10), (50_000, 10), (75_000, 20), (100_000, 20)])
        {
            assert!(quarter.branches.abs_diff(end) <= 512, "{quarter:?}");
            assert!(quarter.cpu_ns.abs_diff(cpu) <= 1, "{quarter:?}");
            assert_eq!(quarter.resident_bytes, quarter.branches);
        }
        let mut few = ResourceUse::default();
        (1..=2).for_each(|n| few.take(Sample { branches: n, cpu_ns: n, resident_bytes: 7 }));
        assert_eq!(few.quarters().iter().map(|quarter| quarter.branches).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn the_memory_of_this_process_is_measured() {
        assert!(resident_bytes() > 0);
    }
}
