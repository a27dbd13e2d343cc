//! The host's processor, and the host's resources that this process uses.

/// Returns the host's processor: name, vendor, family, model and number of logical CPUs, for example `Intel(R) Xeon(R)
/// Processor (GenuineIntel, family 6, model 167), 2 CPUs`. Figures of a bench are comparable only on one processor.
#[must_use]
pub fn processor() -> String {
    // A host without this file has an unknown processor.
    processor_in(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// Returns the description of a processor, from the content of `/proc/cpuinfo`.
fn processor_in(cpuinfo: &str) -> String {
    let values = |wanted: &'static str| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.filter(move |(key, _)| key.trim() == wanted).map(|(_, value)| value.trim())
    };
    let value = |key| values(key).next().unwrap_or("unknown");
    let cpus = values("processor").count();
    format!(
        "{} ({}, family {}, model {}), {cpus} CPU{}",
        value("model name"),
        value("vendor_id"),
        value("cpu family"),
        value("model"),
        if cpus == 1 { "" } else { "s" }
    )
}

/// Returns the last CPU on which this process may run.
///
/// # Errors
/// Returns a one-line message if `/proc/self/status` cannot be read.
pub fn last_cpu() -> Result<usize, String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc/self/status: {error}"))?;
    last_cpu_in(&status).ok_or_else(|| String::from("/proc/self/status has no Cpus_allowed_list"))
}

/// Returns the last CPU in the list of allowed CPUs, from the content of `/proc/self/status`.
fn last_cpu_in(status: &str) -> Option<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.rsplit([',', '-']).next()?.trim().parse().ok()
}

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

/// Unit of CPU times in `/proc` (USER_HZ), per second. It is the same on all x86-64 hosts.
const TICKS_PER_S: f64 = 100.0;

/// Returns the CPU time that ended child processes of this process have used, user and system, in seconds.
///
/// # Errors
/// Returns a one-line message if `/proc/self/stat` cannot be read.
pub fn children_cpu_s() -> Result<f64, String> {
    let stat =
        std::fs::read_to_string("/proc/self/stat").map_err(|error| format!("/proc/self/stat: {error}"))?;
    // The second field is the program's name in parentheses. CUTIME and CSTIME are fields 16 and 17.
    let fields: Vec<&str> =
        stat.rsplit(')').next().map(|rest| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |n: usize| fields.get(n - 3).and_then(|field| field.parse::<u64>().ok());
    let ticks = ticks(16).zip(ticks(17)).map(|(user, system)| user + system);
    ticks
        .map(|ticks| ticks as f64 / TICKS_PER_S)
        .ok_or_else(|| String::from("/proc/self/stat has no CPU times"))
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

#[cfg(test)]
mod tests {
    use super::{last_cpu_in, processor_in};

    #[test]
    fn a_processor_has_its_make_and_model() {
        let one = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\n";
        assert_eq!(processor_in(one), "AMD EPYC (AuthenticAMD, family 26, model 2), 1 CPU");
        let two = format!("{one}{}", one.replace(": 0", ": 1"));
        assert_eq!(processor_in(&two), "AMD EPYC (AuthenticAMD, family 26, model 2), 2 CPUs");
        assert_eq!(processor_in(""), "unknown (unknown, family unknown, model unknown), 0 CPUs");
    }

    #[test]
    fn the_last_cpu_ends_the_list() {
        let last = |list: &str| last_cpu_in(&format!("Cpus_allowed:\tff\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(
            [last("0"), last("0-1"), last("0-3,8-11"), last("2,5")],
            [Some(0), Some(1), Some(11), Some(5)]
        );
        assert_eq!(last_cpu_in("Cpus_allowed:\tff\n"), None);
    }
}
