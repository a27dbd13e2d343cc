//! Builds the programs for guests, which `src/agent.rs`, `src/shim.rs`, `src/init.rs` and `src/sdk.rs` include.
//!
//! They run on another machine. They are static, small and contain no path of this host, so that equal sources make
//! equal images. They are therefore built by a nested cargo with their own lock files, profiles and target directory,
//! and without the settings of the outer build.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Flags of static programs.
const PROGRAM_FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
/// Flags of a shared object without a C library.
const LIBRARY_FLAGS: [&str; 3] =
    ["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles", "-Clink-arg=-Wl,-soname,libvoidstar.so"];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let agent = here.join("agent");
    let protocol = agent.join("protocol");
    let (shim, init) = (here.join("shim"), here.join("init"));
    let (library, collector) = (here.join("sdk/library"), here.join("sdk/collector"));
    for folder in [&agent, &shim, &init, &library, &collector] {
        for part in ["src", "Cargo.toml", "Cargo.lock"] {
            println!("cargo::rerun-if-changed={}", folder.join(part).display());
        }
    }
    for path in [protocol.join("src"), protocol.join("Cargo.toml")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    // Tests of `src/apt` need the host's apt; without it they are ignored.
    println!("cargo::rustc-check-cfg=cfg(has_apt)");
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if is_there("apt-get") && (is_there("gpgv") || is_there("sqv")) {
        println!("cargo::rustc-cfg=has_apt");
    }

    let target_folder = out.join("agent-target");
    for (folder, binary, variable) in [
        (agent, "everett-agent", "EVERETT_AGENT"),
        (shim, "everett-shim", "EVERETT_SHIM"),
        (init, "everett-init", "EVERETT_INIT"),
        (collector, "everett-collector", "EVERETT_SDK_COLLECTOR"),
    ] {
        build(&here, &folder, &target_folder, &PROGRAM_FLAGS)?;
        let binary = target_folder.join(TARGET).join("release").join(binary);
        println!("cargo::rustc-env={variable}={}", binary.display());
    }
    // Other flags build everything again, so the library has a folder of its own.
    let target_folder = out.join("library-target");
    build(&here, &library, &target_folder, &LIBRARY_FLAGS)?;
    let library = target_folder.join(TARGET).join("release/libvoidstar.so");
    println!("cargo::rustc-env=EVERETT_SDK_LIBRARY={}", library.display());
    Ok(())
}

/// Builds the program in `folder`, a workspace of its own.
fn build(here: &Path, folder: &Path, target_folder: &Path, own_flags: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.arg("build").arg("--release").arg("--locked").arg("--target").arg(TARGET);
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(target_folder);
    for (name, _) in env::vars() {
        // Removes variables that cargo set for this package, and settings of the host's build (flags, wrappers,
        // profiles). Keeps those for cargo's registry and network.
        let of_this_build = ["CARGO_PKG_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_BUILD_", "CARGO_PROFILE_"];
        let wrapper = name == "RUSTC_WRAPPER" || name == "RUSTC_WORKSPACE_WRAPPER";
        if of_this_build.iter().any(|prefix| name.starts_with(prefix))
            || name.contains("RUSTFLAGS")
            || wrapper
        {
            cargo.env_remove(name);
        }
    }
    for name in [
        "CARGO_TARGET_DIR",
        "CARGO_MAKEFLAGS",
        // Incremental compilation splits code into different units, which changes the bytes.
        "CARGO_INCREMENTAL",
        "TARGET",
        "OUT_DIR",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
    ] {
        cargo.env_remove(name);
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(here, own_flags)?.join("\u{1f}"));

    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building {} for guests failed: {status}", folder.display()).into());
    }
    Ok(())
}

fn flags(here: &Path, own: &[&str]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut flags: Vec<String> = own.iter().map(|&flag| flag.to_owned()).collect();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    // Panic messages contain source paths; paths of this host are replaced by fixed ones.
    for (from, to) in [(home, "cargo"), (Some(here.to_path_buf()), "guest-image")] {
        if let Some(from) = from {
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        }
    }
    Ok(flags)
}
