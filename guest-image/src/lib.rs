//! Builds guest images: kernels, initramfs, root filesystems, and the agent, Everett's program in each guest.
//!
//! [`image::build`] is the entry point. It turns a world's request ([`image::ImageSpec`]) into the files that the
//! world's machines boot ([`image::BuiltImage`]). Each module uses only modules below it:
//!
//! - [`image`]: builds an image, stage by stage.
//! - [`mirror`]: downloads kernels, and packages of known versions, on hosts without apt.
//! - [`lock`]: reads and writes `world.lock`, the list of the exact packages of an image.
//! - [`apt`]: chooses and downloads packages with the host's `apt-get`.
//! - [`configure`]: makes the requests with which the agent configures packages in a guest. The crate's caller provides
//!   the machine for this guest.
//! - [`debian`]: reads and unpacks packages, and writes dpkg's records of them.
//! - [`initramfs`]: makes the archive that the kernel boots with. [`agent`]: the program that is PID 1 in the
//!   initramfs.
//! - [`kernel`]: extracts `vmlinux` and modules from a distribution's kernel.
//! - [`programs`]: reads the ELF files of an image.
//! - [`oci`]: makes root filesystems from container images.
//! - [`folder`] and [`archive`]: read a root filesystem from a folder or an archive. [`squashfs`]: writes it as a
//!   SquashFS.
//! - [`tree`]: a root filesystem in memory.
//! - [`shim`], [`init`], [`inside`], [`sdk`]: the paths at which guests find the programs of `everett-guest-programs`, and the
//!   programs' options.
//! - [`ext4`]: makes empty filesystems for data disks.
//! - [`cache`]: the cache of downloaded and built files.
//! - [`compression`]: decompresses files. [`progress`]: reports the progress of a build. [`space`]: keeps disk space
//!   free.
//!
//! **Invariants.** Equal inputs make equal bytes. Files are written in the order of their names. No modification time
//! is later than [`image::ImageSpec::time_s`]. The host's paths and clock have no effect. A damaged cache entry is made
//! again and never used. No step needs root, and nothing is installed on the host. Packages, archives and locks are
//! untrusted input: a defect in a file is an error that names the file, never a panic.
//!
//! Not here: machines (`vmm`) and world files (`world-file`).

pub mod agent;
pub mod apt;
pub mod archive;
pub mod cache;
pub mod compression;
pub mod configure;
pub mod debian;
pub mod ext4;
pub mod folder;
pub mod image;
pub mod init;
pub mod initramfs;
pub mod inside;
pub mod kernel;
pub mod lock;
pub mod mirror;
pub mod oci;
pub mod programs;
pub mod progress;
pub mod sdk;
pub mod shim;
pub mod space;
pub mod squashfs;
pub mod tree;

pub use cache::Cache;
pub use configure::Configure;
pub use image::{BuiltImage, ImageSpec, KernelSource, RootSource, build};
pub use progress::{BuildProgress, Silent, Stage};
