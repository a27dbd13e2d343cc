//! Paths and options of the shim, the program that starts the processes of container images in guests
//! (`guest-image/shim/`). The crate `everett-guest-programs` contains the built program.

/// Path at which Everett puts the shim into a guest. The path is on a filesystem that is new at each boot.
pub const SHIM_PATH: &str = "/run/everett/shim";

/// Path at which the disk with a machine's volumes is mounted. The shim mounts each volume from there.
pub const VOLUMES_PATH: &str = "/run/everett/volumes";

/// Option that makes the shim a DNS server for the names in the machine's `/etc/hosts`.
pub const RESOLVER: &str = "--resolver";

/// Address of the shim's DNS server. Container engines use the same address.
pub const RESOLVER_ADDRESS: [u8; 4] = [127, 0, 0, 11];
