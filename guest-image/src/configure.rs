//! Makes the requests with which a machine configures the packages of an unpacked root filesystem. The agent, Everett's
//! program in the guest, carries them out.
//!
//! The agent runs `dpkg --configure --pending` in the guest. The guest starts no services (policy-rc.d) and has no
//! network. Its clock starts at a given time, not at the host's time. At the end the agent packs all changes onto a
//! second disk. This crate cannot run machines: its caller provides a machine that implements [`Configure`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use everett_protocol::{
    Bytes, Exec, Join, Mount, OUT_DISK_SERIAL, Operation, Pack, ROOT_DISK_SERIAL, Root, WallClock,
};

use crate::debian::database::record_name;
use crate::debian::order::{Stage, stages};
use crate::debian::package::Package;

/// Version of this procedure. Increase the version with every change that affects the result.
pub(crate) const VERSION: &str = "3";

/// Memory of the machine, in bytes. The files that packages write are in this memory, too.
const MEMORY_BYTES: u64 = 1 << 30;

/// Length of the disk for the packed changes, in bytes. The disk's file may be sparse.
const OUT_DISK_BYTES: u64 = 8 << 30;

/// Reason why packages could not be configured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Everything that a machine needs to configure packages.
#[derive(Debug, Clone)]
pub struct Job {
    /// Path of the kernel, an ELF file.
    pub vmlinux: PathBuf,
    /// Path of the initramfs with the agent.
    pub initramfs: PathBuf,
    /// File of the read-only disk with the serial number [`ROOT_DISK_SERIAL`].
    pub root_disk: PathBuf,
    /// Length in bytes of the disk with the serial number [`OUT_DISK_SERIAL`], which starts blank.
    pub out_disk_bytes: u64,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Requests to the agent, in order. Each is sent after the answer to the previous request.
    pub steps: Vec<Step>,
    /// Number of packages to configure; dpkg prints `Setting up NAME ...` for each.
    pub packages: usize,
}

/// A request to the agent.
#[derive(Debug, Clone)]
pub struct Step {
    /// Description of the step for messages, for example "configure the packages".
    pub what: String,
    /// The request. The step fails if a command of [`Operation::Exec`] exits with a status above 0 or the agent answers
    /// with an error. The answer to [`Operation::Pack`] gives the length of the tar.
    pub op: Operation,
}

/// Result of a job.
#[derive(Debug)]
pub struct Configured {
    /// Path of the second disk's file, a tar of the changes. The tar marks removed files as the upper folder of an
    /// overlay does.
    pub out_disk: PathBuf,
    /// Length of the tar in bytes, from [`everett_protocol::Reply::Packed`].
    pub tar_bytes: u64,
}

/// A machine that can configure packages.
pub trait Configure {
    /// Returns an identifier of everything besides the job that determines the result: machine version, clock mode,
    /// seed. The identifier is part of the cache key.
    fn identity(&self) -> String;

    /// Boots the job's machine and performs the steps. Calls `line` with each line that the steps print, when it
    /// arrives.
    ///
    /// # Errors
    /// Returns an error if a step fails or the machine does not boot. The error is one line that names the step.
    fn configure(&mut self, job: &Job, line: &mut dyn FnMut(&str)) -> Result<Configured, Error>;
}

/// A machine that refuses every job, for images without packages to configure: their root filesystem comes from a
/// folder or a tar archive, or they have none.
#[derive(Debug, Default)]
pub struct NoMachine;

impl Configure for NoMachine {
    fn identity(&self) -> String {
        String::from("none")
    }

    fn configure(&mut self, _: &Job, _: &mut dyn FnMut(&str)) -> Result<Configured, Error> {
        Err(Error(String::from("no machine is available to configure the packages")))
    }
}

/// Paths of the files that a job needs.
pub(crate) struct Files {
    pub(crate) vmlinux: PathBuf,
    pub(crate) initramfs: PathBuf,
    pub(crate) root_disk: PathBuf,
}

/// Returns the job that configures these packages. The clock starts at `time_s` seconds since 1970. If `is_base` is
/// true, the packages are the base, i.e. the packages that every root filesystem has. Otherwise they are installed on a
/// base that is already configured.
pub(crate) fn job(files: Files, packages: &[Package], is_base: bool, time_s: u64) -> Job {
    let step = |what: &str, op: Operation| Step { what: what.to_owned(), op };
    let mut steps = vec![
        step("mount the root", Operation::Mount(mount())),
        step("set the machine up", Operation::Join(Box::new(join(time_s)))),
    ];
    let has_script = |package: &&Package| package.file("preinst").is_some();
    // Packages of the base pre-depend on each other, but their preinst scripts work even before any package is
    // configured. All preinst scripts therefore run first, in one stage.
    let stages = match is_base {
        true => vec![Stage { preinst: packages.iter().filter(has_script).collect(), configure: Vec::new() }],
        false => stages(packages),
    };
    for Stage { mut preinst, configure } in stages {
        // The preinst of base-passwd creates the users and groups that other scripts expect. debootstrap runs it first,
        // too.
        preinst.sort_by_key(|package| package.name != "base-passwd");
        for package in preinst {
            let what = format!("run the preinst script of {}", package.name);
            steps.push(Step { what, op: Operation::Exec(script(package)) });
        }
        if !configure.is_empty() {
            let names = configure.iter().map(|package| record_name(package));
            let argv = ["dpkg", "--configure"].map(String::from).into_iter().chain(names).collect();
            let what = "configure the packages that preinst scripts need";
            steps.push(step(what, Operation::Exec(exec(argv, environment()))));
        }
    }
    let argv = ["dpkg", "--configure", "--pending"].map(String::from).to_vec();
    steps.push(step("configure the packages", Operation::Exec(exec(argv, environment()))));
    let pack = Pack { serial: String::from(OUT_DISK_SERIAL) };
    steps.push(step("pack the root filesystem", Operation::Pack(pack)));
    steps.push(step("power the machine off", Operation::PowerOff));
    let Files { vmlinux, initramfs, root_disk } = files;
    let (memory_bytes, out_disk_bytes) = (MEMORY_BYTES, OUT_DISK_BYTES);
    Job { vmlinux, initramfs, root_disk, out_disk_bytes, memory_bytes, steps, packages: packages.len() }
}

fn mount() -> Mount {
    Mount {
        root: Root::Disk {
            serial: String::from(ROOT_DISK_SERIAL),
            filesystem: String::from("squashfs"),
            writable_bytes: Some(MEMORY_BYTES / 4 * 3),
        },
        hostname: String::from("localhost"),
    }
}

/// Seed of the machine's random numbers. Maintainer scripts write random values to files. All images have the same
/// seed, so that these values are the same in all images.
const ENTROPY: [u8; 32] = *b"everett: packages are configured";

fn join(time_s: u64) -> Join {
    Join {
        entropy: Bytes(ENTROPY.to_vec()),
        clock: WallClock { seconds: i64::try_from(time_s).unwrap_or(i64::MAX), nanoseconds: 0 },
        disks: Vec::new(),
        hosts: Vec::new(),
        nameservers: Vec::new(),
        interfaces: Vec::new(),
    }
}

/// Returns the command that runs a package's preinst script. dpkg runs the script before it unpacks the files. Here the
/// files already exist, which does no harm in a first installation. One difference remains: if the script calls
/// dpkg-divert, the diversion does not apply to files of the script's own package.
fn script(package: &Package) -> Exec {
    let name = record_name(package);
    let argv = vec![format!("/var/lib/dpkg/info/{name}.preinst"), String::from("install")];
    let architecture = package.control.field("Architecture").unwrap_or_default();
    let mut env = environment();
    // Variables that dpkg sets for maintainer scripts (deb-preinst(5), dpkg(1)).
    for (key, value) in [
        ("DPKG_MAINTSCRIPT_PACKAGE", package.name.as_str()),
        ("DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT", "1"),
        ("DPKG_MAINTSCRIPT_ARCH", architecture),
        ("DPKG_MAINTSCRIPT_NAME", "preinst"),
        ("DPKG_ADMINDIR", "/var/lib/dpkg"),
        ("DPKG_ROOT", ""),
    ] {
        env.insert(key.to_owned(), value.to_owned());
    }
    exec(argv, env)
}

fn exec(argv: Vec<String>, env: BTreeMap<String, String>) -> Exec {
    Exec { env, ..Exec::new(argv) }
}

fn environment() -> BTreeMap<String, String> {
    [("DEBIAN_FRONTEND", "noninteractive"), ("DEBCONF_NONINTERACTIVE_SEEN", "true"), ("LC_ALL", "C.UTF-8")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::{Files, Step, job};
    use everett_protocol::{Operation, Request, encode_request};
    use std::path::PathBuf;

    #[test]
    fn every_step_is_a_valid_request() {
        let path = || PathBuf::from("/file");
        let job =
            job(Files { vmlinux: path(), initramfs: path(), root_disk: path() }, &[], true, 1_767_225_600);
        for (id, step) in job.steps.iter().enumerate() {
            let request = Request { id: id as u64, op: step.op.clone() };
            encode_request(&request).unwrap_or_else(|error| panic!("{}: {error}", step.what));
        }
        assert!(matches!(
            job.steps[..2],
            [Step { op: Operation::Mount(_), .. }, Step { op: Operation::Join(_), .. }]
        ));
        assert!(matches!(job.steps.last().unwrap().op, Operation::PowerOff));
        let pack = job.steps.iter().position(|step| matches!(step.op, Operation::Pack(_)));
        assert_eq!(pack, Some(job.steps.len() - 2));
    }
}
