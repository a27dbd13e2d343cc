//! How far a build is, for whoever waits for it.

/// A part of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Which packages, in which versions.
    Resolve,
    /// Fetching them; counted in bytes.
    Download,
    /// The kernel, its modules and the initramfs.
    Kernel,
    /// Unpacking packages; counted in packages.
    Unpack,
    /// Configuring them in a machine; counted in packages.
    Configure,
    /// Writing the root filesystem.
    Root,
}

impl Stage {
    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Stage::Resolve => "resolving packages",
            Stage::Download => "downloading packages",
            Stage::Kernel => "preparing the kernel",
            Stage::Unpack => "unpacking packages",
            Stage::Configure => "configuring packages in a machine",
            Stage::Root => "writing the root filesystem",
        }
    }
}

/// Gets news of a build.
pub trait Progress {
    /// A stage is at `done` of `total`. Each stage starts with 0 and ends with `done == total`; a total of 0 means that
    /// it is not known.
    fn at(&mut self, stage: Stage, done: u64, total: u64);

    /// A line that a machine printed while it configured packages.
    fn line(&mut self, line: &str) {
        let _ = line;
    }
}

/// For whoever does not want to know.
#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn at(&mut self, _: Stage, _: u64, _: u64) {}
}
