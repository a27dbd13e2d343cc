//! Options that choose the engine: `--engine`, `--allow-inexact` and `--patience`.

use std::time::Duration;

use everett_input::units;
use everett_session::machines::engines::{self, Asked};

/// Engine options of every command that executes a guest.
#[derive(Debug, Clone, clap::Args)]
pub struct EngineArgs {
    /// Engine that executes guest code
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
    /// With --engine kvm: run even if /dev/kvm is not proved exact on this host; marks every result as inexact
    #[arg(long)]
    pub allow_inexact: bool,
    /// On /dev/kvm: give up if a guest computes for this much host time without an exit
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "60s")]
    pub patience: u64,
}

impl EngineArgs {
    pub(super) fn asked(&self) -> Asked {
        let patience = Duration::from_nanos(self.patience);
        Asked { engine: self.engine.into(), allow_inexact: self.allow_inexact, patience }
    }
}

/// Engine that executes guest code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineChoice {
    /// The fastest engine that is proved exact on this host
    Auto,
    /// Everett's own x86-64 CPU; exact on all hosts tried so far
    Soft,
    /// The host's /dev/kvm
    Kvm,
}

impl From<EngineChoice> for engines::EngineChoice {
    fn from(choice: EngineChoice) -> engines::EngineChoice {
        match choice {
            EngineChoice::Auto => engines::EngineChoice::Auto,
            EngineChoice::Soft => engines::EngineChoice::Soft,
            EngineChoice::Kvm => engines::EngineChoice::Kvm,
        }
    }
}
