//! `/dev/kvm`: whether it opens, its version, and the capabilities that an exact engine needs.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{Finding, Verdict};

// Linux's include/uapi/linux/kvm.h: _IO(KVMIO, n) with KVMIO = 0xAE.
const KVM_GET_API_VERSION: libc::c_ulong = 0xae00;
const KVM_CREATE_VM: libc::c_ulong = 0xae01;
const KVM_CHECK_EXTENSION: libc::c_ulong = 0xae03;
/// The only version there has been since 2007; any other is another interface.
const KVM_API_VERSION: i32 = 12;

const CAPABILITIES: [(&str, libc::c_ulong, &str); 6] = [
    ("TSC control", 60, "to hold the guest's TSC still inside a slice"),
    ("vCPU attributes", 127, "to set the TSC's offset at each entry"),
    ("user-space MSR", 188, "to answer MSR accesses"),
    ("MSR filter", 189, "to see them"),
    ("immediate exit", 136, "to finish an exit before its state is read"),
    ("dirty ring", 192, "to find written pages fast"),
];

pub(super) fn examine() -> Vec<Finding> {
    let device = match OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        Ok(device) => device,
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::NotFound => "no such device; the soft engine does not need it".to_owned(),
                io::ErrorKind::PermissionDenied => {
                    "permission denied; the soft engine does not need it".to_owned()
                }
                _ => format!("cannot be opened: {error}"),
            };
            return vec![Finding::new("/dev/kvm", Verdict::Note, why)];
        }
    };
    let version = match ask(&device, KVM_GET_API_VERSION, 0) {
        Ok(KVM_API_VERSION) => "API version 12",
        Ok(other) => {
            return vec![Finding::new("/dev/kvm", Verdict::Note, format!("unknown API version {other}"))];
        }
        Err(error) => {
            return vec![Finding::new("/dev/kvm", Verdict::Note, format!("does not answer: {error}"))];
        }
    };
    let machine = match create_vm(&device) {
        Ok(_) => "makes virtual machines".to_owned(),
        Err(error) => format!("cannot make a virtual machine: {error}"),
    };
    let mut findings = vec![Finding::new("/dev/kvm", Verdict::Ok, format!("{version}, {machine}"))];
    for (name, number, purpose) in CAPABILITIES {
        let (verdict, detail) = match ask(&device, KVM_CHECK_EXTENSION, number) {
            Ok(n) if n > 0 => (Verdict::Ok, format!("yes ({purpose})")),
            Ok(_) => (Verdict::Note, format!("no ({purpose})")),
            Err(error) => (Verdict::Note, format!("unknown: {error}")),
        };
        findings.push(Finding::new(name, verdict, detail));
    }
    findings
}

fn ask(device: &File, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<i32> {
    // SAFETY: both requests that are asked here take an integer or nothing, and touch no memory of ours.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), request, argument) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Make a virtual machine, which is gone again when the answer is dropped.
fn create_vm(device: &File) -> io::Result<OwnedFd> {
    let fd = ask(device, KVM_CREATE_VM, 0)?;
    // SAFETY: KVM_CREATE_VM gave us a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
