//! Images for guests: kernels, initramfs, root filesystems, and the agent that runs in them.

pub mod agent;
pub mod compression;
pub mod initramfs;
pub mod kernel;
pub mod squashfs;
pub mod tree;
