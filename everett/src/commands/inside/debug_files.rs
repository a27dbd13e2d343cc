//! The option `--debug-files`: folders with separate debug files of programs.

use std::path::PathBuf;

use anyhow::bail;
use everett_session::inside::debug_files::DebugFolders;

/// Arguments that name folders with debug files.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DebugFilesArgs {
    /// Folder with separate debug files, by build ID: an unpacked debug package, /usr/lib/debug, or a cache of
    /// debuginfod. Can be repeated
    #[arg(long, value_name = "FOLDER")]
    pub debug_files: Vec<PathBuf>,
}

impl DebugFilesArgs {
    /// Returns the folders. Fails if one does not exist.
    pub(in super::super) fn folders(&self) -> anyhow::Result<DebugFolders> {
        if let Some(folder) = self.debug_files.iter().find(|folder| !folder.is_dir()) {
            bail!("--debug-files: {}: no such folder", folder.display());
        }
        Ok(DebugFolders::new(self.debug_files.clone()))
    }
}
