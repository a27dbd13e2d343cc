//! Builds of programs for guests, for the build scripts of the crates that include them.
//!
//! The programs run on another machine. They are static, small and contain no path of this host, so that equal sources
//! make equal images. They are therefore built by a nested cargo with their own lock files, profiles and target
//! directories, and without the settings of the outer build.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Flags of static programs.
pub(super) const PROGRAM_FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];

/// Builds the program in `folder`, a workspace of its own below `guest_image`. Returns the folder with the built
/// files.
pub(super) fn build(
    guest_image: &Path,
    folder: &Path,
    target_folder: &Path,
    own_flags: &[&str],
) -> Result<PathBuf, Box<dyn Error>> {
    for part in ["src", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", folder.join(part).display());
    }
    println!("cargo::rerun-if-changed={}", guest_image.join("nested.rs").display());
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.arg("build").arg("--release").arg("--locked").arg("--target").arg(TARGET);
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(target_folder);
    for (name, _) in env::vars() {
        // Removes variables that cargo set for this package, and settings of the host's build (flags, wrappers,
        // profiles). Keeps the variables that configure cargo's registry and network.
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
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(guest_image, own_flags)?.join("\u{1f}"));

    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building {} for guests failed: {status}", folder.display()).into());
    }
    Ok(target_folder.join(TARGET).join("release"))
}

fn flags(guest_image: &Path, own: &[&str]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut flags: Vec<String> = own.iter().map(|&flag| flag.to_owned()).collect();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    // Panic messages contain source paths; paths of this host are replaced by fixed ones.
    for (from, to) in [(home, "cargo"), (Some(guest_image.to_path_buf()), "guest-image")] {
        if let Some(from) = from {
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        }
    }
    Ok(flags)
}
