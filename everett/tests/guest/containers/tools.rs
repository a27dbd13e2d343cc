//! Tools for container images, from Debian packages. The packages are unpacked, not installed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use everett_guest_image::Cache;
use everett_guest_image::apt::Apt;
use everett_guest_image::apt::sources::Sources;
use everett_guest_image::debian::package::Package;

/// Packages with the tools, with programs for the images, and with programs that check what Everett writes.
const PACKAGES: [&str; 10] = [
    "buildah",
    "busybox-static",
    "docker-registry",
    "e2fsprogs",
    "gdb-minimal",
    "mmdebstrap",
    "musl-dev",
    "skopeo",
    "tcpdump",
    "umoci",
];

/// Folders of the packages' programs.
const PROGRAMS: [&str; 3] = ["usr/bin", "usr/sbin", "sbin"];

/// Debian release of the packages, the same as for the guests' kernels.
const SUITE: &str = "bookworm";

/// Package with the compose command, and the first Debian release that has version 2 of this command. The command needs
/// no other library than glibc, and the version of glibc in [`SUITE`] is new enough.
const COMPOSE: (&str, &str) = ("docker-compose", "trixie");

/// Prefixes of the names of glibc's libraries. They are not taken from the packages, because the host's dynamic
/// linker works only with its own glibc.
const OF_GLIBC: [&str; 16] = [
    "ld-linux",
    "libBrokenLocale",
    "libanl.so",
    "libc.so",
    "libc_malloc",
    "libdl.so",
    "libm.so",
    "libmemusage",
    "libmvec",
    "libnsl",
    "libnss",
    "libpcprofile",
    "libpthread",
    "libresolv",
    "librt.so",
    "libthread_db",
];

/// Unpacked packages.
pub(super) struct Tools {
    root: PathBuf,
    libraries: PathBuf,
}

/// Returns the tools. The first caller downloads them, unless an earlier test run has unpacked the same versions.
pub(super) fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("container-tools");
        let apt = Apt::open(&folder.join("apt"), &Sources::of_host(SUITE, None)).expect("apt");
        apt.update().expect("package lists");
        let names = PACKAGES.map(str::to_owned);
        let mut packages = apt.resolve(&names, &[]).expect("the packages");
        // Only the libraries among the dependencies are unpacked. The programs among them are on the host already: a C
        // compiler, Perl and apt.
        let wanted: BTreeSet<&str> = PACKAGES.into();
        packages.retain(|package| {
            wanted.contains(package.name.as_str())
                || package.name.starts_with("lib")
                || package.name == "musl"
        });
        let versions: String = packages.iter().map(|one| format!("{} {}\n", one.name, one.version)).collect();
        let done = folder.join("done");
        let tools = Tools { root: folder.join("root"), libraries: folder.join("libraries") };
        if fs::read_to_string(&done).is_ok_and(|known| known == versions) {
            return tools;
        }
        let _ = fs::remove_dir_all(&tools.root);
        let _ = fs::remove_dir_all(&tools.libraries);
        let downloads = tempfile::tempdir_in(&folder).unwrap();
        let remotes = apt.locate(&packages).expect("the packages' files");
        apt.download(&remotes, downloads.path()).expect("the packages");
        for remote in &remotes {
            let package = Package::open(&downloads.path().join(&remote.file)).expect("a package");
            let mut archive = tar::Archive::new(package.data().expect("its data"));
            archive.set_preserve_permissions(true);
            archive.unpack(&tools.root).unwrap_or_else(|error| panic!("{}: {error}", remote.file));
        }
        fs::create_dir_all(&tools.libraries).unwrap();
        for entry in fs::read_dir(tools.root.join("usr/lib/x86_64-linux-gnu")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.contains(".so") && !OF_GLIBC.iter().any(|start| name.starts_with(start)) {
                symlink(&path, tools.libraries.join(name)).unwrap();
            }
        }
        let lib = tools.root.join("lib/x86_64-linux-gnu");
        for entry in fs::read_dir(lib).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.contains(".so") && !OF_GLIBC.iter().any(|start| name.starts_with(start)) {
                let _ = symlink(&path, tools.libraries.join(name));
            }
        }
        fs::write(&done, versions).unwrap();
        tools
    })
}

/// Returns the path of the compose command. The first caller downloads it, if no earlier test run did.
pub(super) fn compose_command() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compose-command");
        let (name, suite) = COMPOSE;
        let apt = Apt::open(&folder.join("apt"), &Sources::of_host(suite, None)).expect("apt");
        apt.update().expect("package lists");
        let mut packages = apt.resolve(&[name.to_owned()], &[]).expect("the package");
        packages.retain(|package| package.name == name);
        let root = folder.join(&packages[0].version);
        let program = root.join("usr/libexec/docker/cli-plugins/docker-compose");
        if program.is_file() {
            return program;
        }
        let downloads = tempfile::tempdir_in(&folder).unwrap();
        let remotes = apt.locate(&packages).expect("the package's file");
        apt.download(&remotes, downloads.path()).expect("the package");
        let package = Package::open(&downloads.path().join(&remotes[0].file)).expect("a package");
        // Unpacks into a temporary folder and renames it, so that a killed test leaves nothing incomplete.
        let unpacked = downloads.path().join("root");
        tar::Archive::new(package.data().expect("its data")).unpack(&unpacked).unwrap();
        fs::rename(unpacked, &root).unwrap();
        program
    })
}

impl Tools {
    /// Returns the path of a file in the packages.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns a command that runs one of the tools.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut places = PROGRAMS.iter().map(|folder| self.path(folder).join(name));
        let program = places.find(|path| path.exists()).unwrap_or_else(|| panic!("no package has {name}"));
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.libraries);
        command
    }

    /// Runs a tool that must succeed. Returns its standard output.
    pub(super) fn run(&self, name: &str, arguments: &[&str]) -> String {
        said(self.command(name).args(arguments).output().expect("the tool starts"), name, arguments)
    }

    /// Returns a folder with these tools, for the `PATH` of a script.
    pub(super) fn folder_of(&self, names: &[&str]) -> PathBuf {
        let folder = self.root.with_file_name("bin");
        fs::create_dir_all(&folder).unwrap();
        for name in names {
            let real = self.path("usr/bin").join(name);
            let (real, libraries) = (real.display(), self.libraries.display());
            // mmdebstrap is a Perl script and starts programs of the host. These must not get the packages' libraries.
            let start = match *name {
                "mmdebstrap" => format!("exec perl '{real}'"),
                _ => format!("LD_LIBRARY_PATH='{libraries}' exec '{real}'"),
            };
            let text = format!("#!/bin/sh\n{start} \"$@\"\n");
            let path = folder.join(name);
            if fs::read_to_string(&path).is_ok_and(|there| there == text) {
                continue;
            }
            let mut file = tempfile::NamedTempFile::new_in(&folder).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755)).unwrap();
            file.into_temp_path().persist(&path).unwrap();
        }
        folder
    }

    /// Returns a buildah that stores its images in `folder`.
    pub(super) fn buildah(&self, folder: &Path) -> Buildah<'_> {
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("policy.json", r#"{"default":[{"type":"insecureAcceptAnything"}]}"#);
        let at = folder.display();
        write(
            "storage.conf",
            &format!("[storage]\ndriver = \"vfs\"\nrunroot = \"{at}/run\"\ngraphroot = \"{at}/graph\"\n"),
        );
        Buildah { tools: self, folder: folder.to_owned() }
    }
}

/// Buildah with its own image store.
pub(super) struct Buildah<'t> {
    tools: &'t Tools,
    folder: PathBuf,
}

impl Buildah<'_> {
    /// Runs a buildah command that must succeed. Returns its standard output without the last newline.
    pub(super) fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.tools.command("buildah");
        command.env("CONTAINERS_STORAGE_CONF", self.folder.join("storage.conf"));
        command.env("CONTAINERS_REGISTRIES_CONF", "/dev/null").env("BUILDAH_ISOLATION", "chroot");
        // These variables keep buildah from reading the host's configuration.
        command.env("HOME", &self.folder).env("XDG_RUNTIME_DIR", &self.folder);
        let output = command.args(arguments).output().expect("buildah starts");
        said(output, "buildah", arguments).trim_end().to_owned()
    }

    /// Commits a container as an image at `to`, e.g. `docker-archive:PATH`.
    pub(super) fn commit(&self, container: &str, format: &str, to: &str) {
        let policy = self.folder.join("policy.json").display().to_string();
        self.run(&["commit", "--format", format, "--signature-policy", &policy, container, to]);
    }
}

fn said(output: Output, name: &str, arguments: &[&str]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Compiles a static Rust program into `folder`. Returns its path.
pub(super) fn static_program(folder: &Path, source: &str) -> PathBuf {
    let (from, to) = (folder.join("program.rs"), folder.join("program"));
    fs::write(&from, source).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let arguments = [
        "-O",
        "--edition",
        "2024",
        "-Ctarget-feature=+crt-static",
        "-Crelocation-model=static",
        "-Cstrip=symbols",
    ];
    let output =
        Command::new(rustc).args(arguments).arg("-o").arg(&to).arg(&from).output().expect("rustc starts");
    said(output, "rustc", &arguments);
    to
}

/// Compiles a static Rust program and makes a new OCI layout (folder of images) at `layout`. Its only image contains
/// the program as `/program`. `config` are umoci's options for the image's configuration. Returns the name of the
/// image, `LAYOUT:TAG`.
pub(super) fn program_image(
    folder: &Path,
    layout: &Path,
    tag: &str,
    source: &str,
    config: &[&str],
) -> String {
    let program = static_program(folder, source);
    let image = format!("{}:{tag}", text(&layout));
    let umoci = |arguments: &[&str]| tools().run("umoci", arguments);
    umoci(&["init", "--layout", text(&layout)]);
    umoci(&["new", "--image", &image]);
    umoci(&["insert", "--image", &image, text(&program), "/program"]);
    umoci(&[&["config", "--image", &image], config].concat());
    image
}

/// Returns the user's cache, so that a test can inspect it.
pub(super) fn cache() -> Cache {
    Cache::of_user().expect("a cache")
}

/// Returns a path as text.
pub(super) fn text(path: &impl AsRef<OsStr>) -> &str {
    path.as_ref().to_str().expect("a path of text")
}
