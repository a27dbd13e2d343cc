//! Parts of this build that other crates take as a parameter.

use everett_remote::Access;

/// Returns this build's access to registries and mirrors.
#[must_use]
pub fn access() -> &'static dyn Access {
    &everett_remote_client::Online
}
