//! Tests of package mirrors, with a server on loopback that gives every kind of wrong answer.

pub(crate) mod repository;
pub(crate) mod server;
#[path = "../../../../remote/client/tests/signing/mod.rs"]
#[expect(dead_code, reason = "tests of certificates use the rest")]
mod signing;

use repository::{Dates, FOLDER, INDEX, KERNEL, Lab, NOW_S, entry, index, list, sha256, xz};
use server::Answer;
use signing::{Recipe, Signer};

use crate::apt::{self, Exact};
use crate::mirror::{Error, Mirror};
use everett_remote_client::Online;

const KERNEL_PATH: &str = "pool/linux-image-6.1.0-10-cloud-amd64_6.1.10-1.deb";

#[test]
fn a_kernel_is_chosen_and_fetched_and_lists_are_kept() {
    let lab = Lab::new();
    let mut mirror = lab.mirror().unwrap();
    let chosen = mirror.kernel("linux-image-cloud-amd64", &[]).unwrap();
    assert_eq!(
        (chosen.name.as_str(), chosen.version.as_str()),
        ("linux-image-6.1.0-10-cloud-amd64", "6.1.10-1")
    );
    assert_eq!(lab.kernel(&mut mirror).unwrap(), KERNEL);
    assert_eq!(lab.server.requests().len(), 3);
    drop(mirror);
    // The index is the same, so the list is not fetched again.
    lab.mirror().unwrap();
    assert_eq!(lab.server.requests(), [format!("/{INDEX}")]);
    // A damaged list in the state folder is fetched again.
    let state = lab.folder.path().join("state");
    let stored = std::fs::read_dir(&state).unwrap().flatten().map(|entry| entry.path());
    let stored = stored.into_iter().find(|path| path.extension().is_some_and(|end| end == "xz")).unwrap();
    std::fs::write(&stored, b"damaged").unwrap();
    assert_eq!(lab.kernel(&mut lab.mirror().unwrap()).unwrap(), KERNEL);
    // A new list replaces the old one.
    lab.publish(Dates::default(), &format!("{}{}", list(), entry("more", "1", "", b"")));
    lab.mirror().unwrap();
    assert!(!stored.exists());
}

#[test]
fn a_mirror_can_be_a_folder() {
    let lab = Lab::new();
    let root = lab.folder.path().join("mirror");
    let packed = xz(list().as_bytes());
    std::fs::create_dir_all(root.join(FOLDER).join("by-hash/SHA256")).unwrap();
    std::fs::create_dir_all(root.join("pool")).unwrap();
    let text = index(Dates::default(), list().as_bytes(), &packed);
    std::fs::write(root.join(INDEX), lab.signer.sign(&text, NOW_S)).unwrap();
    std::fs::write(root.join(FOLDER).join("by-hash/SHA256").join(sha256(&packed)), &packed).unwrap();
    std::fs::write(root.join(KERNEL_PATH), KERNEL).unwrap();
    for scheme in ["file:", "file://"] {
        let sources = lab.sources(&format!("{scheme}{}", root.display()), true);
        let mut mirror = lab.mirror_of(&sources, NOW_S).unwrap();
        assert_eq!(lab.kernel(&mut mirror).unwrap(), KERNEL);
    }
    let error = lab.mirror_of(&lab.sources("cdrom:[Debian]/", true), NOW_S).err().unwrap().to_string();
    assert!(error.contains("not from cdrom:"), "{error}");
}

#[test]
fn files_that_a_lock_names_need_no_index() {
    let lab = Lab::new();
    let (sources, into) = (lab.sources(&lab.server.address, true), lab.folder.path());
    let mirror = Mirror::open(&into.join("state"), &sources, &Online).unwrap();
    let file = |content: &[u8], path: &str| {
        let (bytes, sha256) = (content.len() as u64, sha256(content));
        crate::apt::ArchiveFile { path: path.to_owned(), bytes, sha256 }
    };
    let files = [file(b"gone", "pool/gone"), file(KERNEL, KERNEL_PATH), file(b"altered", KERNEL_PATH)];
    let mut progress = Vec::new();
    mirror.fetch(&sources, &files, into, &mut |bytes| progress.push(bytes)).unwrap();
    assert_eq!(std::fs::read(into.join(files[1].name())).unwrap(), KERNEL);
    assert!(!into.join(files[0].name()).exists() && !into.join(files[2].name()).exists());
    let expected = ["/pool/gone", &format!("/{KERNEL_PATH}"), &format!("/{KERNEL_PATH}")];
    assert_eq!(lab.server.requests(), expected);
    assert_eq!(progress[0], KERNEL.len() as u64);
    // The lock says that the file is longer than any package, so Everett does not request it.
    let long = crate::apt::ArchiveFile { bytes: u64::MAX, ..files[1].clone() };
    mirror.fetch(&sources, &[long], into, &mut |_| ()).unwrap();
    assert!(lab.server.requests().is_empty());
}

#[test]
fn signatures_of_others_and_altered_texts_are_refused() {
    let lab = Lab::new();
    let packed = xz(list().as_bytes());
    let text = index(Dates::default(), list().as_bytes(), &packed);
    let other = Signer::new(Recipe::new(2));
    lab.server.put(INDEX, Answer::File(other.sign(&text, NOW_S)));
    let error = lab.refusal();
    assert!(
        error.contains("InRelease is not signed by a key that is trusted") && error.contains("is unknown"),
        "{error}"
    );

    let signed = String::from_utf8(lab.signer.sign(&text, NOW_S)).unwrap();
    let altered = signed.replace("Origin: Test", "Origin: Tent");
    assert_ne!(altered, signed);
    lab.server.put(INDEX, Answer::File(altered.into_bytes()));
    assert!(lab.refusal().contains("does not match the text"));

    for unsigned in [text.clone(), String::new(), format!("{text}{signed}"), format!("{signed}{text}")] {
        lab.server.put(INDEX, Answer::File(unsigned.into_bytes()));
        assert!(lab.refusal().contains("is not signed by a key that is trusted"));
    }
}

#[test]
fn an_index_is_of_its_suite_and_valid_now() {
    let lab = Lab::new();
    let until = Some("Fri, 15 Jan 2027 07:59:59 UTC");
    lab.publish(Dates { until, ..Dates::default() }, &list());
    assert!(lab.refusal().contains("expired on Fri, 15 Jan 2027 07:59:59 UTC"));
    lab.publish(Dates { date: "Sat, 16 Jan 2027 07:00:00 UTC", until: None }, &list());
    assert!(lab.refusal().contains("in the future"));
    let packed = xz(list().as_bytes());
    let text = index(Dates::default(), list().as_bytes(), &packed);
    lab.publish_index(&text.replace("Suite: test\nCodename: test", "Suite: stable\nCodename: other"));
    assert!(lab.refusal().contains("this is the index of other, and not of test"));
    lab.publish_index(&text.replace("binary-amd64", "binary-riscv64"));
    assert!(lab.refusal().contains("none of its sources has an index of packages"));
}

#[test]
fn an_older_index_never_replaces_a_newer_one() {
    let lab = Lab::new();
    let dates = |date| Dates { date, until: None };
    lab.publish(dates("Fri, 15 Jan 2027 07:00:00 UTC"), &list());
    lab.mirror().unwrap();
    lab.publish(dates("Fri, 15 Jan 2027 06:59:59 UTC"), &list());
    assert!(lab.refusal().contains("this mirror had a newer one before"));
    lab.publish(dates("Fri, 15 Jan 2027 07:00:01 UTC"), &list());
    lab.mirror().unwrap();
}

#[test]
fn files_that_differ_from_their_digests_are_refused() {
    let lab = Lab::new();
    let packed = xz(list().as_bytes());
    let path = format!("{FOLDER}/by-hash/SHA256/{}", sha256(&packed));
    let mut altered = packed.clone();
    altered[20] ^= 1;
    lab.server.put(&path, Answer::File(altered));
    assert!(lab.refusal().contains("its SHA-256 is"));
    lab.server.put(&path, Answer::File(packed[1..].to_vec()));
    assert!(lab.refusal().contains("its length is"));
    lab.server.put(&path, Answer::File(packed));
    lab.server.put(KERNEL_PATH, Answer::File(b"the newest Kernel".to_vec()));
    let error = lab.refusal();
    assert!(error.contains(KERNEL_PATH) && error.contains("its SHA-256 is"), "{error}");
}

#[test]
fn answers_that_are_cut_off_or_missing_are_refused() {
    let lab = Lab::new();
    let packed = xz(list().as_bytes());
    let text = index(Dates::default(), list().as_bytes(), &packed);
    let path = format!("{FOLDER}/by-hash/SHA256/{}", sha256(&packed));
    let whole =
        [(INDEX, lab.signer.sign(&text, NOW_S)), (path.as_str(), packed), (KERNEL_PATH, KERNEL.to_vec())];
    for (path, content) in whole {
        lab.server.put(path, Answer::Half(content.clone()));
        assert!(lab.refusal().starts_with("cannot fetch http://127.0.0.1"), "{path}");
        lab.server.remove(path);
        let error = lab.refusal();
        assert!(error.contains(path) && error.contains("the mirror answers 404"), "{error}");
        lab.server.put(path, Answer::File(content));
    }
    lab.kernel(&mut lab.mirror().unwrap()).unwrap();
}

#[test]
fn missing_packages_and_versions_are_named() {
    let lab = Lab::new();
    let mut mirror = lab.mirror().unwrap();
    let exact = |version: &str| Exact {
        name: "linux-image-6.1.0-10-cloud-amd64".to_owned(),
        version: version.to_owned(),
    };
    let unknown = mirror.kernel("linux-image-none", &[]).unwrap_err();
    assert!(matches!(unknown, Error::Package(apt::Error::Unknown { .. })), "{unknown}");
    let gone = mirror.locate(&[exact("6.1.10-1"), exact("6.1.8-1")]).unwrap_err();
    assert!(matches!(gone, Error::Package(apt::Error::Gone { .. })), "{gone}");
    let found = mirror.locate(&[exact("6.1.10-1")]).unwrap();
    assert_eq!(found[0].sha256, sha256(KERNEL));
}

#[test]
fn bombs_are_refused_by_the_bound_that_they_break() {
    let lab = Lab::new();
    // One index has too many bytes, and one has too many lines.
    lab.server.put(INDEX, Answer::File(vec![b'x'; 2 << 20]));
    assert!(lab.refusal().contains("has more than 1048576 bytes"));
    lab.server.put(INDEX, Answer::File(vec![b'\n'; 1 << 20]));
    assert!(lab.refusal().contains("more than 8000 lines"));
    // The first two indexes announce a list that is too long, compressed or decompressed. After them come a list that
    // is longer than its index says, and a list with a line that is too long.
    let (text, packed) = (list(), xz(list().as_bytes()));
    let good = index(Dates::default(), text.as_bytes(), &packed);
    let line = |bytes: usize, path: &str| format!(" {bytes} main/binary-amd64/{path}\n");
    for (length, path, most) in [(packed.len(), "Packages.xz", 64 << 20), (text.len(), "Packages", 256 << 20)]
    {
        lab.publish_index(&good.replace(&line(length, path), &line((256 << 20) + 1, path)));
        assert!(lab.refusal().contains(&format!("has more than {most} bytes")), "{path}");
    }
    lab.publish_index(&good.replace(&line(text.len(), "Packages"), &line(text.len() - 1, "Packages")));
    assert!(lab.refusal().contains("it is longer than its index says"));
    let zeros = xz(&vec![0; 8 << 20]);
    lab.server.put(&format!("{FOLDER}/by-hash/SHA256/{}", sha256(&zeros)), Answer::File(zeros.clone()));
    lab.publish_index(&index(Dates::default(), &vec![0; 8 << 20], &zeros));
    assert!(lab.refusal().contains("a line is too long"));
    // The package is longer than the list says.
    lab.publish(Dates::default(), &text);
    lab.server.put(KERNEL_PATH, Answer::File([KERNEL, KERNEL].concat()));
    assert!(lab.refusal().contains(&format!("has more than {} bytes", KERNEL.len())));
}

#[test]
fn redirections_are_followed_a_few_times() {
    let lab = Lab::new();
    let base = &lab.server.address;
    lab.server.put(KERNEL_PATH, Answer::Redirect(format!("{base}/elsewhere")));
    lab.server.put("elsewhere", Answer::File(KERNEL.to_vec()));
    assert_eq!(lab.kernel(&mut lab.mirror().unwrap()).unwrap(), KERNEL);
    lab.server.put("elsewhere", Answer::Redirect(format!("{base}/elsewhere")));
    assert!(lab.refusal().contains("redirect"));
    lab.server.put("elsewhere", Answer::Redirect("file:///etc/passwd".to_owned()));
    assert!(lab.refusal().starts_with("cannot fetch"));
}

#[test]
fn an_archive_cannot_bring_keys_of_its_own() {
    let lab = Lab::new();
    let keys = String::from_utf8(lab.signer.certificate.to_armored_bytes(None.into()).unwrap()).unwrap();
    let data = [("./usr/share/keyrings/debian-archive-keyring.gpg", keys.as_str())];
    let package = crate::debian::tests::package(
        &lab.folder,
        "debian-archive-keyring",
        "Architecture: all\n",
        &[],
        &data,
    );
    let package = std::fs::read(package).unwrap();
    let sources = lab.sources(&lab.server.address, false);
    let refused = || lab.mirror_of(&sources, NOW_S).err().unwrap().to_string();
    assert!(refused().contains("the archive has no debian-archive-keyring"));
    lab.publish(
        Dates::default(),
        &format!("{}{}", list(), entry("debian-archive-keyring", "1", "", &package)),
    );
    lab.server.put("pool/debian-archive-keyring_1.deb", Answer::File(package));
    let error = refused();
    assert!(error.contains("none of them is a key of Debian that Everett knows"), "{error}");
    assert!(!lab.folder.path().join("state/keyring.pgp").exists());
    // Keys in the state folder are accepted only with Debian's fingerprints, like keys from the archive.
    std::fs::write(lab.folder.path().join("state/keyring.pgp"), lab.signer.file()).unwrap();
    assert!(refused().contains("none of them is a key of Debian that Everett knows"));
    // A file of keys that the host's configuration names is trusted. A named file without keys is an error.
    lab.mirror().unwrap();
    std::fs::write(lab.folder.path().join("keys.pgp"), b"no keys").unwrap();
    assert!(lab.refusal().starts_with("cannot use the keys in "));
}
