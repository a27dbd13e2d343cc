//! Images for guests: kernels, initramfs, root filesystems, and the agent that runs in them.
//!
//! [`image::build`] is the way in: from what a world asks for ([`image::ImageSpec`]) to the files that its machines
//! boot ([`image::Image`]). On the way, from the outside in:
//!
//! - [`image`]: the stages, and what each takes from the [`cache`] and the [`lock`].
//! - [`apt`]: packages by name, from the host's mirrors. [`debian`]: packages as files, and dpkg's records of them.
//! - [`configure`]: what a machine has to do to configure packages. The machine itself is the caller's.
//! - [`kernel`]: `vmlinux` and modules out of what distributions ship. [`initramfs`], [`agent`]: what boots first.
//! - [`tree`]: a root filesystem in memory, read from a [`folder`] or an [`archive`], written as a [`squashfs`].
//! - [`programs`]: ELF files of such an image, for observers.
//! - [`compression`], [`progress`]: what they all use.
//!
//! **Invariants.** Equal inputs make equal bytes: everything is written in the order of names, times are clamped to
//! the image's own, nothing of this host (paths, clock, users) goes in. A cache entry that is not intact is made
//! again, never used. Nothing here needs root, and nothing is installed on the host. Packages, archives and locks
//! are input like any other: what is wrong with them is an error with their name in it, never a panic.
//!
//! What is not here: machines (`vmm`), and world files (`tools`).

pub mod agent;
pub mod apt;
pub mod archive;
pub mod cache;
pub mod compression;
pub mod configure;
pub mod debian;
pub mod folder;
pub mod image;
pub mod initramfs;
pub mod kernel;
pub mod lock;
pub mod programs;
pub mod progress;
pub mod squashfs;
pub mod tree;

pub use cache::Cache;
pub use configure::Configure;
pub use image::{Image, ImageSpec, KernelSource, RootSource, build};
pub use progress::{Progress, Silent, Stage};
