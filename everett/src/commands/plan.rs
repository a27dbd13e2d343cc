//! `everett plan`: prints the fault plan that a seed draws for a world. The operator can edit it and pass it to
//! `--faults`.

use std::path::PathBuf;

use everett_explorer::plan::draw::draw;
use everett_explorer::plan::limits::{AT_NS_MAX, LINES_MAX, PLAN_BYTES_MAX};
use everett_input::units::{self, show_duration_ns};
use everett_streams::{Lineage, Owner, Seed, Streams};
use serde::Serialize;

use super::{Outcome, common};
use crate::ui::Ui;

/// `everett plan`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The world file; its `[faults]` table sets the kinds of faults, their rates and strengths
    pub world: PathBuf,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,
    /// Length of the plan, in vtime after the moment at which all services are ready
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "20s")]
    pub duration_ns: u64,
}

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    seed: Seed,
    for_ns: u64,
    lines: Vec<&'a str>,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let world = common::load(&args.world)?;
    let seed = args.seed.or(world.seed).unwrap_or_default();
    if args.duration_ns > AT_NS_MAX {
        anyhow::bail!("--for: a plan lasts at most {}", show_duration_ns(AT_NS_MAX));
    }
    let mut streams = Streams::new(&Lineage::new(seed), Owner::Plan);
    let drawn = draw(&world.faults, &world.names(), args.duration_ns, &mut streams);
    if let Some(at_ns) = drawn.full_at_ns {
        anyhow::bail!(
            "the plan is full ({LINES_MAX} lines or {PLAN_BYTES_MAX} bytes) at {}; draw faults less often, or for a shorter time",
            show_duration_ns(at_ns)
        );
    }
    let text = drawn.plan.write();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines {
        ui.say(line)?;
    }
    ui.record(&Record { kind: "plan", seed, for_ns: args.duration_ns, lines })?;
    Ok(Outcome::Fine)
}
