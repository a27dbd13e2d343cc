//! Signals that take control back from a guest that does not exit: a [`Ticker`] that repeats, and an [`Alarm`] that is
//! set for each use.
//!
//! A signal that arrives just before the thread enters KVM is lost. The signal repeats, so the next one takes control
//! back. Ticks may only limit the host time that a run takes. No guest's state may depend on their number.
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

/// Returns the number of the signal, which nothing else in Everett uses.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

fn install() -> Result<(), i32> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        // SAFETY: all zeroes is a valid `sigaction`. The handler touches a thread-local integer and nothing else. The
        // kernel restarts interrupted system calls of other libraries (SA_RESTART), but not KVM_RUN.
        let answer = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = tick as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal(), &raw const action, std::ptr::null_mut())
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
    })
}

/// Repeating signal to the thread that created the ticker. It ends when the ticker is dropped.
#[derive(Debug)]
pub struct Ticker {
    _timer: Timer,
    before: u64,
    /// Makes the type `!Send`, because ticks are counted per thread.
    _here: PhantomData<*const ()>,
}

thread_local! {
    static OWN: OnceCell<Ticker> = const { OnceCell::new() };
}

impl Ticker {
    /// Starts a ticker that lives as long as this thread. Only the first call on a thread has an effect; it sets the
    /// interval.
    ///
    /// # Errors
    /// Returns an error if the host has no timer left.
    pub fn of_this_thread(interval: Duration) -> io::Result<()> {
        OWN.with(|own| {
            if own.get().is_none() {
                // The cell belongs to this thread, so it is still empty.
                let _ = own.set(Ticker::start(interval)?);
            }
            Ok(())
        })
    }
    /// Starts a ticker with this interval.
    ///
    /// # Errors
    /// Returns an error if the host has no timer left.
    pub fn start(interval: Duration) -> io::Result<Ticker> {
        let timer = Timer::new()?;
        timer.set(interval.max(LEAST), interval.max(LEAST))?;
        Ok(Ticker { _timer: timer, before: TICKS.get(), _here: PhantomData })
    }
    /// Returns the number of ticks since the start.
    pub fn ticks(&self) -> u64 {
        TICKS.get().wrapping_sub(self.before)
    }
}

/// Signal to the thread that created the alarm. Each use sets the times of the signal.
#[derive(Debug)]
pub struct Alarm {
    timer: Timer,
    thread: ThreadId,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    /// Returns an error if the host has no timer left.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm { timer: Timer::new()?, thread: thread::current().id() })
    }
    /// True if the alarm signals the calling thread.
    pub fn is_of_this_thread(&self) -> bool {
        self.thread == thread::current().id()
    }
    /// Sets the alarm: the first signal comes after `first`, and then it repeats at intervals of `again`.
    ///
    /// # Errors
    /// Returns an error if the host refuses.
    pub fn set(&mut self, first: Duration, again: Duration) -> io::Result<()> {
        self.timer.set(first.max(LEAST), again.max(LEAST))
    }
    /// Clears the alarm.
    pub fn clear(&mut self) {
        // Clearing a timer that was set cannot fail. If a signal came all the same, it would only take control back too
        // early.
        let _ = self.timer.set(Duration::ZERO, Duration::ZERO);
    }
}

/// Minimum time that is passed to a timer, because zero would disarm it.
const LEAST: Duration = Duration::from_nanos(1);

/// Kernel timer that sends the signal to the thread that created it.
#[derive(Debug)]
struct Timer(libc::timer_t);

// SAFETY: a timer is a number that belongs to the process. Every thread may set and delete it.
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
    /// Signals after `first` and then after each `again`. If `first` is zero, the timer never signals.
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
        // SAFETY: the timer is ours and is not used again. A pending signal still finds its handler.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    // These tests wait for signals without a time limit. They are slow on a slow host, and hang if a signal never
    // comes.

    fn wait_for(ticks: u64) {
        while TICKS.get() < ticks {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn it_ticks() {
        let ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        // The other thread computes without pause and must receive no signal.
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
        // The kernel delivered pending signals before `alarm.clear` returned. The steps below take at least a hundred
        // intervals on any processor:
        let before = TICKS.get();
        (0..10_000_000).for_each(|step| {
            std::hint::black_box(step);
        });
        assert_eq!(TICKS.get(), before);
        alarm.set(interval, interval).unwrap();
        wait_for(before + 3);
    }
}
