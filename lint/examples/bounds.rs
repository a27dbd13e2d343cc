//! Prints the page of all bounds, docs/bounds.md.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    print!("{}", everett_lint::bounds::page(top)?);
    Ok(())
}
