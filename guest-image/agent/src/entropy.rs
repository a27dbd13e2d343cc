//! Reseeding of the kernel's random number generator with bytes from the host (random(4)).
#![allow(unsafe_code)]

use crate::failure::{Context as _, Failure};
use std::fs::File;
use std::os::fd::AsRawFd as _;

/// Request `_IOW('R', 0x03, int[2])`: mixes bytes into the pool and credits them as entropy.
const RNDADDENTROPY: libc::Ioctl = 0x4008_5203u32 as libc::Ioctl;
/// Request `_IO('R', 0x07)`: derives a new key from the pool.
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// Maximum number of bytes in a request, which is the protocol's bound.
const BYTES_MAX: usize = everett_protocol::limits::ENTROPY_BYTES_MAX;

/// The kernel's `struct rand_pool_info`, with room for the largest request.
#[repr(C)]
struct PoolInfo {
    /// Credited entropy in bits.
    entropy_count: libc::c_int,
    /// Number of used bytes in `buf`.
    buf_size: libc::c_int,
    buf: [u8; BYTES_MAX],
}

/// Mixes the bytes into the kernel's pool and derives a new key. All random numbers that programs draw from the kernel
/// afterwards depend on the bytes.
pub(crate) fn reseed(entropy: &[u8]) -> Result<(), Failure> {
    let mut info = PoolInfo { entropy_count: 0, buf_size: 0, buf: [0; BYTES_MAX] };
    let room = info.buf.get_mut(..entropy.len());
    let room = room.ok_or_else(|| Failure::new(format!("cannot take {} bytes of entropy", entropy.len())))?;
    room.copy_from_slice(entropy);
    // `entropy` has at most BYTES_MAX bytes, so both numbers fit.
    info.buf_size = libc::c_int::try_from(entropy.len()).unwrap_or(0);
    info.entropy_count = info.buf_size * 8;

    let pool = File::open("/dev/urandom").context(|| String::from("open /dev/urandom"))?;
    // SAFETY: the request reads a `rand_pool_info` and the `buf_size` bytes after its header. Both lie within `info`.
    check(unsafe { libc::ioctl(pool.as_raw_fd(), RNDADDENTROPY, &raw const info) })
        .context(|| String::from("mix into the kernel's random numbers"))?;
    // SAFETY: the request has no argument.
    check(unsafe { libc::ioctl(pool.as_raw_fd(), RNDRESEEDCRNG) })
        .context(|| String::from("reseed the kernel's random numbers"))
}

fn check(result: libc::c_int) -> std::io::Result<()> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
