//! Length of tests with random damage.

/// Returns `count` times the number in the environment variable `EVERETT_FUZZ`, for long runs; without it, `count`.
pub(crate) fn rounds(count: u64) -> u64 {
    let times = std::env::var("EVERETT_FUZZ").ok().and_then(|times| times.parse::<u64>().ok());
    count * times.unwrap_or(1)
}
