//! Answers to gdb's packets.

use std::num::NonZeroUsize;

use everett_cpu::Watchpoint;
use everett_input::units::{Vtime, parse_duration_ns};
use everett_session::debug::cursor::Aim;
use gdbstub::common::{Signal, Tid};
use gdbstub::outputln;
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};

use crate::limits::{POINTS_MAX, READ_BYTES_MAX};
use crate::motion::Motion;
use crate::registers::{Registers, X86_64, description};
use crate::{Debuggee, Error, Subject};

/// A debuggee with the motion that gdb has asked for.
pub(crate) struct Session<'r, 'd, 's> {
    pub(crate) debuggee: &'r mut Debuggee<'d, 's>,
    pub(crate) motion: Motion,
}

/// Returns gdb's ID of a thread. gdb has no thread 0.
pub(crate) fn tid(number: u32) -> Tid {
    NonZeroUsize::new(number as usize).unwrap_or(NonZeroUsize::MIN)
}

fn number(tid: Tid) -> u32 {
    u32::try_from(tid.get()).unwrap_or(u32::MAX)
}

impl Target for Session<'_, '_, '_> {
    type Arch = X86_64;
    type Error = Error;

    fn base_ops(&mut self) -> BaseOps<'_, X86_64, Error> {
        BaseOps::MultiThread(self)
    }
    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }
    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        (self.debuggee.view.subject != Subject::Kernel).then_some(self as _)
    }
    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Session<'_, '_, '_> {
    fn read_registers(&mut self, registers: &mut Registers, thread: Tid) -> TargetResult<(), Self> {
        let general = self.debuggee.registers(number(thread)).ok_or(TargetError::NonFatal)?;
        let floating = self.debuggee.floating_registers(number(thread));
        *registers = Registers { general, floating, has_avx: self.debuggee.has_avx() };
        Ok(())
    }
    fn write_registers(&mut self, _: &Registers, _: Tid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }
    fn read_addrs(&mut self, start: u64, data: &mut [u8], _: Tid) -> TargetResult<usize, Self> {
        // The stub asks for a longer answer in parts, and continues after a part that is not whole. Then bytes would be
        // missing in the middle.
        if data.len() > READ_BYTES_MAX {
            return Err(TargetError::NonFatal);
        }
        match self.debuggee.read(start, data) {
            0 if !data.is_empty() => Err(TargetError::NonFatal),
            read => Ok(read),
        }
    }
    fn write_addrs(&mut self, _: u64, _: &[u8], _: Tid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }
    fn list_active_threads(&mut self, active: &mut dyn FnMut(Tid)) -> Result<(), Error> {
        self.debuggee.threads().into_iter().for_each(|thread| active(tid(thread)));
        Ok(())
    }
    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }
    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Session<'_, '_, '_> {
    fn thread_extra_info(&self, thread: Tid, buf: &mut [u8]) -> Result<usize, Error> {
        let name = self.debuggee.name(number(thread)).unwrap_or_default();
        Ok(copy(name.as_bytes(), 0, buf))
    }
}

impl MultiThreadResume for Session<'_, '_, '_> {
    fn resume(&mut self) -> Result<(), Error> {
        Ok(())
    }
    fn clear_resume_actions(&mut self) -> Result<(), Error> {
        self.motion = Motion::Continue;
        Ok(())
    }
    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), Error> {
        Ok(())
    }
    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }
    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }
    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Session<'_, '_, '_> {
    fn set_resume_action_step(&mut self, thread: Tid, _: Option<Signal>) -> Result<(), Error> {
        self.motion = Motion::Step(number(thread));
        Ok(())
    }
}

impl MultiThreadRangeStepping for Session<'_, '_, '_> {
    fn set_resume_action_range_step(&mut self, thread: Tid, start: u64, end: u64) -> Result<(), Error> {
        self.motion = Motion::StepOut(number(thread), start..end);
        Ok(())
    }
}

impl ReverseStep<Tid> for Session<'_, '_, '_> {
    fn reverse_step(&mut self, thread: Tid) -> Result<(), Error> {
        self.motion = Motion::StepBack(number(thread));
        Ok(())
    }
}

impl ReverseCont<Tid> for Session<'_, '_, '_> {
    fn reverse_cont(&mut self) -> Result<(), Error> {
        self.motion = Motion::ContinueBack;
        Ok(())
    }
}

impl Breakpoints for Session<'_, '_, '_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }
    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }
    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl Session<'_, '_, '_> {
    fn add(&mut self, address: u64) -> bool {
        let points = &mut self.debuggee.view.breakpoints;
        points.len() < POINTS_MAX && {
            points.insert(address);
            true
        }
    }
}

impl SwBreakpoint for Session<'_, '_, '_> {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.add(address))
    }
    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.debuggee.view.breakpoints.remove(&address))
    }
}

impl HwBreakpoint for Session<'_, '_, '_> {
    fn add_hw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.add(address))
    }
    fn remove_hw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.debuggee.view.breakpoints.remove(&address))
    }
}

fn watchpoint(address: u64, len: u64, kind: WatchKind) -> Watchpoint {
    Watchpoint { address, len, loads: kind != WatchKind::Write, stores: kind != WatchKind::Read }
}

impl HwWatchpoint for Session<'_, '_, '_> {
    fn add_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        let points = &mut self.debuggee.view.watchpoints;
        if len == 0 || points.len() >= POINTS_MAX {
            return Ok(false);
        }
        points.push(watchpoint(address, len, kind));
        Ok(true)
    }
    fn remove_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        let points = &mut self.debuggee.view.watchpoints;
        let place = points.iter().position(|point| *point == watchpoint(address, len, kind));
        Ok(place.map(|place| points.remove(place)).is_some())
    }
}

impl Auxv for Session<'_, '_, '_> {
    fn get_auxv(&self, offset: u64, _: usize, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let vector = self.debuggee.auxiliary().ok_or(TargetError::NonFatal)?;
        Ok(copy(&vector, offset, buf))
    }
}

impl TargetDescriptionXmlOverride for Session<'_, '_, '_> {
    fn target_description_xml(
        &self,
        _: &[u8],
        offset: u64,
        _: usize,
        buf: &mut [u8],
    ) -> TargetResult<usize, Self> {
        Ok(copy(description(self.debuggee.has_avx()).as_bytes(), offset, buf))
    }
}

/// Copies the bytes of `from` that begin at `offset`. Returns their number.
fn copy(from: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| from.get(offset..)).unwrap_or_default();
    let count = rest.len().min(buf.len());
    buf[..count].copy_from_slice(&rest[..count]);
    count
}

/// Answer to an unknown command of `monitor`.
const HELP: &str = "monitor vtime         vtime since power-on
monitor digest        digest of the world at this instant
monitor seek VTIME    moves to a vtime such as 3.2s; then type: maintenance flush register-cache";

impl MonitorCmd for Session<'_, '_, '_> {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Error> {
        let command = String::from_utf8_lossy(command);
        match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["vtime"] => {}
            ["digest"] => outputln!(out, "{}", self.debuggee.cursor.digest()),
            ["seek", at] => match parse_duration_ns(at) {
                Ok(vtime_ns) => {
                    self.debuggee.cursor.seek(Aim::Vtime(vtime_ns), &mut ())?;
                }
                Err(error) => outputln!(out, "{error}"),
            },
            _ => {
                outputln!(out, "{HELP}");
                return Ok(());
            }
        }
        let position = self.debuggee.cursor.position(self.debuggee.view.node);
        outputln!(out, "{} s", Vtime(position.vtime_ns).to_string().trim());
        Ok(())
    }
}
