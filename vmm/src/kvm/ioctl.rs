//! KVM requests for which `kvm-ioctls` has no method, or whose error number `kvm-ioctls` loses.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use kvm_bindings::{
    KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET, KVMIO, kvm_device_attr, kvm_interrupt, kvm_msr_entry, kvm_msrs,
};
use kvm_ioctls::VcpuFd;
use vmm_sys_util::errno;
use vmm_sys_util::ioctl::{ioctl_with_mut_ref, ioctl_with_ref, ioctl_with_val};
use vmm_sys_util::{ioctl_io_nr, ioctl_iow_nr, ioctl_iowr_nr};

ioctl_iow_nr!(KVM_INTERRUPT, KVMIO, 0x86, kvm_interrupt);
ioctl_io_nr!(KVM_SET_TSC_KHZ, KVMIO, 0xa2);
ioctl_iow_nr!(KVM_SET_DEVICE_ATTR, KVMIO, 0xe1, kvm_device_attr);
ioctl_iow_nr!(KVM_GET_DEVICE_ATTR, KVMIO, 0xe2, kvm_device_attr);
ioctl_iowr_nr!(KVM_GET_MSRS, KVMIO, 0x88, kvm_msrs);

/// IA32_TIME_STAMP_COUNTER.
const TSC: u32 = 0x10;

fn done(answer: i32) -> Result<(), errno::Error> {
    if answer < 0 { Err(errno::Error::last()) } else { Ok(()) }
}

/// Queues an external interrupt. The vCPU must be able to take one.
pub(super) fn interrupt(vcpu: &VcpuFd, vector: u8) -> Result<(), errno::Error> {
    let interrupt = kvm_interrupt { irq: u32::from(vector) };
    // SAFETY: the descriptor is a vCPU's, and the kernel reads one `kvm_interrupt` at the address of a valid one.
    done(unsafe { ioctl_with_ref(&vcpu.as_raw_fd(), KVM_INTERRUPT(), &interrupt) })
}

/// Sets the frequency of the guest's TSC, in kHz.
pub(super) fn set_tsc_khz(vcpu: &VcpuFd, khz: u32) -> Result<(), errno::Error> {
    // SAFETY: the descriptor is a vCPU's, and the argument is a number.
    done(unsafe { ioctl_with_val(&vcpu.as_raw_fd(), KVM_SET_TSC_KHZ(), u64::from(khz)) })
}

/// Returns another descriptor of the same vCPU.
pub(super) fn duplicate(vcpu: &VcpuFd) -> Result<OwnedFd, errno::Error> {
    // SAFETY: the descriptor is a vCPU's, and the new one has no other owner.
    unsafe {
        let fd = libc::fcntl(vcpu.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0);
        done(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Argument of `KVM_GET_MSRS` and `KVM_SET_MSRS` for one MSR.
#[repr(C)]
struct OneMsr {
    nmsrs: u32,
    pad: u32,
    entry: kvm_msr_entry,
}

/// Returns the current value of the guest's TSC.
pub(super) fn read_tsc(vcpu: &OwnedFd) -> Result<u64, errno::Error> {
    let entry = kvm_msr_entry { index: TSC, ..Default::default() };
    let mut one = OneMsr { nmsrs: 1, pad: 0, entry };
    // SAFETY: the descriptor is a vCPU's. The kernel reads the `kvm_msrs` at the start of `OneMsr`. It reads and writes
    // `nmsrs` entries after it, which is one.
    let answer = unsafe { ioctl_with_mut_ref(&vcpu.as_raw_fd(), KVM_GET_MSRS(), &mut one) };
    match answer {
        1 => Ok(one.entry.data),
        0 => Err(errno::Error::new(libc::EINVAL)),
        _ => Err(errno::Error::last()),
    }
}

/// Returns the argument of a device-attribute request that makes the kernel read or write the TSC offset at `offset`.
fn offset_at(offset: *const u64) -> kvm_device_attr {
    kvm_device_attr {
        flags: 0,
        group: KVM_VCPU_TSC_CTRL,
        attr: u64::from(KVM_VCPU_TSC_OFFSET),
        addr: offset as u64,
    }
}

/// Returns the offset that KVM adds to the TSC for the guest.
pub(super) fn tsc_offset(vcpu: &OwnedFd) -> Result<u64, errno::Error> {
    let mut offset = 0u64;
    let attribute = offset_at(&raw mut offset);
    // SAFETY: the descriptor is a vCPU's. The kernel reads an attribute and writes eight bytes at the address in the
    // attribute, which is the address of our `offset`.
    done(unsafe { ioctl_with_ref(&vcpu.as_raw_fd(), KVM_GET_DEVICE_ATTR(), &attribute) })?;
    Ok(offset)
}

/// Sets the offset that KVM adds to the TSC for the guest.
pub(super) fn set_tsc_offset(vcpu: &OwnedFd, offset: u64) -> Result<(), errno::Error> {
    let attribute = offset_at(&raw const offset);
    // SAFETY: the descriptor is a vCPU's. The kernel reads an attribute and eight bytes at the address in the
    // attribute, which is the address of our `offset`.
    done(unsafe { ioctl_with_ref(&vcpu.as_raw_fd(), KVM_SET_DEVICE_ATTR(), &attribute) })
}
