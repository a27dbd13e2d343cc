//! Optional parts of the program: the features of the package `everett`.

use everett_remote::Access;

/// True if this build can reach registries and mirrors.
pub(crate) const ONLINE: bool = cfg!(feature = "online");
/// True if this build includes the guest programs for container images, compose files and the SDK.
pub(crate) const CONTAINERS: bool = cfg!(feature = "containers");
/// True if this build records explorations in the history of runs.
pub(crate) const HISTORY: bool = cfg!(feature = "history");
/// True if this build reads the memory of guests (`everett ps`, `everett stack`, `everett ss` and so on).
pub(crate) const INSIDE: bool = cfg!(feature = "inside");
/// True if this build has the live view of explorations.
pub(crate) const VIEW: bool = cfg!(feature = "view");

/// Returns this build's access to registries and mirrors.
#[must_use]
pub(crate) fn access() -> &'static dyn Access {
    #[cfg(feature = "online")]
    let access = &everett_remote_client::Online;
    #[cfg(not(feature = "online"))]
    let access = &everett_remote::Offline;
    access
}
