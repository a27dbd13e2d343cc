//! Resources of the host that this process uses.

/// Returns the size of this process's anonymous memory in RAM, in bytes.
///
/// # Errors
/// Returns a one-line message if `/proc/self/status` cannot be read.
pub fn resident_bytes() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc/self/status: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| String::from("/proc/self/status has no RssAnon"))
}

/// Returns the CPU time that this process has used, user and system, in seconds.
#[must_use]
pub fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Buffer whose traversal evicts all other data from the host's caches.
#[derive(Debug)]
pub struct CacheEvictor(Vec<u64>);

impl Default for CacheEvictor {
    fn default() -> CacheEvictor {
        // The buffer is larger than the last-level caches of usual servers.
        CacheEvictor(vec![1; (256 << 20) / 8])
    }
}

impl CacheEvictor {
    /// Changes one word in each cache line of the buffer, which evicts all other data.
    pub fn evict(&mut self) {
        for line in self.0.chunks_mut(8) {
            line[0] = line[0].wrapping_mul(3);
        }
        std::hint::black_box(&self.0);
    }
}
