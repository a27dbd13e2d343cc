//! Execution of a list of requests to an agent (Everett's program in the guest), one after the other, for image builds.
//!
//! Each request is sent at the vtime at which the answer to the previous request arrived. The same steps on two equal
//! new machines therefore always give the same run.

use everett_guest_image::configure::Step;
use everett_input::causes::with_causes;
use everett_protocol::{
    LineSplitter, Message, Operation, Port, Reply, Request, VERSION, decode_message, encode_request,
};
use everett_vmm::machine::{Machine, Stop, Until};

use everett_input::text::printable;

/// Time limit of a step, in nanoseconds of vtime: four hours. The host skips idle vtime at no cost.
const STEP_NS_MAX: u64 = 4 * 3_600_000_000_000;
/// Longest run of the machine before its output is read, in nanoseconds of vtime.
const SLICE_NS: u64 = 100_000_000;
/// Number of lines of output that an error quotes.
const LINES_QUOTED: usize = 5;

/// Callbacks to the caller while the steps run.
pub trait Attend {
    /// Receives a line that a command printed.
    fn line(&mut self, line: &str);
    /// Returns false if the caller wants to interrupt the steps.
    fn go_on(&mut self) -> bool;
}

/// Executes the steps. Returns the length of the tar archive of the last [`Operation::Pack`], in bytes, or `None` if no
/// step packs an archive.
///
/// # Errors
/// Returns an error of one line that names the step if the boot or a step fails, takes too long or is interrupted.
pub fn run(machine: &mut Machine, steps: &[Step], attend: &mut dyn Attend) -> Result<Option<u64>, String> {
    let mut link = Link {
        machine,
        splitter: LineSplitter::control(),
        attend,
        recent: Vec::new(),
        console: Vec::new(),
        ended: false,
    };
    let mut packed = None;
    link.hello().map_err(|why| format!("boot the machine: {why}"))?;
    for (id, step) in (1..).zip(steps) {
        let reply = link.ask(id, &step.op).map_err(|why| format!("{}: {why}", step.what))?;
        match reply {
            Reply::Done => {}
            Reply::Exited(exit) if exit.success() => {}
            Reply::Exited(exit) => return Err(format!("{}: {exit}{}", step.what, link.quote())),
            Reply::Packed { bytes, .. } => packed = Some(bytes),
            Reply::Error { message } => return Err(format!("{}: {message}", step.what)),
            reply @ (Reply::Names(_) | Reply::Damaged { .. }) => {
                return Err(format!("{}: the agent answers {reply:?}", step.what));
            }
        }
    }
    Ok(packed)
}

struct Link<'a> {
    machine: &'a mut Machine,
    splitter: LineSplitter,
    attend: &'a mut dyn Attend,
    recent: Vec<String>,
    console: Vec<u8>,
    /// True if the machine has stopped. Its last output may still be unread.
    ended: bool,
}

impl Link<'_> {
    fn hello(&mut self) -> Result<(), String> {
        match self.next_message(self.machine.vtime().saturating_add(STEP_NS_MAX))? {
            Message::Hello(hello) if hello.version == VERSION => Ok(()),
            Message::Hello(hello) => {
                Err(format!("the agent speaks protocol {}, this Everett {VERSION}", hello.version))
            }
            Message::Error { message } => Err(message),
            other => Err(format!("the agent begins with {other:?}")),
        }
    }

    fn ask(&mut self, id: u64, op: &Operation) -> Result<Reply, String> {
        let line = encode_request(&Request { id, op: op.clone() }).map_err(|e| with_causes(&e))?;
        let last_ns = self.machine.vtime().saturating_add(STEP_NS_MAX);
        let mut rest = &line[..];
        while !rest.is_empty() {
            let taken = self.machine.port_input(Port::Control as usize, rest);
            rest = &rest[taken.min(rest.len())..];
            if !rest.is_empty() {
                self.step(last_ns)?;
            }
        }
        loop {
            match self.next_message(last_ns)? {
                Message::Response(response) if response.id == id => return Ok(response.reply),
                Message::Output(output) => {
                    let text = output.text.to_str_lossy().into_owned();
                    self.attend.line(&text);
                    if self.recent.len() == LINES_QUOTED {
                        self.recent.remove(0);
                    }
                    self.recent.push(text);
                }
                Message::Error { message } => return Err(message),
                Message::Ready | Message::Exited(_) => {}
                other => return Err(format!("the agent answers with {other:?}")),
            }
        }
    }

    fn next_message(&mut self, last_ns: u64) -> Result<Message, String> {
        loop {
            if let Some(line) = self.splitter.next_line() {
                return line.and_then(|line| decode_message(&line)).map_err(|e| with_causes(&e));
            }
            self.step(last_ns)?;
        }
    }

    /// Runs the machine until the agent has sent a whole line, but at most for [`SLICE_NS`].
    fn step(&mut self, last_ns: u64) -> Result<(), String> {
        let slice_ns = self.machine.vtime().saturating_add(SLICE_NS);
        let stop = self.machine.run(&Until::vtime(slice_ns).or_port_lines(1 << Port::Control as u8));
        let output = self.machine.output();
        for port in Port::ALL {
            for write in output.take_port(port as usize) {
                if port == Port::Control {
                    self.splitter.push(&write.bytes);
                }
            }
        }
        output.take_notes();
        self.console.append(&mut output.take_console());
        let superfluous = self.console.len().saturating_sub(CONSOLE_BYTES_KEPT);
        self.console.drain(..superfluous);
        match stop {
            // The first stop is no error, because the output may hold the answer to a power-off request. If the caller
            // needs more output after the stop, that is an error.
            Stop::End(end) if self.ended => {
                Err(format!("the machine stopped: {end}{}", self.quote_console()))
            }
            Stop::End(_) => {
                self.ended = true;
                Ok(())
            }
            _ if self.machine.vtime() >= last_ns => {
                let (output, console) = (self.quote(), self.quote_console());
                Err(format!("no answer in four hours of virtual time{output}{console}"))
            }
            _ if !self.attend.go_on() => Err("interrupted".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns the last lines that commands printed, joined to one line for an error.
    fn quote(&self) -> String {
        let lines: Vec<String> = self.recent.iter().map(|line| printable(line.trim())).collect();
        if lines.is_empty() { String::new() } else { format!("; it printed: {}", lines.join(" / ")) }
    }

    fn quote_console(&self) -> String {
        let console = String::from_utf8_lossy(&self.console);
        let lines: Vec<&str> = console.lines().collect();
        let last: Vec<String> =
            lines.iter().rev().take(LINES_QUOTED).rev().map(|line| printable(line.trim())).collect();
        if last.is_empty() { String::new() } else { format!("; its console: {}", last.join(" / ")) }
    }
}

/// Number of bytes from the end of the console that errors can quote.
const CONSOLE_BYTES_KEPT: usize = 4096;
