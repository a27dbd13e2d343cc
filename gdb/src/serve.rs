//! A session with gdb over a connection.

use std::marker::PhantomData;
use std::net::TcpStream;

use everett_session::debug::cursor::Listener;
use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::base::reverse_exec::ReplayLogPosition;
use gdbstub::target::ext::breakpoints::WatchKind;

use crate::limits::PACKET_BYTES_MAX;
use crate::motion::{Motion, Outcome};
use crate::target::{Session, tid};
use crate::{Debuggee, Error};

/// Answers gdb until it disconnects.
///
/// # Errors
/// Returns an error if the connection breaks, or if the timeline cannot move.
pub fn serve(debuggee: &mut Debuggee<'_, '_>, connection: TcpStream) -> Result<(), Error> {
    connection.set_nodelay(true).map_err(|error| Error::Connection(error.into()))?;
    let mut session = Session { debuggee, motion: Motion::Continue };
    let stub = GdbStub::builder(connection).packet_buffer_size(PACKET_BYTES_MAX).build();
    let stub = stub.map_err(|error| Error::Connection(anyhow::anyhow!("{error}")))?;
    match stub.run_blocking::<Events<'_, '_, '_>>(&mut session) {
        Ok(_) => Ok(()),
        Err(error) if error.is_target_error() => match error.into_target_error() {
            Some(error) => Err(error),
            None => Ok(()),
        },
        // gdb can end without a farewell.
        Err(error) if error.is_connection_error() => Ok(()),
        Err(error) => Err(Error::Connection(anyhow::anyhow!("{error}"))),
    }
}

/// Listener that ends a motion when gdb sends something.
struct Waiting<'c> {
    connection: &'c mut TcpStream,
    /// Error of the connection.
    broken: Option<std::io::Error>,
}

impl Listener for Waiting<'_> {
    fn goes_on(&mut self) -> bool {
        match self.connection.peek() {
            Ok(byte) => byte.is_none(),
            Err(error) => {
                self.broken = Some(error);
                false
            }
        }
    }
}

/// Motions of a session, between gdb's packets.
struct Events<'r, 'd, 's>(PhantomData<(&'r (), &'d (), &'s ())>);

impl<'r, 'd, 's> BlockingEventLoop for Events<'r, 'd, 's>
where
    's: 'd,
    'd: 'r,
{
    type Target = Session<'r, 'd, 's>;
    type Connection = TcpStream;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        session: &mut Self::Target,
        connection: &mut TcpStream,
    ) -> Result<Event<Self::StopReason>, WaitForStopReasonError<Error, std::io::Error>> {
        let mut waiting = Waiting { connection, broken: None };
        let outcome = session.debuggee.go(&session.motion, &mut waiting);
        if let Some(error) = waiting.broken {
            return Err(WaitForStopReasonError::Connection(error));
        }
        match outcome.map_err(WaitForStopReasonError::Target)? {
            Outcome::Interrupted => match ConnectionExt::read(connection) {
                Ok(byte) => Ok(Event::IncomingData(byte)),
                Err(error) => Err(WaitForStopReasonError::Connection(error)),
            },
            outcome => Ok(Event::TargetStopped(reason(outcome, session.debuggee))),
        }
    }

    fn on_interrupt(_: &mut Self::Target) -> Result<Option<Self::StopReason>, Error> {
        Ok(Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
    }
}

fn reason(outcome: Outcome, debuggee: &Debuggee<'_, '_>) -> MultiThreadStopReason<u64> {
    // gdb wants to know which thread stopped, also where the whole timeline has.
    let any = || debuggee.threads().first().map(|thread| tid(*thread));
    match outcome {
        Outcome::Stepped(thread) => {
            MultiThreadStopReason::SignalWithThread { tid: tid(thread), signal: Signal::SIGTRAP }
        }
        Outcome::Breakpoint(thread) => MultiThreadStopReason::SwBreak(tid(thread)),
        Outcome::Access(thread, hit) => {
            let kind = if hit.store { WatchKind::Write } else { WatchKind::Read };
            MultiThreadStopReason::Watch { tid: tid(thread), kind, addr: hit.address }
        }
        Outcome::Start => MultiThreadStopReason::ReplayLog { tid: any(), pos: ReplayLogPosition::Begin },
        Outcome::End => MultiThreadStopReason::ReplayLog { tid: any(), pos: ReplayLogPosition::End },
        Outcome::Interrupted => MultiThreadStopReason::Signal(Signal::SIGINT),
        Outcome::Gone => MultiThreadStopReason::Exited(0),
    }
}
