//! Prints the content of docs/bounds.md, a page that lists the bounds: constants whose names end in `_MAX` or `_MIN`.

use std::io;

use everett_lint::{bounds, files};

fn main() -> io::Result<()> {
    print!("{}", bounds::page(files::top())?);
    Ok(())
}
