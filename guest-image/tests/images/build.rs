//! Tests that build whole images from inputs that need neither a network nor a machine.

use everett_guest_image::configure::{Configure, Configured, Error as ConfigureError, Job, NoMachine};
use everett_guest_image::image::{DEFAULT_TIME_S, Error};
use everett_guest_image::kernel::modules::DEFAULT_MODULES;
use everett_guest_image::{BuiltImage, Cache, ImageSpec, KernelSource, RootSource, Silent, build};
use everett_input::causes::with_causes;
use everett_remote_client::Online;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

use crate::kernel::vmlinux;

/// Returns a tar header of a file owned by root.
fn header() -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

struct Lab {
    folder: TempDir,
    cache: Cache,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        fs::write(folder.path().join("vmlinux"), vmlinux()).unwrap();
        Lab { folder, cache }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spec(&self, root: RootSource) -> ImageSpec {
        ImageSpec {
            kernel: KernelSource::File { path: self.path("vmlinux"), modules: None },
            root,
            time_s: DEFAULT_TIME_S,
            ..ImageSpec::of_packages("bookworm", Vec::new(), 0)
        }
    }

    fn build(&self, root: RootSource) -> Result<BuiltImage, Error> {
        build(&self.spec(root), &self.cache, &Online, &mut NoMachine, &mut Silent)
    }

    /// Makes a tar archive of a root filesystem with one program.
    fn tar(&self, name: &str, content: &str) -> PathBuf {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = header();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, "./usr/bin/program", content.as_bytes()).unwrap();
        let path = self.path(name);
        let bytes = builder.into_inner().unwrap();
        let bytes = if name.ends_with(".gz") {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(&bytes).unwrap();
            gz.finish().unwrap()
        } else {
            bytes
        };
        fs::write(&path, bytes).unwrap();
        path
    }
}

#[test]
fn an_image_without_a_root_has_a_kernel_and_an_initramfs() {
    let lab = Lab::new();
    let image = lab.build(RootSource::None).unwrap();
    assert!(image.root.is_none());
    assert_eq!(fs::read(&image.vmlinux.path).unwrap(), vmlinux());
    assert!(fs::read(&image.initramfs.path).unwrap().starts_with(b"070701"));
    assert_eq!(image.digest, lab.build(RootSource::None).unwrap().digest);
    assert_eq!(image.digest.len(), 64);
}

#[test]
fn built_in_modules_are_an_input_of_the_cache_key() {
    let lab = Lab::new();
    let folder = lab.path("modules");
    fs::create_dir(&folder).unwrap();
    let built_in = |names: &[&str]| {
        let lines: String = names.iter().map(|name| format!("kernel/{name}.ko\n")).collect();
        fs::write(folder.join("modules.builtin"), lines).unwrap();
        let kernel = KernelSource::File { path: lab.path("vmlinux"), modules: Some(folder.clone()) };
        let spec = ImageSpec { kernel, ..lab.spec(RootSource::None) };
        build(&spec, &lab.cache, &Online, &mut NoMachine, &mut Silent)
    };
    assert!(built_in(&DEFAULT_MODULES).is_ok());
    // The kernel now has one built-in module less, so the first build's cache entry must not be used.
    let error = built_in(&DEFAULT_MODULES[1..]).unwrap_err();
    let error = with_causes(&error);
    assert!(error.contains("has no module virtio_mmio"), "{error}");
}

#[test]
fn equal_roots_make_equal_bytes_compressed_or_not() {
    let lab = Lab::new();
    let plain = lab.build(RootSource::Tar(lab.tar("root.tar", "content"))).unwrap();
    let packed = lab.build(RootSource::Tar(lab.tar("root.tar.gz", "content"))).unwrap();
    let other = lab.build(RootSource::Tar(lab.tar("other.tar", "different"))).unwrap();
    assert_eq!(plain.digest, packed.digest);
    assert_ne!(plain.digest, other.digest);
    // The second cache is empty and in another folder.
    let again = Lab::new();
    assert_eq!(again.build(RootSource::Tar(again.tar("root.tar", "content"))).unwrap().digest, plain.digest);
}

#[test]
fn a_folder_is_read_anew_each_time() {
    let lab = Lab::new();
    let root = lab.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/program"), "one").unwrap();
    let first = lab.build(RootSource::Folder(root.clone())).unwrap();
    fs::write(root.join("bin/program"), "two").unwrap();
    let second = lab.build(RootSource::Folder(root)).unwrap();
    assert_ne!(first.digest, second.digest);
}

#[test]
fn entries_that_were_altered_or_cut_off_are_made_again() {
    let lab = Lab::new();
    let root = RootSource::Tar(lab.tar("root.tar", "content"));
    let first = lab.build(root.clone()).unwrap();
    let entries = [&first.vmlinux, &first.initramfs, first.root.as_ref().unwrap()];
    for entry in entries {
        let good = fs::read(&entry.path).unwrap();
        let mut altered = good.clone();
        *altered.last_mut().unwrap() ^= 1;
        for broken in [&altered[..], &good[..good.len() - 1], &[]] {
            fs::write(&entry.path, broken).unwrap();
            let again = lab.build(root.clone()).unwrap();
            assert_eq!(again.digest, first.digest);
            assert_eq!(fs::read(&entry.path).unwrap(), good);
        }
    }
}

#[test]
fn errors_name_the_unusable_file() {
    let lab = Lab::new();
    let message = |root: RootSource| with_causes(&lab.build(root).unwrap_err());
    let missing = lab.path("missing");
    assert!(message(RootSource::Tar(missing.clone())).contains("missing"));
    assert!(message(RootSource::Folder(missing)).contains("missing"));
    fs::write(lab.path("noise.tar"), [0xee; 2000]).unwrap();
    assert!(message(RootSource::Tar(lab.path("noise.tar"))).contains("noise.tar"));
    fs::create_dir(lab.path("empty")).unwrap();
    assert!(message(RootSource::Folder(lab.path("empty"))).contains("neither /bin nor /usr/bin"));

    let kernel = |content: &[u8]| {
        fs::write(lab.path("vmlinux"), content).unwrap();
        message(RootSource::None)
    };
    assert!(kernel(b"not one").contains("is not a kernel: neither an ELF (vmlinux) nor a bzImage"));
    assert!(kernel(&vmlinux()[..100]).contains("is not a kernel for x86-64"));
    let mut other = vmlinux();
    other[18] = 183;
    assert!(kernel(&other).contains("vmlinux"));
    fs::write(lab.path("world.lock"), "version = 9").unwrap();
    let spec = ImageSpec { lock: Some(lab.path("world.lock")), ..lab.spec(RootSource::None) };
    let error = with_causes(&build(&spec, &lab.cache, &Online, &mut NoMachine, &mut Silent).unwrap_err());
    assert!(error.contains("world.lock"), "{error}");
}

#[test]
fn only_files_are_read() {
    let lab = Lab::new();
    let message = |root: RootSource| with_causes(&lab.build(root).unwrap_err());
    let device = "/dev/zero: this is a device, and a regular file is needed";
    assert_eq!(
        message(RootSource::Tar("/dev/zero".into())),
        format!("cannot read the root filesystem {device}")
    );
    let mut spec = lab.spec(RootSource::None);
    spec.lock = Some("/dev/zero".into());
    let error = with_causes(&build(&spec, &lab.cache, &Online, &mut NoMachine, &mut Silent).unwrap_err());
    assert_eq!(error, device);
    spec.lock = None;
    spec.kernel = KernelSource::File { path: "/dev/zero".into(), modules: None };
    let error = with_causes(&build(&spec, &lab.cache, &Online, &mut NoMachine, &mut Silent).unwrap_err());
    assert_eq!(error, format!("cannot read the kernel {device}"));
    let module = lab.path("6.1/long.ko");
    fs::create_dir(lab.path("6.1")).unwrap();
    fs::File::create(&module).unwrap().set_len(1 << 40).unwrap();
    spec.kernel = KernelSource::File { path: lab.path("vmlinux"), modules: Some(lab.path("6.1")) };
    let error = with_causes(&build(&spec, &lab.cache, &Online, &mut NoMachine, &mut Silent).unwrap_err());
    let expected = format!("cannot read the modules in {}: longer than", module.display());
    assert!(error.starts_with(&expected), "{error}");
    fs::File::create(lab.path("long.tar")).unwrap().set_len(1 << 40).unwrap();
    assert!(message(RootSource::Tar(lab.path("long.tar"))).contains("long.tar: longer than"));
}

#[test]
fn options_and_extra_lines_for_apt_are_refused() {
    let lab = Lab::new();
    let message = |spec: ImageSpec| {
        with_causes(&build(&spec, &lab.cache, &Online, &mut NoMachine, &mut Silent).unwrap_err())
    };
    for name in ["-oDir::Etc=/", "--help", "a b", "a\nb", "", "a/b", "?essential", "a=1"] {
        let spec = lab.spec(RootSource::Packages(vec![name.to_owned()]));
        assert_eq!(message(spec), format!("{name:?} is not a package name"));
    }
    let suite = ImageSpec { suite: String::from("a\nTypes: deb"), ..lab.spec(RootSource::None) };
    assert!(message(suite).ends_with("is not a suite"));
    for mirror in ["http://a b", "nothing", "http://a\nSigned-By: /x"] {
        let spec = ImageSpec { mirror: Some(mirror.to_owned()), ..lab.spec(RootSource::None) };
        assert!(message(spec).ends_with("is not a mirror address (key mirror, or EVERETT_MIRROR)"));
    }
}

/// Stand-in for the machine that configures packages. It counts its jobs and returns one changed file.
struct Pretend<'a> {
    folder: &'a Path,
    asked: u32,
    fail: bool,
}

impl Configure for Pretend<'_> {
    fn identity(&self) -> String {
        String::from("pretend")
    }

    fn configure(&mut self, job: &Job, line: &mut dyn FnMut(&str)) -> Result<Configured, ConfigureError> {
        self.asked += 1;
        assert!(job.root_disk.exists() && job.vmlinux.exists() && job.initramfs.exists());
        line("Setting up program (1) ...");
        if self.fail {
            return Err(ConfigureError(String::from("configure the packages: exit status 1")));
        }
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = header();
        header.set_mode(0o644);
        header.set_size(4);
        builder.append_data(&mut header, "etc/configured", b"yes\n".as_slice()).unwrap();
        let bytes = builder.into_inner().unwrap();
        let out_disk = self.folder.join("out");
        fs::write(&out_disk, [&bytes[..], &[0xff; 4096]].concat()).unwrap();
        Ok(Configured { out_disk, tar_bytes: bytes.len() as u64 })
    }
}

/// Puts packages (name, further control fields) into the cache, and writes a lock with all of them, so that no mirror
/// is needed. Returns the specification of an image that requests the last package.
fn locked_packages(lab: &Lab, packages: &[(&str, &str)]) -> ImageSpec {
    let tar = |path: &str, content: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = header();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, path, content.as_bytes()).unwrap();
        builder.into_inner().unwrap()
    };
    let requested = packages.last().unwrap().0;
    let mut lock = format!("version = 1\nsuite = \"bookworm\"\nrequested = [\"{requested}\"]\n");
    for (name, fields) in packages {
        let control =
            tar("./control", &format!("Package: {name}\nVersion: 1\nArchitecture: amd64\n{fields}"));
        let data = tar(&format!("./bin/{name}"), name);
        let mut deb = b"!<arch>\n".to_vec();
        for (name, content) in
            [("debian-binary", b"2.0\n".to_vec()), ("control.tar", control), ("data.tar", data)]
        {
            let length = content.len();
            deb.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, 0, 644).bytes());
            deb.extend(content);
        }
        let digest = <sha2::Sha256 as sha2::Digest>::digest(&deb);
        let sha256: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        fs::write(lab.cache.packages().join(format!("{sha256}.deb")), &deb).unwrap();
        lock += &format!("[[package]]\nname = \"{name}\"\nversion = \"1\"\nsha256 = \"{sha256}\"\n");
    }
    fs::write(lab.path("world.lock"), lock).unwrap();
    let packages = RootSource::Packages(vec![requested.to_owned()]);
    ImageSpec { lock: Some(lab.path("world.lock")), ..lab.spec(packages) }
}

#[test]
fn locked_packages_are_configured_once_and_need_no_mirror() {
    let lab = Lab::new();
    let spec = locked_packages(&lab, &[("program", "")]);
    let mut machine = Pretend { folder: lab.folder.path(), asked: 0, fail: true };
    let error = with_causes(&build(&spec, &lab.cache, &Online, &mut machine, &mut Silent).unwrap_err());
    assert_eq!(error, "configuring the packages failed: configure the packages: exit status 1");
    machine.fail = false;
    let first = build(&spec, &lab.cache, &Online, &mut machine, &mut Silent).unwrap();
    let second = build(&spec, &lab.cache, &Online, &mut machine, &mut Silent).unwrap();
    assert_eq!((machine.asked, &first.digest), (2, &second.digest));
    assert_eq!(first.lock.packages[0].name, "program");

    let root = fs::File::open(&first.root.unwrap().path).unwrap();
    let reader = backhand::FilesystemReader::from_reader(std::io::BufReader::new(root)).unwrap();
    let paths: Vec<String> = reader.files().map(|node| node.fullpath.display().to_string()).collect();
    for path in ["/usr/bin/program", "/bin", "/etc/configured", "/var/lib/dpkg/status", "/proc", "/tmp"] {
        assert!(paths.iter().any(|found| found == path), "{path} is missing");
    }
    assert!(!paths.iter().any(|path| path.ends_with("policy-rc.d")));
}

#[test]
fn a_change_of_packages_leaves_the_base_as_it_is() {
    const SHELL: (&str, &str) = ("shell", "Essential: yes\n");
    let build = |lab: &Lab, machine: &mut Pretend<'_>, packages: &[(&str, &str)]| {
        let spec = locked_packages(lab, packages);
        build(&spec, &lab.cache, &Online, machine, &mut Silent).unwrap()
    };
    let lab = Lab::new();
    let mut machine = Pretend { folder: lab.folder.path(), asked: 0, fail: false };
    build(&lab, &mut machine, &[("program", ""), SHELL, ("server", "Depends: shell, program\n")]);
    assert_eq!(machine.asked, 2, "one job for the base and one for the rest");
    let changed = build(&lab, &mut machine, &[SHELL, ("other", "")]);
    assert_eq!(machine.asked, 3, "one more job, for the rest; the base is cached");
    let base_alone = build(&lab, &mut machine, &[SHELL]);
    assert_eq!(machine.asked, 3, "no more jobs: the image consists of the cached base");

    // The content of the cache has no effect on the result.
    let fresh = Lab::new();
    let mut machine = Pretend { folder: fresh.folder.path(), asked: 0, fail: false };
    assert_eq!(build(&fresh, &mut machine, &[SHELL, ("other", "")]).digest, changed.digest);
    assert_eq!(build(&fresh, &mut machine, &[SHELL]).digest, base_alone.digest);
    assert_ne!(changed.digest, base_alone.digest);
}
