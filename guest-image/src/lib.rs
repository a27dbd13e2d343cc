//! Guest images: kernels, initramfs, root filesystems, and the agent that runs in them.
//!
//! [`image::build`] is the entry point. It turns a world's request ([`image::ImageSpec`]) into the files that the
//! world's machines boot ([`image::BuiltImage`]). The modules, from the outside in:
//!
//! - [`image`]: the stages of a build, with the [`cache`] and the [`lock`].
//! - [`apt`]: choice and download of packages through the host's apt. [`mirror`]: download of kernels and of locked
//!   packages on hosts without apt.
//! - [`debian`]: reading and unpacking of packages, and dpkg's records of them.
//! - [`configure`]: the steps by which a machine configures packages. The caller provides the machine.
//! - [`kernel`]: extraction of `vmlinux` and modules from a distribution's kernel.
//! - [`initramfs`]: the archive that the kernel boots with. [`agent`]: the program that is PID 1 in the initramfs.
//! - [`tree`]: a root filesystem in memory. It is read from a [`folder`] or an [`archive`] and written as a
//!   [`squashfs`].
//! - [`oci`]: container images as root filesystems.
//! - [`shim`], [`init`], [`sdk`]: paths and options in guests of the programs that `everett-guest-programs` includes.
//! - [`ext4`]: empty filesystems for data disks.
//! - [`programs`]: a list of the ELF files of an image.
//! - [`compression`], [`progress`], [`space`]: helpers for the other modules.
//!
//! **Invariants.** Equal inputs make equal bytes. Files are written in the order of their names. No modification time
//! is later than the image's own time. The host's paths and clock have no effect. A damaged cache entry is made again
//! and never used. No step needs root, and nothing is installed on the host. Packages, archives and locks are untrusted
//! input: a defect in a file is an error that names the file, never a panic.
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
