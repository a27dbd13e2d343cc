//! Requests for quiet periods.

use crate::{Context as _, Failure, port};

/// Longest quiet period, in seconds of guest time: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// Asks for a time without faults, from now on.
pub(crate) fn ask(seconds: &str) -> Result<(), Failure> {
    let wrong = || format!("use \"{}\" as a number of seconds up to {SECONDS_MAX}", seconds.escape_debug());
    let number: f64 = seconds.parse().context(wrong)?;
    if !(0.0..=SECONDS_MAX).contains(&number) {
        return Err(Failure(format!("cannot {}", wrong())));
    }
    let line = format!("{{\"everett_stop_faults\":{{\"seconds\":{number}}}}}");
    port::send(&port::from_collector()?, line.as_bytes())
}
