//! `everett pcap`: writes the frames on the wire up to an instant as a capture, for Wireshark and similar tools.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use everett_host::interrupt::Interrupt;
use everett_input::units::Vtime;
use everett_session::explore::path_runner::{PathRunner, Watch};
use everett_session::world::event::{Event, What};
use everett_vmm::wire::log::{FrameStep, FrameStepKind};
use everett_vmm::wire::pcapng::{Outcomes, PcapNg};
use everett_vmm::world::Captured;
use serde::Serialize;

use super::super::Outcome;
use super::instant::{Instant, SpanArgs};
use super::new_file::NewFile;
use crate::ui::{Ui, printable, style};

/// `everett pcap`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The span of time
    #[command(flatten)]
    pub span: SpanArgs,
    /// New file for the capture (pcap-ng), or - for standard output
    #[arg(short, long, value_name = "FILE|-")]
    pub output: PathBuf,
    /// Write times as vtime since power-on. Default: dates, as the guests' clocks began to show them
    #[arg(long)]
    pub vtime: bool,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line {
    kind: &'static str,
    file: String,
    packets: u64,
    /// Frames that are missing because too many came at once.
    missing: u64,
    until_ns: u64,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    if args.output.as_os_str() == "-" {
        if ui.json {
            anyhow::bail!("--json: with --output -, standard output has the capture; write it to a file");
        }
        // Standard output has the capture, so nothing else may be printed there.
        let silent = Ui { json: true, bars: false };
        let instant = Instant::end_of(&silent, &args.span, &interrupt)?;
        let (missing, _) = capture(&instant, args, io::stdout().lock(), &interrupt)?;
        if missing > 0 {
            anstream::eprintln!("{}", style::paint(style::BAD, lacks(missing)));
        }
        return Ok(Outcome::Fine);
    }
    let file = NewFile::create(&args.output)?;
    let instant = Instant::end_of(ui, &args.span, &interrupt)?;
    let (missing, packets) = capture(&instant, args, file.file(), &interrupt)?;
    file.keep()?;
    let path = args.output.display().to_string();
    ui.say(printable(&format!("{path}: {packets} packets")))?;
    if missing > 0 {
        ui.say(style::paint(style::BAD, lacks(missing)))?;
    }
    ui.record(&Line { kind: "pcap", file: path, packets, missing, until_ns: instant.at_ns })?;
    instant.warn_of_engine(ui)?;
    Ok(Outcome::Fine)
}

fn lacks(missing: u64) -> String {
    format!("the capture lacks {missing} frames, because too many came at once")
}

/// Runs the branch and writes the capture. Returns the numbers of missing frames and of packets.
fn capture<W: Write>(
    instant: &Instant,
    args: &Args,
    out: W,
    interrupt: &Interrupt,
) -> anyhow::Result<(u64, u64)> {
    let mut runner = PathRunner::new(&instant.setting)?;
    let world = runner.timeline().world_mut();
    world.capture(true);
    let epoch_s = if args.vtime { 0 } else { instant.setting.launcher.world.epoch_unix_s };
    let out = PcapNg::new(BufWriter::new(out), world.wire().ports(), epoch_s)?;
    // A world has at most 64 nodes.
    let node = args.span.node.as_ref().and_then(|node| instant.number_of(node)).map(|number| number as u8);
    let mut recorder = Recorder {
        out,
        node,
        since_ns: args.span.since.unwrap_or(0),
        notes: VecDeque::new(),
        steps: Vec::new(),
        packets: 0,
        interrupt,
        failed: None,
    };
    let followed = instant.follow(&mut runner, &mut recorder);
    // An error of the writer ends the run, so it is the first cause.
    if let Some(error) = recorder.failed.take() {
        return Err(error.into());
    }
    followed?;
    recorder.write(&[])?;
    recorder.note_until(u64::MAX);
    let packets = recorder.packets;
    recorder.out.finish()?.flush()?;
    Ok((runner.timeline().world().captured_lost(), packets))
}

/// Observer that writes the capture.
struct Recorder<'c, W: Write> {
    out: PcapNg<W>,
    /// Port of the only node whose packets are wanted.
    node: Option<u8>,
    since_ns: u64,
    /// Faults that no packet has followed yet, with their vtimes.
    notes: VecDeque<(u64, String)>,
    /// Outcomes of frames since the last frames were written.
    steps: Vec<FrameStep>,
    packets: u64,
    interrupt: &'c Interrupt,
    failed: Option<io::Error>,
}

impl<W: Write> Recorder<'_, W> {
    /// Writes frames, and between them the losses of frames that had left their cards.
    fn write(&mut self, frames: &[Captured]) -> io::Result<()> {
        let steps = std::mem::take(&mut self.steps);
        let of_frames: Vec<FrameStep> = steps.iter().filter(|step| !self.is_packet(step)).copied().collect();
        let outcomes = Outcomes::new(&of_frames);
        let mut lost: Vec<&FrameStep> = steps.iter().filter(|step| self.is_packet(step)).collect();
        lost.sort_by_key(|step| step.vtime);
        let mut lost = lost.into_iter().peekable();
        for frame in frames {
            while let Some(step) = lost.next_if(|step| step.vtime < frame.at()) {
                self.lost(step)?;
            }
            let (Captured::Sent { port, .. } | Captured::Delivered(everett_vmm::wire::Delivery { port, .. })) =
                frame;
            if !self.is_wanted(*port, frame.at()) {
                continue;
            }
            self.note_until(frame.at());
            self.packets += 1;
            match frame {
                Captured::Sent { port, at, frame, bytes } => {
                    self.out.sent(*port, *at, *frame, bytes, &outcomes)?;
                }
                Captured::Delivered(delivery) => self.out.delivered(delivery, &outcomes)?,
            }
        }
        lost.try_for_each(|step| self.lost(step))
    }

    /// True if a loss is a packet of its own. A loss at sending is a comment on the sent packet, but if only the
    /// receiver's packets are wanted, there is no such packet.
    fn is_packet(&self, step: &FrameStep) -> bool {
        let at_sending = step.vtime == step.sent_at && self.node.is_none_or(|node| node == step.from);
        matches!(step.kind, FrameStepKind::Drop { .. }) && !at_sending
    }

    fn lost(&mut self, step: &FrameStep) -> io::Result<()> {
        if !self.is_wanted(step.to.unwrap_or(step.from), step.vtime) {
            return Ok(());
        }
        self.note_until(step.vtime);
        self.packets += 1;
        self.out.lost(step)
    }

    fn is_wanted(&self, port: u8, vtime_ns: u64) -> bool {
        vtime_ns >= self.since_ns && self.node.is_none_or(|node| node == port)
    }

    /// Adds the faults up to a vtime to the comments on the next packet.
    fn note_until(&mut self, vtime_ns: u64) {
        let due = self.notes.partition_point(|(at, _)| *at <= vtime_ns);
        for (_, note) in self.notes.drain(..due) {
            self.out.comment(note);
        }
    }
}

impl<W: Write> Watch for Recorder<'_, W> {
    fn event(&mut self, event: &Event) {
        let at = Vtime(event.vtime_ns).to_string();
        let at = at.trim();
        let note = match &event.what {
            What::Fault { id, line } => format!("{at} s: fault #{id} begins: {}", printable(line)),
            What::Healed { id } => format!("{at} s: fault #{id} ends"),
            What::Effect { text } => format!("{at} s: {}", printable(text)),
            _ => return,
        };
        if event.vtime_ns >= self.since_ns {
            self.notes.push_back((event.vtime_ns, note));
        }
    }

    fn message(&mut self, step: &FrameStep) {
        self.steps.push(*step);
    }

    fn frames(&mut self, frames: &[Captured]) {
        if let Err(error) = self.write(frames) {
            self.failed.get_or_insert(error);
        }
    }

    fn at(&mut self, _: u64) -> bool {
        !self.interrupt.wanted() && self.failed.is_none()
    }
}
