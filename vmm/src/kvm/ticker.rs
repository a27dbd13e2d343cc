//! Signals that take control back from a guest that does not exit: a repeating one, and one that is set for each use.
//!
//! A signal that comes just before KVM is entered is lost. The signal repeats, so the next one takes control back. The
//! number of ticks bounds how long something runs by the host's clock; no guest's state may depend on it.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::io;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};
use std::time::Duration;

thread_local! {
    // Constant and without a destructor, so that a signal handler can use it.
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn tick(_: libc::c_int) {
    TICKS.set(TICKS.get().wrapping_add(1));
}

/// Returns the number of a signal that is otherwise unused.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

fn install() -> Result<(), i32> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        // SAFETY: all zeroes is a valid `sigaction`; the handler touches a thread-local integer and nothing else. System
        // calls of other libraries are restarted (SA_RESTART), KVM_RUN is not.
        let answer = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = tick as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal(), &raw const action, std::ptr::null_mut())
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
    })
}

/// Repeating signal to the thread that created it, until it is dropped.
#[derive(Debug)]
pub struct Ticker {
    _timer: Timer,
    before: u64,
    /// Not `Send`: ticks are counted by thread.
    _here: PhantomData<*const ()>,
}

thread_local! {
    static OWN: OnceCell<Ticker> = const { OnceCell::new() };
}

impl Ticker {
    /// Ensures that this thread has a ticker for as long as it lives. The first call determines the interval.
    ///
    /// # Errors
    /// Returns an error if the host has no timer for it.
    pub fn of_this_thread(interval: Duration) -> io::Result<()> {
        OWN.with(|own| {
            if own.get().is_none() {
                // Only this thread can set it, so it is still empty.
                let _ = own.set(Ticker::start(interval)?);
            }
            Ok(())
        })
    }
    /// Starts to tick.
    ///
    /// # Errors
    /// Returns an error if the host has no timer for it.
    pub fn start(interval: Duration) -> io::Result<Ticker> {
        let timer = Timer::new()?;
        timer.set(interval.max(LEAST), interval.max(LEAST))?;
        Ok(Ticker { _timer: timer, before: TICKS.get(), _here: PhantomData })
    }
    /// Returns the number of ticks so far.
    pub fn ticks(&self) -> u64 {
        TICKS.get().wrapping_sub(self.before)
    }
}

/// Signal to the thread that created it, once it is set.
#[derive(Debug)]
pub struct Alarm {
    timer: Timer,
    thread: ThreadId,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    /// Returns an error if the host has no timer for it.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm { timer: Timer::new()?, thread: thread::current().id() })
    }
    /// True if it would signal the calling thread.
    pub fn is_of_this_thread(&self) -> bool {
        self.thread == thread::current().id()
    }
    /// Sets it to signal after the time `first`, and then repeatedly after each `again`.
    ///
    /// # Errors
    /// Returns an error if the host refuses.
    pub fn set(&mut self, first: Duration, again: Duration) -> io::Result<()> {
        self.timer.set(first.max(LEAST), again.max(LEAST))
    }
    /// Clears it, so that it does not signal.
    pub fn clear(&mut self) {
        // A timer that was set can be cleared. A signal that comes all the same only takes control back too early.
        let _ = self.timer.set(Duration::ZERO, Duration::ZERO);
    }
}

/// Minimum time of a timer, because zero would switch it off.
const LEAST: Duration = Duration::from_nanos(1);

/// Timer of the kernel that sends the signal to the thread that created it.
#[derive(Debug)]
struct Timer(libc::timer_t);

// SAFETY: a timer is a number that belongs to the process; every thread can set and delete it.
unsafe impl Send for Timer {}

impl Timer {
    fn new() -> io::Result<Timer> {
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
        if made == 0 { Ok(Timer(timer)) } else { Err(io::Error::last_os_error()) }
    }
    /// Signals after `first`, and then repeatedly after each `again`; never if `first` is zero.
    fn set(&self, first: Duration, again: Duration) -> io::Result<()> {
        let spec = |time: Duration| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        let times = libc::itimerspec { it_interval: spec(again), it_value: spec(first) };
        // SAFETY: the timer is ours, and the kernel reads one `itimerspec`.
        let set = unsafe { libc::timer_settime(self.0, 0, &raw const times, std::ptr::null_mut()) };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is not used again. A signal that is pending still finds its handler.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    // These tests wait for signals without a limit: on a slow host they are slow, and a signal that never comes is a
    // hang.

    fn wait_for(ticks: u64) {
        while TICKS.get() < ticks {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn it_ticks() {
        let ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        // The other thread runs all the time, and receives no signal.
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                TICKS.get()
            });
            wait_for(3);
            done.store(true, Ordering::Relaxed);
            assert_eq!(other.join().unwrap(), 0);
        });
        assert!(ticker.ticks() >= 3);
        assert!(
            Ticker::start(Duration::from_secs(3600)).unwrap().ticks() < ticker.ticks(),
            "each ticker counts from its own start"
        );
    }

    #[test]
    fn an_alarm_rings_when_it_is_set_and_not_when_it_is_cleared() {
        let mut alarm = Alarm::new().unwrap();
        assert!(alarm.is_of_this_thread());
        let interval = Duration::from_micros(10);
        let before = TICKS.get();
        alarm.set(interval, interval).unwrap();
        wait_for(before + 3);
        alarm.clear();
        // Pending signals were delivered when that call returned. These steps take a hundred intervals on any processor:
        let before = TICKS.get();
        (0..10_000_000).for_each(|step| {
            std::hint::black_box(step);
        });
        assert_eq!(TICKS.get(), before);
        alarm.set(interval, interval).unwrap();
        wait_for(before + 3);
    }
}
