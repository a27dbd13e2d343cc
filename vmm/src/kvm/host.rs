//! The device `/dev/kvm` and its capabilities.

use kvm_bindings::{
    KVM_API_VERSION, KVM_CAP_DEBUGREGS, KVM_CAP_EXT_CPUID, KVM_CAP_IMMEDIATE_EXIT, KVM_CAP_USER_MEMORY,
    KVM_CAP_VCPU_EVENTS, KVM_CAP_XSAVE,
};
pub use kvm_bindings::{KVM_CAP_TSC_CONTROL, KVM_CAP_VCPU_ATTRIBUTES};
use kvm_ioctls::{Kvm, VmFd};
use vmm_sys_util::errno;

use super::error::{KvmError, uninterrupted};

/// Capabilities of KVM that the engine requires. Linux has had all of them since 4.13.
const NEEDED: [(u32, &str); 6] = [
    (KVM_CAP_USER_MEMORY, "user memory"),
    (KVM_CAP_EXT_CPUID, "CPUID tables"),
    (KVM_CAP_VCPU_EVENTS, "access to pending events"),
    (KVM_CAP_DEBUGREGS, "access to debug registers"),
    (KVM_CAP_XSAVE, "access to floating-point state"),
    (KVM_CAP_IMMEDIATE_EXIT, "immediate exits"),
];

/// Open handle of `/dev/kvm`.
#[derive(Debug)]
pub struct Host {
    kvm: Kvm,
}

impl Host {
    /// Opens the device and checks its capabilities.
    ///
    /// # Errors
    /// Returns an error if the device does not exist, may not be opened, or lacks a capability.
    pub fn open() -> Result<Host, KvmError> {
        let kvm = Kvm::new().map_err(|error| match error.errno() {
            libc::ENOENT => KvmError::Absent,
            libc::EACCES | libc::EPERM => KvmError::Denied,
            _ => KvmError::request("open /dev/kvm", error),
        })?;
        match kvm.get_api_version() {
            -1 => return Err(KvmError::request("ask for its version", errno::Error::last())),
            version if version != KVM_API_VERSION as i32 => return Err(KvmError::Version(version)),
            _ => {}
        }
        let host = Host { kvm };
        for (number, name) in NEEDED {
            if host.capability(number)? == 0 {
                return Err(KvmError::Lacks(name));
            }
        }
        Ok(host)
    }

    /// Returns KVM's answer to a capability query (`KVM_CAP_*`); zero means that KVM lacks the capability.
    ///
    /// # Errors
    /// Returns an error if KVM does not answer.
    pub fn capability(&self, number: u32) -> Result<u32, KvmError> {
        let answer = self.kvm.check_extension_raw(u64::from(number));
        u32::try_from(answer).map_err(|_| KvmError::request("ask for a capability", errno::Error::last()))
    }

    pub(super) fn create_vm(&self) -> Result<VmFd, KvmError> {
        uninterrupted("create a virtual machine", || self.kvm.create_vm())
    }
}
