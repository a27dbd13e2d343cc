//! The requests that `kvm-ioctls` has no method for, or whose error number it loses.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;

use kvm_bindings::{KVMIO, kvm_interrupt};
use kvm_ioctls::VcpuFd;
use vmm_sys_util::errno;
use vmm_sys_util::ioctl::{ioctl_with_ref, ioctl_with_val};
use vmm_sys_util::{ioctl_io_nr, ioctl_iow_nr};

ioctl_iow_nr!(KVM_INTERRUPT, KVMIO, 0x86, kvm_interrupt);
ioctl_io_nr!(KVM_SET_TSC_KHZ, KVMIO, 0xa2);

fn done(answer: i32) -> Result<(), errno::Error> {
    if answer < 0 { Err(errno::Error::last()) } else { Ok(()) }
}

/// Queue an external interrupt. The vCPU has to be ready for one.
pub(super) fn interrupt(vcpu: &VcpuFd, vector: u8) -> Result<(), errno::Error> {
    let interrupt = kvm_interrupt { irq: u32::from(vector) };
    // SAFETY: the descriptor is a vCPU's, and the kernel reads one `kvm_interrupt` at an address that is one's.
    done(unsafe { ioctl_with_ref(&vcpu.as_raw_fd(), KVM_INTERRUPT(), &interrupt) })
}

/// Set how fast the guest's TSC goes.
pub(super) fn set_tsc_khz(vcpu: &VcpuFd, khz: u32) -> Result<(), errno::Error> {
    // SAFETY: the descriptor is a vCPU's, and the argument is a number.
    done(unsafe { ioctl_with_val(&vcpu.as_raw_fd(), KVM_SET_TSC_KHZ(), u64::from(khz)) })
}
