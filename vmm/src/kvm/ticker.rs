//! A signal that comes again and again to one thread, so that it gets control back from a guest that does not exit; and one that
//! is set anew each time.
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
    _timer: Timer,
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
        let timer = Timer::new()?;
        timer.set(interval.max(LEAST), interval.max(LEAST))?;
        Ok(Ticker { _timer: timer, before: TICKS.get(), _here: PhantomData })
    }
    /// How often it ticked.
    pub fn ticks(&self) -> u64 {
        TICKS.get().wrapping_sub(self.before)
    }
}

/// A signal to the thread that made it, when it is set.
#[derive(Debug)]
pub struct Alarm {
    timer: Timer,
    thread: libc::pid_t,
}

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// When the host has no timer for it.
    pub fn new() -> io::Result<Alarm> {
        // SAFETY: it only tells.
        let thread = unsafe { libc::gettid() };
        Ok(Alarm { timer: Timer::new()?, thread })
    }
    /// Whether it would wake whoever asks.
    pub fn is_of_this_thread(&self) -> bool {
        // SAFETY: it only tells.
        self.thread == unsafe { libc::gettid() }
    }
    /// Ring after this time, and again and again.
    ///
    /// # Errors
    /// When the host does not take it.
    pub fn set(&mut self, first: Duration, again: Duration) -> io::Result<()> {
        self.timer.set(first.max(LEAST), again.max(LEAST))
    }
    /// Do not ring.
    pub fn clear(&mut self) {
        // A timer that was set can be cleared; one that rings all the same only gets control back too early.
        let _ = self.timer.set(Duration::ZERO, Duration::ZERO);
    }
}

/// Nothing at all would be never.
const LEAST: Duration = Duration::from_nanos(1);

/// A timer of the kernel's that sends the signal to the thread that made it.
#[derive(Debug)]
struct Timer(libc::timer_t);

// SAFETY: a timer is a number of the process's, which every thread can set and delete.
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
    /// Ring after `first`, and then again and again; not at all if that is zero.
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
        // SAFETY: the timer is ours and is not used again. A signal that is on its way finds its handler.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    // These tests wait for signals, without a limit: on a slow host they are slow, and a signal that never comes is a hang.

    fn wait_for(ticks: u64) {
        while TICKS.get() < ticks {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn it_ticks() {
        let ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        // The other thread runs all the while, and no signal goes there.
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
            "each counts its own"
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
        // What had rung was delivered on the way out of that call. Steps that take a hundred intervals on any processor:
        let before = TICKS.get();
        (0..10_000_000).for_each(|step| {
            std::hint::black_box(step);
        });
        assert_eq!(TICKS.get(), before);
        alarm.set(interval, interval).unwrap();
        wait_for(before + 3);
    }
}
