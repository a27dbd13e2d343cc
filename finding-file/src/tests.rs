use std::fs::File;
use std::io::Write as _;

use proptest::prelude::*;

use super::error::Error;
use super::header::{self, BLOCK};
use super::limits::{
    DEPTH_MAX, EXPANSION_FREE_BYTES, MANIFEST_BYTES_MAX, MEMBER_BYTES_MAX, MEMBERS_MAX, NAME_BYTES_MAX,
    TOTAL_BYTES_MAX,
};
use super::{Content, Manifest, MemberSource, Reader, check_name, write};

type Members = Vec<(String, Vec<u8>)>;

fn members() -> Members {
    let long = format!("world/{}/f", "folder/".repeat(50).trim_end_matches('/'));
    let texts =
        [("run/run.json", "{}".repeat(300)), ("run/branches.bin", String::new()), (&long, "x".to_owned())];
    texts.map(|(name, text)| (name.to_owned(), text.into_bytes())).into()
}

fn packed(members: &Members) -> Vec<u8> {
    packed_about("about", members)
}

fn packed_about(about: &str, members: &Members) -> Vec<u8> {
    let source = |(name, content): &(String, Vec<u8>)| MemberSource {
        name: name.clone(),
        content: Content::Bytes(content.clone()),
    };
    let sources: Vec<MemberSource> = members.iter().map(source).collect();
    let mut out = Vec::new();
    write(about.to_owned(), &sources, &mut out, &mut |_, _| {}).unwrap();
    out
}

/// Writes these bytes to a file and reads it as a finding file.
fn unpacked(bytes: &[u8]) -> Result<(String, Members), Error> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    unpacked_file(file)
}

fn unpacked_file(mut file: File) -> Result<(String, Members), Error> {
    std::io::Seek::rewind(&mut file).unwrap();
    let mut found = Vec::new();
    let Manifest { about, .. } = Reader::<String>::new(file)?.unpack(&mut |member, content| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        found.push((member.name.clone(), bytes));
        Ok(())
    })?;
    Ok((about, found))
}

#[test]
fn members_are_read_as_they_were_written() {
    let bytes = packed(&members());
    assert_eq!(bytes, packed(&members()), "equal inputs make equal bytes");
    assert!(bytes.starts_with(&super::MAGIC));
    assert_eq!(unpacked(&bytes).unwrap(), ("about".to_owned(), members()));
    // Any tar program can list the members.
    let mut archive = tar::Archive::new(zstd::stream::read::Decoder::new(&bytes[..]).unwrap());
    let names: Vec<String> =
        archive.entries().unwrap().map(|one| one.unwrap().path().unwrap().display().to_string()).collect();
    assert_eq!(names, ["manifest.json", "run/run.json", "run/branches.bin", "long/3"]);
}

#[test]
fn a_file_is_packed_with_the_content_that_was_announced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, "content").unwrap();
    let blake3 = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let put = |bytes, blake3| {
        let content = Content::File { path: path.clone(), bytes, blake3 };
        let mut out = Vec::new();
        write(String::new(), &[MemberSource { name: "f".to_owned(), content }], &mut out, &mut |_, _| {})
            .map(|_| out)
    };
    assert_eq!(unpacked(&put(7, blake3("content")).unwrap()).unwrap().1[0].1, b"content");
    assert!(matches!(put(7, blake3("other")), Err(Error::Changed(_))));
    assert!(matches!(put(8, blake3("content")), Err(Error::Changed(_))));
    assert!(matches!(put(6, blake3("content")), Err(Error::Changed(_))));
}

#[test]
fn only_names_below_a_folder_are_names() {
    for name in ["a", "a/b", "world/.env", "..a/b..", "ä"] {
        check_name(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let (long, deep) = ("a".repeat(NAME_BYTES_MAX + 1), "a/".repeat(DEPTH_MAX) + "a");
    let refused =
        ["", "/", "/etc/passwd", "a//b", "a/", "..", "../a", "a/../../b", ".", "a/./b", "a\\b", "a\0", "a\n"];
    for name in refused.into_iter().chain([&*long, &deep]) {
        assert!(check_name(name).is_err(), "{name:?}");
    }
}

/// Packs an archive as a hostile author could, with any manifest and any blocks after it.
fn forged(manifest: &str, rest: &[&[u8]]) -> Vec<u8> {
    let mut tar = header::of("manifest.json", 0, manifest.len() as u64).unwrap().to_vec();
    let mut add = |bytes: &[u8]| {
        tar.extend(bytes);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    };
    add(manifest.as_bytes());
    rest.iter().for_each(|part| add(part));
    tar.resize(tar.len() + 2 * BLOCK, 0);
    zstd::encode_all(&tar[..], 1).unwrap()
}

fn manifest(members: &str) -> String {
    format!(r#"{{"format":"everett finding","version":1,"about":"a","members":[{members}]}}"#)
}

fn member(name: &str, bytes: u64, content: &str) -> String {
    let blake3 = blake3::hash(content.as_bytes()).to_hex();
    format!(r#"{{"name":{name:?},"bytes":{bytes},"blake3":"{blake3}"}}"#)
}

#[test]
fn forged_files_are_refused_by_name() {
    let refused = |manifest: &str, rest: &[&[u8]]| unpacked(&forged(manifest, rest)).unwrap_err().to_string();
    let head = |name: &str, bytes| header::of(name, 1, bytes).unwrap();
    let fine = manifest(&member("f", 3, "abc"));
    assert!(unpacked(&forged(&fine, &[&head("f", 3), b"abc"])).is_ok());

    assert!(refused(&fine, &[&head("g", 3), b"abc"]).contains("announces f"));
    assert!(refused(&fine, &[&head("f", 4), b"abcd"]).contains("announces f"));
    assert!(refused(&fine, &[&head("f", 3), b"abd"]).contains("f is damaged: its BLAKE3"));
    assert!(refused(&fine, &[&head("f", 3), b"abcd"]).contains("announces f"), "padding has zeros alone");
    assert!(
        refused(&fine, &[&head("f", 3), b"abc", &head("g", 3), b"abc"]).contains("more than its manifest")
    );
    assert!(refused(&fine, &[]).contains("cut off") || refused(&fine, &[]).contains("announces"));
    // The manifest lists a member `f`. A link with this name would lead out of the folder.
    let mut link = tar::Header::new_ustar();
    link.set_path("f").unwrap();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_link_name("/etc/passwd").unwrap();
    link.set_size(3);
    link.set_cksum();
    assert!(refused(&fine, &[link.as_bytes(), b"abc"]).contains("announces f"));

    for name in ["/etc/f", "../f", "a/../../f"] {
        let error = refused(&manifest(&member(name, 3, "abc")), &[&head("f", 3), b"abc"]);
        assert!(error.contains("is not a name"), "{error}");
    }
    let twice = format!("{0},{0}", member("f", 3, "abc"));
    assert!(refused(&manifest(&twice), &[]).contains("f is there twice"));
    assert!(refused(&manifest(&member("manifest.json", 3, "abc")), &[]).contains("twice"));
    assert!(refused(&manifest(&member("f", u64::MAX, "")), &[]).contains("too long"));
    let much = EXPANSION_FREE_BYTES * 2;
    assert!(refused(&manifest(&member("f", much, "")), &[]).contains("times its own length"));
    assert!(refused(&fine.replace("\"version\":1", "\"version\":2"), &[]).contains("format version 2"));
    assert!(refused(&fine.replace("everett finding", "other"), &[]).contains("not a finding file"));
    assert!(refused(&fine.replace("\"about\"", "\"abuot\""), &[]).contains("abuot"));
    assert!(
        refused(&fine.replace("\"blake3\":\"", "\"blake3\":\"../"), &[]).contains("64 hexadecimal digits")
    );
    for bytes in [&b""[..], b"x", &super::MAGIC, b"{\"schema_version\":1}"] {
        assert!(unpacked(bytes).is_err());
    }
}

/// The manifest has no digest of its own, so only the checksum of the zstd frame protects it from damage.
#[test]
fn no_damaged_byte_is_read_as_another_text() {
    // The text has no repetitions, so most bytes of the packed file are its bytes.
    let about: String = (0..9_u8).map(|n| blake3::hash(&[n]).to_hex().to_string()).collect();
    let whole = packed_about(&about, &members());
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        if let Ok((found, _)) = unpacked(&bytes) {
            assert_eq!(found, about, "byte {at}");
        }
    }
}

/// Each bound has an error of its own, so the test notices if any one of the bounds is missing.
#[test]
fn forged_files_beyond_a_bound_are_refused_by_that_bound() {
    let refused =
        |members: &[String]| unpacked(&forged(&manifest(&members.join(",")), &[])).unwrap_err().to_string();
    let too_long = |name: &str, members: &[String]| {
        let error = refused(members);
        assert!(error.starts_with(&format!("{name} makes it too long")), "{error}");
    };
    too_long("f", &[member("f", MEMBER_BYTES_MAX + 1, "")]);
    let all = TOTAL_BYTES_MAX / MEMBER_BYTES_MAX;
    let most: Vec<String> = (0..all).map(|n| member(&format!("f{n}"), MEMBER_BYTES_MAX, "")).collect();
    assert!(refused(&most).contains("times its own length"), "the sum is not too long");
    too_long("g", &[&most[..], &[member("g", 1, "")]].concat());
    let many: Vec<String> = (0..=MEMBERS_MAX).map(|n| member(&n.to_string(), 0, "")).collect();
    assert_eq!(refused(&many), format!("it has more than {MEMBERS_MAX} members"));
    let header = header::of("manifest.json", 0, MANIFEST_BYTES_MAX + 1).unwrap();
    let error = unpacked(&zstd::encode_all(&header[..], 1).unwrap()).unwrap_err().to_string();
    assert_eq!(error, format!("manifest.json: longer than {MANIFEST_BYTES_MAX} bytes"));
}

/// The reader refuses bytes after the end of the archive, because no listing of the archive would show them.
#[test]
fn nothing_follows_the_end() {
    let fine = manifest(&member("f", 3, "abc"));
    let (head, end) = (header::of("f", 1, 3).unwrap(), [0; 2 * BLOCK]);
    for more in [&[0; BLOCK][..], b"x"] {
        let error = unpacked(&forged(&fine, &[&head, b"abc", &end, more])).unwrap_err();
        assert!(matches!(error, Error::More), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// A damaged file is refused, or its content is unchanged.
    #[test]
    fn a_damaged_file_is_refused(at in any::<prop::sample::Index>(), flip in 1_u8.., cut in any::<bool>()) {
        let mut bytes = packed(&members());
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        if let Ok(found) = unpacked(&bytes) {
            prop_assert_eq!(found, ("about".to_owned(), members()));
        }
    }

    /// A hostile author can make any manifest and any tar archive.
    #[test]
    fn any_archive_is_read_or_refused(
        text in "\\PC{0,60}",
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..4),
        valid in any::<bool>(),
        size in any::<u64>(),
    ) {
        let manifest = if valid { manifest(&member(&text, size % 1000, "abc")) } else { text };
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let _ = unpacked(&forged(&manifest, &blocks));
    }
}
