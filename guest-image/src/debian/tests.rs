//! Tests that unpack packages and compare the tree with dpkg's result.

use everett_input::causes::with_causes;

use super::ar::tests::archive;
use super::package::Package;
use super::{Error, database, unpack};
use crate::tree::{Kind, Spool, Tree};
use std::path::PathBuf;
use tar::{Builder, Header};
use tempfile::TempDir;

/// Makes a package with these control files and data files.
pub(crate) fn package(
    folder: &TempDir,
    name: &str,
    control: &str,
    files: &[(&str, &str)],
    data: &[(&str, &str)],
) -> PathBuf {
    let tar = |entries: &[(&str, &str)]| {
        let mut builder = Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = Header::new_gnu();
            header.set_mode(if path.contains("bin/") || path.contains("inst") { 0o755 } else { 0o644 });
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(1_600_000_000);
            if path.ends_with('/') {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                builder.append_data(&mut header, path, std::io::empty()).unwrap();
            } else {
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, content.as_bytes()).unwrap();
            }
        }
        builder.into_inner().unwrap()
    };
    let control = format!("Package: {name}\nVersion: 1:2-3\n{control}Description: a test\n with two lines\n");
    let mut all = vec![("./control", control.as_str())];
    all.extend_from_slice(files);
    let control = zstd::encode_all(tar(&all).as_slice(), 1).unwrap();
    let mut data_part = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut data_part, &tar(data)).unwrap();
    let data = data_part.finish().unwrap();
    let bytes =
        archive(&[("debian-binary", b"2.0\n"), ("control.tar.zst", &control), ("data.tar.gz", &data)]);
    let path = folder.path().join(format!("{name}.deb"));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn text(tree: &Tree, path: &str) -> String {
    let content = tree.file(path.as_bytes()).unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8(content.read(1 << 20).unwrap()).unwrap()
}

#[test]
fn packages_are_unpacked_with_the_records_that_dpkg_would_have() {
    let folder = tempfile::tempdir().unwrap();
    let library = package(
        &folder,
        "libtest1",
        "Architecture: amd64\nMulti-Arch: same\n",
        &[("./triggers", "activate-noawait ldconfig\n"), ("./md5sums", "00  lib/libtest.so\n")],
        &[("./", ""), ("./lib/", ""), ("./lib/libtest.so", "library")],
    );
    let server = package(
        &folder,
        "server",
        "Architecture: all\nDepends: libtest1\n",
        &[
            ("./conffiles", "/etc/server.conf\n"),
            ("./preinst", "#!/bin/sh\n"),
            ("./postinst", "#!/bin/sh\n"),
            ("./triggers", "interest-noawait /usr/share/x\n"),
        ],
        &[("./etc/", ""), ("./etc/server.conf", "port 1"), ("./bin/server", "program")],
    );
    let packages = [Package::open(&library).unwrap(), Package::open(&server).unwrap()];
    let mut tree = unpack::merged_tree().unwrap();
    let mut spool = Spool::new(folder.path(), 1 << 30).unwrap();
    let unpacked: Vec<_> = packages
        .iter()
        .map(|package| unpack::unpack_package(package, &mut tree, &mut spool).unwrap())
        .collect();
    spool.flush().unwrap();
    database::write(&mut tree, &unpacked, "").unwrap();

    // With merged /usr, files that a package ships in /bin and /lib are in /usr.
    assert!(matches!(&tree.inode(tree.find(b"bin").unwrap()).kind, Kind::Link(to) if to == b"usr/bin"));
    assert_eq!(text(&tree, "usr/bin/server"), "program");
    assert_eq!(text(&tree, "usr/lib/libtest.so"), "library");
    // Until dpkg configures the package, configuration files have temporary names.
    assert!(tree.find(b"etc/server.conf").is_none());
    assert_eq!(text(&tree, "etc/server.conf.dpkg-new"), "port 1");
    // Lists contain the paths as the package ships them. Configuration files are listed without the temporary suffix.
    assert_eq!(text(&tree, "var/lib/dpkg/info/libtest1:amd64.list"), "/.\n/lib\n/lib/libtest.so\n");
    assert_eq!(text(&tree, "var/lib/dpkg/info/server.list"), "/etc\n/etc/server.conf\n/bin/server\n");
    let preinst = tree.find(b"var/lib/dpkg/info/server.preinst").unwrap();
    assert_eq!(tree.inode(preinst).attributes.mode, 0o755);
    assert_eq!(text(&tree, "var/lib/dpkg/triggers/File"), "/usr/share/x server/noawait\n");
    assert_eq!(
        text(&tree, "var/lib/dpkg/status"),
        "Package: libtest1\nStatus: install ok unpacked\nVersion: 1:2-3\nArchitecture: amd64\nMulti-Arch: same\n\
         Description: a test\n with two lines\n\n\
         Package: server\nStatus: install ok unpacked\nVersion: 1:2-3\nArchitecture: all\nDepends: libtest1\n\
         Description: a test\n with two lines\nConffiles:\n /etc/server.conf newconffile\n\n"
    );
}

#[test]
fn packages_for_other_machines_and_damaged_packages_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let arm = package(&folder, "tool", "Architecture: arm64\n", &[], &[]);
    let error = Package::open(&arm).unwrap_err().to_string();
    assert_eq!(error, "the package tool is for arm64, and machines are amd64");
    let nameless = package(&folder, "nameless", "", &[], &[]);
    assert!(matches!(Package::open(&nameless), Err(Error::Format { .. })));

    let good = std::fs::read(package(&folder, "good", "Architecture: all\n", &[], &[("./x", "x")])).unwrap();
    let path = folder.path().join("cut.deb");
    // The last byte may be padding, so the test never cuts off only this byte.
    for length in (0..good.len() - 1).step_by(7) {
        std::fs::write(&path, &good[..length]).unwrap();
        // If the package still opens, its data is cut off.
        if let Ok(package) = Package::open(&path) {
            let mut spool = Spool::new(folder.path(), 1 << 30).unwrap();
            assert!(unpack::unpack_package(&package, &mut Tree::default(), &mut spool).is_err(), "{length}");
        }
    }
    let none = folder.path().join("none.deb");
    let error = with_causes(&Package::open(&none).unwrap_err());
    assert_eq!(error, format!("cannot read the package {}: no such file or folder", none.display()));
}

#[test]
fn the_total_length_of_control_files_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(40 << 20);
    let files = [("./md5sums", long.as_str()), ("./triggers", long.as_str())];
    let path = package(&folder, "bomb", "Architecture: all\n", &files, &[]);
    let error = Package::open(&path).unwrap_err().to_string();
    assert!(error.contains("bomb.deb") && error.contains("triggers: with this file"), "{error}");
}
