//! Reads the tables `[[probe]]`.

use everett_explorer::probe::ProbeConfig;

use super::cursor::Item;
use super::error::Error;
use super::{paths, seal};

/// Reads a table `[[probe]]`. The folder of debug files is not packed into finding files, so a sealed world has none.
pub(super) fn read(item: &Item<'_>) -> Result<ProbeConfig, Error> {
    let mut probe: ProbeConfig = item.deserialize()?;
    if let Some(folder) = item.table()?.get("debug_files") {
        probe.debug_files = match seal::is_sealed() {
            true => None,
            false => Some(seal::unlisted(|| paths::host(&folder))?),
        };
    }
    Ok(probe)
}
