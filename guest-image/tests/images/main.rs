//! Tests of images: errors of the host's apt, and builds that need neither a network nor a machine.

mod apt;
mod build;
mod kernel;
