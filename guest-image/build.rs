//! Builds the agent (Everett's program in each guest), whose binary `src/agent.rs` includes. The other programs for
//! guests are in `programs/`.

mod nested;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let agent = here.join("agent");
    for part in ["protocol/src", "protocol/Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", agent.join(part).display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    // Tests of `src/apt` need the host's apt; without it they are ignored.
    println!("cargo::rustc-check-cfg=cfg(has_apt)");
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if is_there("apt-get") && (is_there("gpgv") || is_there("sqv")) {
        println!("cargo::rustc-cfg=has_apt");
    }

    let built = nested::build(&here, &agent, &out.join("agent-target"), &nested::PROGRAM_FLAGS)?;
    println!("cargo::rustc-env=EVERETT_AGENT={}", built.join("everett-agent").display());
    Ok(())
}
