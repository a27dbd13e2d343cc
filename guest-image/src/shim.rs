//! Paths and words of the program that starts the processes of container images in guests (`shim/`). The program is in
//! `everett-guest-programs`.

/// Path at which Everett puts the shim into guests: in a filesystem that is new at each boot.
pub const SHIM_PATH: &str = "/run/everett/shim";

/// Path at which the disk of a machine's volumes is mounted. The shim mounts each volume from there.
pub const VOLUMES_PATH: &str = "/run/everett/volumes";

/// Word that makes the shim a DNS server for the names in the machine's `/etc/hosts`.
pub const RESOLVER: &str = "--resolver";

/// Address of that server, which container engines use, too.
pub const RESOLVER_ADDRESS: [u8; 4] = [127, 0, 0, 11];
