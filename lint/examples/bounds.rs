//! Prints the page of all bounds, docs/bounds.md.

use std::io;

use everett_lint::{bounds, files};

fn main() -> io::Result<()> {
    print!("{}", bounds::page(files::top())?);
    Ok(())
}
