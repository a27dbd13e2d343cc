//! The `ar` archive format of a package (deb(5)): a magic number, then members, each with a header of 60 bytes.

use std::io::{self, Read, Seek, SeekFrom};

const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER_BYTES: usize = 60;
/// Maximum number of members of an archive. A package needs three, and Everett ignores additional members.
const MEMBERS_MAX: usize = 64;

/// A member of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name of the member, for example `data.tar.xz`.
    pub name: String,
    /// Offset of the member's content in the file, in bytes.
    pub offset: u64,
    /// Length of the member's content in bytes.
    pub bytes: u64,
}

/// Lists the members of an archive, in order.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a valid `ar` archive.
pub fn members(file: &mut (impl Read + Seek)) -> io::Result<Vec<Member>> {
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut magic = [0; 8];
    file.read_exact(&mut magic).map_err(|_| broken("it is too short"))?;
    if &magic != MAGIC {
        return Err(broken("it does not start with \"!<arch>\""));
    }
    let mut members = Vec::new();
    let mut position = MAGIC.len() as u64;
    while position + HEADER_BYTES as u64 <= end {
        let mut header = [0; HEADER_BYTES];
        file.seek(SeekFrom::Start(position))?;
        file.read_exact(&mut header)?;
        if &header[58..] != b"`\n" {
            return Err(broken("a header is damaged"));
        }
        let text = |part: &[u8]| String::from_utf8_lossy(part).trim_end().to_owned();
        let bytes: u64 = text(&header[48..58]).parse().map_err(|_| broken("a length is damaged"))?;
        let offset = position + HEADER_BYTES as u64;
        let after = offset.checked_add(bytes).filter(|&after| after <= end);
        let after = after.ok_or_else(|| broken("it is cut off"))?;
        // GNU ar ends names with a slash; dpkg does not.
        let name = text(&header[..16]).trim_end_matches('/').to_owned();
        members.push(Member { name, offset, bytes });
        if members.len() > MEMBERS_MAX {
            return Err(broken("it has too many members"));
        }
        // Members start at even offsets.
        position = after + after % 2;
    }
    Ok(members)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::members;
    use std::io::Cursor;

    /// Makes an archive of these members.
    pub(crate) fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = b"!<arch>\n".to_vec();
        for (name, content) in parts {
            let length = content.len();
            archive
                .extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, 0, 644).into_bytes());
            archive.extend_from_slice(content);
            if length % 2 == 1 {
                archive.push(b'\n');
            }
        }
        archive
    }

    #[test]
    fn members_are_listed() {
        let bytes = archive(&[("debian-binary", b"2.0\n"), ("odd/", b"123"), ("data.tar.xz", b"data")]);
        let found = members(&mut Cursor::new(&bytes)).unwrap();
        let names: Vec<&str> = found.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["debian-binary", "odd", "data.tar.xz"]);
        let start = usize::try_from(found[2].offset).unwrap();
        assert_eq!(&bytes[start..start + 4], b"data");
    }

    #[test]
    fn damage_is_an_error() {
        let bytes = archive(&[("a", b"1234"), ("b", b"5678")]);
        assert!(members(&mut Cursor::new(b"!<arch>")).is_err());
        assert!(members(&mut Cursor::new(b"PK\x03\x04whatever")).is_err());
        assert!(members(&mut Cursor::new(&bytes[..bytes.len() - 1])).is_err());
        let mut broken = bytes.clone();
        broken[8 + 48] = b'x';
        assert!(members(&mut Cursor::new(&broken)).is_err());
    }
}
