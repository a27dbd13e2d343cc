//! Progress reports while an image is built.

/// A stage of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Choosing packages and their versions.
    Resolve,
    /// Downloading packages; `done` and `total` are in bytes.
    Download,
    /// Preparing the kernel, its modules and the initramfs.
    Kernel,
    /// Unpacking packages; `done` and `total` are numbers of packages.
    Unpack,
    /// Configuring packages in a machine; `done` and `total` are numbers of packages.
    Configure,
    /// Fetching and unpacking a container image; `done` and `total` are numbers of layers.
    Image,
    /// Writing the root filesystem.
    Root,
}

impl Stage {
    /// Returns a title for display.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Stage::Resolve => "resolving packages",
            Stage::Download => "downloading packages",
            Stage::Kernel => "preparing the kernel",
            Stage::Unpack => "unpacking packages",
            Stage::Configure => "configuring packages in a machine",
            Stage::Image => "unpacking a container image",
            Stage::Root => "writing the root filesystem",
        }
    }
}

/// Receiver of progress reports.
pub trait BuildProgress {
    /// Reports that a stage is at `done` of `total`. Each stage starts with 0 and ends with `done == total`. A `total`
    /// of 0 means that the amount of work is unknown.
    fn at(&mut self, stage: Stage, done: u64, total: u64);

    /// Reports a line that a machine printed while it configured packages.
    fn line(&mut self, line: &str) {
        let _ = line;
    }
}

/// A receiver that ignores all reports.
#[derive(Debug, Default)]
pub struct Silent;

impl BuildProgress for Silent {
    fn at(&mut self, _: Stage, _: u64, _: u64) {}
}
