//! Requests for quiet periods, in which Everett injects no faults.

use crate::{Context as _, Failure, port};

/// Maximum length of a quiet period, in seconds of guest time: one day.
const SECONDS_MAX: f64 = 86_400.0;

/// Asks Everett for a quiet period of this many seconds, from now on.
pub(crate) fn ask(seconds: &str) -> Result<(), Failure> {
    let wrong = || format!("use \"{}\" as a number of seconds up to {SECONDS_MAX}", seconds.escape_debug());
    let number: f64 = seconds.parse().context(wrong)?;
    if !(0.0..=SECONDS_MAX).contains(&number) {
        return Err(Failure(format!("cannot {}", wrong())));
    }
    let line = format!("{{\"everett_stop_faults\":{{\"seconds\":{number}}}}}");
    port::send(&port::from_collector()?, line.as_bytes())
}
