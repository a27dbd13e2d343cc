//! Images with different userlands (C library and basic programs), in several image formats.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use everett_session::world::event::What;
use everett_streams::Seed;

use super::tools::{text, tools};
use super::{launcher, run, run_under, verify};
use crate::support::{MS, findings, lines, run_to_end};

#[test]
fn busybox_of_buildah_runs_as_its_user_and_gets_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let buildah = tools().buildah(folder.path());
    let source = folder.path().join("source");
    fs::create_dir_all(source.join("bin")).unwrap();
    fs::create_dir_all(source.join("etc")).unwrap();
    let busybox = ["bin/busybox", "usr/bin/busybox"].map(|path| tools().path(path));
    let busybox = busybox.iter().find(|path| path.is_file()).expect("busybox");
    fs::copy(busybox, source.join("bin/busybox")).unwrap();
    for name in ["sh", "id", "sleep", "test", "touch", "echo", "cat", "ls", "grep"] {
        std::os::unix::fs::symlink("busybox", source.join("bin").join(name)).unwrap();
    }
    fs::write(source.join("etc/passwd"), "root:x:0:0::/:/bin/sh\napp:x:10:11::/srv:/bin/sh\n").unwrap();
    fs::write(source.join("etc/group"), "root:x:0:\napp:x:11:\nmore:x:12:app,other\n").unwrap();
    let container = buildah.run(&["from", "scratch"]);
    buildah.run(&["copy", &container, text(&source), "/"]);
    let main = "id; ls -ld /run; sleep 1; touch /tmp/healthy; echo healthy; exec sleep 1000";
    let cmd = format!("[\"/bin/sh\",\"-c\",\"{main}\"]");
    buildah.run(&[
        "config",
        "--user",
        "app",
        "--env",
        "PATH=/bin",
        "--cmd",
        &cmd,
        "--healthcheck",
        "CMD-SHELL test -e /tmp/healthy",
        &container,
    ]);
    // Only Docker's image format has healthchecks, so the image is also written as an archive in Docker's format.
    buildah.commit(&container, "docker", &format!("docker-archive:{}/image.tar:x:1", text(&folder.path())));
    let world = "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"docker-archive:image.tar:x:1\"\n\
         [[workload.check]]\nname = \"group\"\nargv = [\"sh\", \"-c\", \"id -G; test $HOME = /srv\"]\n\
         [[workload.check]]\nname = \"root\"\nuser = \"root\"\nargv = [\"sh\", \"-c\", \"id -u; grep CapEff /proc/self/status\"]\n";
    let launcher = launcher(folder.path(), world);
    let mut timeline = launcher.start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, 100 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let own = lines(&events, "a");
    assert_eq!(own[0], "uid=10(app) gid=11(app) groups=12(more)");
    assert_eq!(own.last(), Some(&"healthy"));
    assert!(timeline.ready_ns().unwrap() > 1_000 * MS, "ready before it was healthy");
    assert_eq!(lines(&events, "group"), ["11 12"]);
    assert_eq!(lines(&events, "root"), ["0", "CapEff:\t00000000a80425fb"]);
    verify(folder.path(), "100ms");
}

/// Returns a layer: a tar archive with these entries.
fn layer(entries: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    entries(&mut builder);
    builder.into_inner().unwrap()
}

fn add(builder: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    builder.append_data(&mut header, path, content).unwrap();
}

/// Makes a layout with umoci. It has one layer, which umoci adds without checking its content, and a configuration.
fn layout(folder: &Path, layer: &[u8], config: &[&str]) {
    let image = format!("{}/layout:it", text(&folder));
    let path = folder.join("layer.tar");
    fs::write(&path, layer).unwrap();
    let umoci = |arguments: &[&str]| tools().run("umoci", arguments);
    umoci(&["init", "--layout", &format!("{}/layout", text(&folder))]);
    umoci(&["new", "--image", &image]);
    umoci(&["raw", "add-layer", "--image", &image, text(&path)]);
    umoci(&[&["config", "--image", &image], config].concat());
}

#[test]
fn a_file_with_capabilities_gives_them_to_a_user() {
    let folder = tempfile::tempdir().unwrap();
    let source = "fn main() { let status = std::fs::read_to_string(\"/proc/self/status\").unwrap();\n\
         println!(\"{}\", status.lines().find(|line| line.starts_with(\"CapEff\")).unwrap());\n\
         loop { std::thread::park(); } }";
    let program = fs::read(super::tools::static_program(folder.path(), source)).unwrap();
    // Returns the capability attribute (version 2) of a file, with the effective flag and these permitted
    // capabilities. Below, bit 13 is net_raw; bit 21 is sys_admin, which containers do not have.
    let capability = |bits: u32| {
        let words = [0x0200_0001_u32, bits, 0, 0, 0];
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    let image = layer(|builder| {
        builder
            .append_pax_extensions([("SCHILY.xattr.security.capability", &capability(1 << 13)[..])])
            .unwrap();
        add(builder, "raw", 0o755, &program);
        builder
            .append_pax_extensions([("SCHILY.xattr.security.capability", &capability(1 << 21)[..])])
            .unwrap();
        add(builder, "admin", 0o755, &program);
    });
    layout(folder.path(), &image, &["--config.cmd", "/raw", "--config.user", "1000:1000"]);
    let world = "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"layout\"\n";
    let events = run(folder.path(), world, 100 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    assert_eq!(lines(&events, "a"), ["CapEff:\t0000000000002000"]);
    verify(folder.path(), "100ms");
    // The kernel refuses to start a program whose file capabilities exceed the bounding set.
    let events = run(folder.path(), &format!("{world}service = [\"/admin\"]\n"), 100 * MS);
    assert_eq!(
        lines(&events, "admin"),
        ["everett: cannot start /admin: Operation not permitted (os error 1)"]
    );
}

/// Compiles a C program with musl, with debug information and a build ID.
pub(super) fn program_of_musl(folder: &Path, source_text: &str) -> PathBuf {
    let source = folder.join("program.c");
    fs::write(&source, source_text).unwrap();
    let program = folder.join("program");
    let musl = |path: &str| tools().path(path).display().to_string();
    let lib = |name: &str| musl(&format!("usr/lib/x86_64-linux-musl/{name}"));
    // Compiles as musl's compiler wrapper does: only with musl's headers and objects.
    let output = Command::new("cc")
        .args([
            "-nostdinc",
            "-isystem",
            &musl("usr/include/x86_64-linux-musl"),
            "-nostdlib",
            "-fno-pie",
            "-no-pie",
        ])
        .args(["-g", "-Wl,--build-id"])
        .args(["-fno-stack-protector", "-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1"])
        .args([&lib("crt1.o"), &lib("crti.o"), text(&source)])
        // Names the library with -l. With a path instead, the program would look for the library at that path.
        .args(["-L", &musl("lib/x86_64-linux-musl"), "-lc", &lib("crtn.o")])
        .args(["-o", text(&program)])
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Makes a layout with an image that has musl and a program, which runs as user 77.
pub(super) fn layout_of_musl(folder: &Path, program: &Path) {
    let shared = tools().path("lib/x86_64-linux-musl/libc.so");
    let (libc, program) = (fs::read(shared).unwrap(), fs::read(program).unwrap());
    let image = layer(|builder| {
        add(builder, "lib/libc.so", 0o755, &libc);
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        builder.append_link(&mut header, "lib/ld-musl-x86_64.so.1", "libc.so").unwrap();
        add(builder, "program", 0o755, &program);
    });
    layout(folder, &image, &["--config.cmd", "/program", "--config.user", "77"]);
}

#[test]
fn a_program_of_musl_finds_its_own_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_of_musl(
        folder.path(),
        "#include <stdio.h>\n#include <unistd.h>\n#include <netdb.h>\n\
         int main(void) { struct addrinfo *found; setvbuf(stdout, 0, _IOLBF, 0);\n\
         printf(\"resolved %d\\n\", getaddrinfo(\"other\", \"80\", 0, &found));\n\
         printf(\"user %d\\n\", (int)getuid()); for (;;) pause(); }\n",
    );
    layout_of_musl(folder.path(), &program);
    // Two nodes. Their world file names the same layout in two ways.
    let world = "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"oci:layout:it\"\n\
         [[node]]\nname = \"other\"\nmemory = \"96M\"\nimage = \"layout\"\nservice = []\n";
    let events = run(folder.path(), world, 100 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    assert_eq!(lines(&events, "a"), ["resolved 0", "user 77"]);
    verify(folder.path(), "100ms");
}

/// Program that loads the SDK's library, and closes the descriptor that the library opened, so that another file gets
/// its number.
const SPEAKER: &str = r#"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void (*json)(const char *, size_t);
static void say(const char *line) { json(line, strlen(line)); }
int main(void) {
    setvbuf(stdout, 0, _IOLBF, 0);
    void *library = dlopen("/usr/lib/libvoidstar.so", RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    json = (void (*)(const char *, size_t))dlsym(library, "fuzz_json_data");
    uint64_t (*random)(void) = (uint64_t (*)(void))dlsym(library, "fuzz_get_random");
    say("{\"before\":1}");
    for (int fd = 3; fd < 1024; fd++) close(fd);
    int files = 0;
    while (open("/tmp/file", O_CREAT | O_RDWR | O_APPEND, 0600) >= 0 && files < 1000) files++;
    say("{\"after\":2}");
    struct stat file;
    stat("/tmp/file", &file);
    printf("user %d, %d files, %d bytes in them\n", (int)getuid(), files > 900, (int)file.st_size);
    if (fork() == 0) { say("{\"child\":3}"); _exit(0); }
    wait(0);
    printf("random %d, folder %s\n", random() != random(), getenv("ANTITHESIS_OUTPUT_DIR"));
    say("{\"antithesis_setup\":{\"status\":\"complete\"}}");
    for (;;) pause();
}
"#;

#[test]
fn a_program_of_musl_in_an_image_has_the_sdk() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_of_musl(folder.path(), SPEAKER);
    layout_of_musl(folder.path(), &program);
    let world = "[sdk]\n[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"oci:layout:it\"\n";
    let plan = "{\"at\":\"50ms\",\"for\":\"100ms\",\"fault\":\"power_loss\",\"node\":\"a\"}\n";
    let events = run_under(folder.path(), world, plan, 1_500 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let said: Vec<&str> = events
        .iter()
        .filter_map(|event| if let What::Sdk { text } = &event.what { Some(text.as_str()) } else { None })
        .collect();
    let once = [
        "{\"before\":1}",
        "{\"after\":2}",
        "{\"child\":3}",
        "{\"antithesis_setup\":{\"status\":\"complete\"}}",
    ];
    assert_eq!(said, [once, once].concat(), "once before the power loss, once after it");
    let line = ["user 77, 1 files, 0 bytes in them", "random 1, folder /tmp/antithesis"];
    assert_eq!(lines(&events, "a"), [line, line].concat());
    verify(folder.path(), "100ms");
}

#[test]
fn debian_of_mmdebstrap_runs_a_redis_whose_data_is_in_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.tar");
    // mmdebstrap is a Perl script that needs apt; hosts that test images have both. The output need not survive a
    // crash of the host, so dpkg may skip flushes.
    let mut command = Command::new("perl");
    command.arg(tools().path("usr/bin/mmdebstrap")).args([
        "--quiet",
        "--variant=apt",
        "--include=redis-server,redis-tools",
    ]);
    command.arg("--dpkgopt=force-unsafe-io").args(["bookworm", text(&root), "http://deb.debian.org/debian"]);
    let output = command.env("TMPDIR", folder.path()).output().expect("perl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(&root).unwrap();
    layout(
        folder.path(),
        &bytes,
        &[
            "--config.cmd",
            "redis-server",
            "--config.cmd",
            "--dir",
            "--config.cmd",
            "/var/lib/redis",
            "--config.cmd",
            "--appendonly",
            "--config.cmd",
            "yes",
            "--config.user",
            "redis",
            "--config.volume",
            "/var/lib/redis",
        ],
    );
    let world = "[[node]]\nname = \"db\"\nmemory = \"192M\"\nimage = \"oci:layout:it\"\n[[node.service]]\n\
         ready = { command = [\"redis-cli\", \"ping\"] }\n\
         [[workload.driver]]\nname = \"load\"\nargv = [\"redis-cli\", \"set\", \"key\", \"value\"]\n\
         [[workload.check]]\nname = \"there\"\nargv = [\"redis-cli\", \"get\", \"key\"]\n\
         [[workload.check]]\nname = \"owner\"\nargv = [\"stat\", \"-c\", \"%U %a\", \"/var/lib/redis\"]\n";
    let events = run(folder.path(), world, 500 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    assert_eq!(lines(&events, "there"), ["value"]);
    assert_eq!(lines(&events, "owner"), ["redis 750"]);
    verify(folder.path(), "500ms");
}
