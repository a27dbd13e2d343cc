//! Build script: builds the guest programs. `src/lib.rs` includes the bytes of these programs.

#[path = "../nested.rs"]
mod nested;

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Compiler flags for a shared object that does not use a C library.
const LIBRARY_FLAGS: [&str; 3] =
    ["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles", "-Clink-arg=-Wl,-soname,libvoidstar.so"];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let guest_image = here.parent().unwrap_or(Path::new("."));
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    for (folder, binary, variable) in [
        ("shim", "everett-shim", "EVERETT_SHIM"),
        ("init", "everett-init", "EVERETT_INIT"),
        ("inside", "everett-inside", "EVERETT_INSIDE"),
        ("sdk/collector", "everett-collector", "EVERETT_SDK_COLLECTOR"),
    ] {
        let folder = guest_image.join(folder);
        let built =
            nested::build(guest_image, &folder, &out.join("programs-target"), &nested::PROGRAM_FLAGS)?;
        println!("cargo::rustc-env={variable}={}", built.join(binary).display());
    }
    // The library has its own compiler flags. In a shared target folder, cargo would build everything again after each
    // change of flags, so the library has a target folder of its own.
    let folder = guest_image.join("sdk/library");
    let built = nested::build(guest_image, &folder, &out.join("library-target"), &LIBRARY_FLAGS)?;
    println!("cargo::rustc-env=EVERETT_SDK_LIBRARY={}", built.join("libvoidstar.so").display());
    Ok(())
}
