//! Timers and details of TCP connections.

use super::clock::Ticks;
use crate::limits::NAME_BYTES_MAX;
use crate::socket_layout::Unit;
use crate::{Error, Guest};

/// Timer of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// Kind.
    pub kind: TimerKind,
    /// Time at which it expires on the guest's monotonic clock, in nanoseconds. `None` if the kernel's ticks cannot be
    /// read.
    pub expires_ns: Option<u64>,
}

impl Timer {
    /// Returns a timer that expires at a tick.
    pub(super) fn new(kind: TimerKind, tick: u64, ticks: Option<Ticks>) -> Timer {
        Timer { kind, expires_ns: ticks.and_then(|ticks| ticks.time_ns(tick)) }
    }
}

/// Kind of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// Sends data again that the peer has not confirmed.
    Retransmit,
    /// Asks an idle peer whether it is alive, or ends a connection that is closed on this side.
    KeepAlive,
    /// Ends a TIME-WAIT.
    TimeWait,
    /// Asks a peer without room for data whether it has room now.
    Persist,
}

impl TimerKind {
    /// Returns the name that `ss` prints.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TimerKind::Retransmit => "on",
            TimerKind::KeepAlive => "keepalive",
            TimerKind::TimeWait => "timewait",
            TimerKind::Persist => "persist",
        }
    }
}

/// Details of a TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// Name of the congestion control.
    pub congestion: Option<String>,
    /// Names and numbers. A name with a unit ends with it. `lastsnd_ms`, `lastrcv_ms` and `lastack_ms` are times of
    /// the guest's monotonic clock. Numbers that do not exist are left out.
    pub numbers: Vec<(&'static str, u64)>,
}

/// Values of `icsk_pending` (`include/net/inet_connection_sock.h`).
mod pending {
    pub(super) const RETRANSMIT: u64 = 1;
    pub(super) const PROBE: u64 = 3;
    pub(super) const LOSS_PROBE: u64 = 5;
    pub(super) const REORDER: u64 = 6;
}

impl Guest<'_> {
    /// Returns the timer of a TCP connection, as `/proc/net/tcp` chooses it.
    pub(super) fn tcp_timer(&self, sock: u64, ticks: Option<Ticks>) -> Result<Option<Timer>, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let kind = match self.number(sock, places.pending)? {
            pending::RETRANSMIT | pending::LOSS_PROBE | pending::REORDER => TimerKind::Retransmit,
            pending::PROBE => TimerKind::Persist,
            _ if self.number(sock, places.timer_pending)? != 0 => {
                let tick = self.number(sock, places.timer_expires)?;
                return Ok(Some(Timer::new(TimerKind::KeepAlive, tick, ticks)));
            }
            _ => return Ok(None),
        };
        let expires = places.expires.or(places.new_retransmit_expires).or(places.retransmit_expires);
        let expires = expires.ok_or(Error::Field("inet_connection_sock.icsk_timeout"))?;
        Ok(Some(Timer::new(kind, self.number(sock, expires)?, ticks)))
    }

    /// Reads the details of a TCP connection.
    pub(super) fn tcp_details(&self, sock: u64, ticks: Option<Ticks>) -> Result<Details, Error> {
        /// The kernel's sign for *no limit* (`TCP_INFINITE_SSTHRESH`).
        const NO_LIMIT: u64 = 0x7fff_ffff;
        let layout = self.kernel.socket_layout.as_ref().map_err(Clone::clone)?;
        let places = &layout.places;
        let mut numbers = Vec::new();
        for (name, field, unit) in &layout.tcp_details {
            let number = self.number(sock, *field)?;
            let shown = match unit {
                Unit::Plain => Some(number),
                Unit::Limit => Some(number).filter(|number| *number < NO_LIMIT),
                Unit::Ticks => ticks.map(|ticks| number * ticks.tick_ns / 1_000_000),
                // 0 stands for *never*.
                Unit::TickTime if number == 0 => None,
                Unit::TickTime => {
                    ticks.and_then(|ticks| ticks.time_of_low_ns(number as u32)).map(|ns| ns / 1_000_000)
                }
                Unit::Shifted(by) => Some(number >> by),
            };
            numbers.extend(shown.map(|shown| (*name, shown)));
        }
        let congestion = match (places.congestion, places.congestion_name) {
            (Some(ops), Some(name)) => match self.number(sock, ops)? {
                0 => None,
                ops => {
                    let bytes = name.bytes().min(NAME_BYTES_MAX as u64) as usize;
                    Some(self.text(ops.wrapping_add(name.offset()), bytes)?)
                }
            },
            _ => None,
        };
        Ok(Details { congestion, numbers })
    }
}
