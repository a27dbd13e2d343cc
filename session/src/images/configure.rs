//! Configures an image's packages (`dpkg --configure`) in a simulated machine. `everett-guest-image` makes a job, i.e.
//! a description of the machine and the requests to Everett's program in the guest.

use std::io::{self, Write};
use std::path::PathBuf;

use everett_guest_image::configure::{Configured, Error, Job};
use everett_guest_image::{Cache, Configure};
use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_protocol::{OUT_DISK_SERIAL, ROOT_DISK_SERIAL};
use everett_streams::BootSeed;
use everett_vmm::disk::Disk;
use everett_vmm::machine::{DiskConfig, Machine, MachineConfig};
use everett_vmm::virtio::blk::Latency;
use tempfile::NamedTempFile;

use super::steps::{self, Attend};
use crate::machines::EngineOptions;
use crate::world::identity::MACHINE_VERSION;

/// Boot seed of the machine. With a fixed seed, every host configures packages in the same way.
const BOOT_SEED: BootSeed = BootSeed::new(0);
/// Size of the buffer with which the result is copied, in bytes.
const COPY_BYTES: usize = 1 << 20;

/// Configures packages in a machine on the soft engine, Everett's CPU in software.
#[derive(Debug)]
pub struct SoftConfigure<'a> {
    cache: &'a Cache,
    interrupt: &'a Interrupt,
    /// Copy of the machine's result. Dropping this value deletes the copy.
    out_disk: Option<NamedTempFile>,
}

impl<'a> SoftConfigure<'a> {
    /// Creates a configurator whose temporary files are made in `cache`.
    #[must_use]
    pub fn new(cache: &'a Cache, interrupt: &'a Interrupt) -> SoftConfigure<'a> {
        SoftConfigure { cache, interrupt, out_disk: None }
    }

    fn machine(job: &Job) -> Result<Machine, Error> {
        let failed = |e: &(dyn std::error::Error + 'static)| Error(with_causes(e));
        let disk = |disk: Disk, serial: &str, read_only| DiskConfig {
            disk,
            serial: serial.to_owned(),
            read_only,
            latency: Latency::default(),
        };
        let root = Disk::open(&job.root_disk, None).map_err(|e| failed(&e))?;
        let out = Disk::zeroed(job.out_disk_bytes).map_err(|e| failed(&e))?;
        let mut config = MachineConfig::new(&job.vmlinux);
        config.name = "configure".to_owned();
        config.memory_bytes = job.memory_bytes;
        config.boot_seed = BOOT_SEED;
        config.initramfs = Some(job.initramfs.clone());
        config.disks = vec![disk(root, ROOT_DISK_SERIAL, true), disk(out, OUT_DISK_SERIAL, false)];
        EngineOptions::default().machine(config).map_err(|e| failed(&e))
    }

    /// Copies the machine's result into a file. The machine wrote the result into the first `tar_bytes` bytes of its
    /// out disk.
    fn copy(&mut self, machine: &Machine, tar_bytes: u64) -> io::Result<PathBuf> {
        let disk = machine.disk(OUT_DISK).ok_or_else(|| io::Error::other("the machine has no out disk"))?;
        if tar_bytes > disk.len() {
            return Err(io::Error::other(format!(
                "the agent reports a result of {tar_bytes} bytes, more than the disk holds"
            )));
        }
        let mut file = self.cache.temporary_file().map_err(io::Error::other)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut at = 0;
        while at < tar_bytes {
            // The length is at most COPY_BYTES, so it fits into usize.
            let length = (tar_bytes - at).min(COPY_BYTES as u64) as usize;
            disk.read(at, &mut buffer[..length]);
            file.write_all(&buffer[..length])?;
            at += length as u64;
        }
        file.flush()?;
        let path = file.path().to_owned();
        self.out_disk = Some(file);
        Ok(path)
    }
}

/// Index of the out disk, to which the machine writes its result.
const OUT_DISK: usize = 1;

impl Configure for SoftConfigure<'_> {
    fn identity(&self) -> String {
        format!("{MACHINE_VERSION} insn seed {BOOT_SEED}")
    }

    fn configure(&mut self, job: &Job, line: &mut dyn FnMut(&str)) -> Result<Configured, Error> {
        let mut machine = Self::machine(job)?;
        let mut attend = Listener { line, interrupt: self.interrupt };
        let tar_bytes = steps::run(&mut machine, &job.steps, &mut attend).map_err(Error)?;
        let tar_bytes = tar_bytes.ok_or_else(|| Error("the machine packed nothing".to_owned()))?;
        let out_disk = self
            .copy(&machine, tar_bytes)
            .map_err(|e| Error(format!("copy the result: {}", with_causes(&e))))?;
        Ok(Configured { out_disk, tar_bytes })
    }
}

struct Listener<'a, 'l> {
    line: &'l mut dyn FnMut(&str),
    interrupt: &'a Interrupt,
}

impl Attend for Listener<'_, '_> {
    fn line(&mut self, line: &str) {
        (self.line)(line);
    }

    fn go_on(&mut self) -> bool {
        !self.interrupt.wanted()
    }
}
