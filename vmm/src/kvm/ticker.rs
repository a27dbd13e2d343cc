//! A signal that comes again and again to one thread, so that it gets control back from a guest that does not exit.
//!
//! The signal repeats, so one that comes before KVM is entered is only one lost. How many there were bounds how long
//! something runs, by the host's clock: no guest's state may depend on it.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::io;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    // Constant and without a destructor, so that a signal handler can use it.
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn tick(_: libc::c_int) {
    TICKS.set(TICKS.get().wrapping_add(1));
}

/// One of the signals that nobody has a use for.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

fn install() -> Result<(), i32> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        // SAFETY: all zeroes is a valid `sigaction`; the handler touches a thread-local integer and nothing else. Calls of
        // other libraries are restarted, KVM_RUN is not.
        let answer = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = tick as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal(), &raw const action, std::ptr::null_mut())
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
    })
}

/// Ticks for the thread that made it, until it is dropped.
#[derive(Debug)]
pub struct Ticker {
    timer: libc::timer_t,
    before: u64,
    /// Ticks are counted by thread.
    _here: PhantomData<*const ()>,
}

thread_local! {
    static OWN: OnceCell<Ticker> = const { OnceCell::new() };
}

impl Ticker {
    /// See to it that this thread has one for as long as it lives. The first that is asked for says how often it ticks.
    ///
    /// # Errors
    /// When the host has no timer for it.
    pub fn of_this_thread(interval: Duration) -> io::Result<()> {
        OWN.with(|own| {
            if own.get().is_none() {
                // Nobody else has set it meanwhile: it is this thread's.
                let _ = own.set(Ticker::start(interval)?);
            }
            Ok(())
        })
    }
    /// Begin to tick.
    ///
    /// # Errors
    /// When the host has no timer for it.
    pub fn start(interval: Duration) -> io::Result<Ticker> {
        install().map_err(io::Error::from_raw_os_error)?;
        let mut timer = std::ptr::null_mut();
        // SAFETY: all zeroes is a valid `sigevent`; the kernel reads it and writes one timer.
        let made = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer)
        };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        let ticker = Ticker { timer, before: TICKS.get(), _here: PhantomData };
        let interval = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: interval.subsec_nanos().max(1).into(),
        };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: the timer is ours, and the kernel reads one `itimerspec`.
        if unsafe { libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ticker)
    }
    /// How often it ticked.
    pub fn ticks(&self) -> u64 {
        TICKS.get().wrapping_sub(self.before)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is not used again. A signal that is on its way finds its handler.
        unsafe { libc::timer_delete(self.timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ticks() {
        let ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        while ticker.ticks() < 3 {
            std::hint::spin_loop();
        }
    }
}
