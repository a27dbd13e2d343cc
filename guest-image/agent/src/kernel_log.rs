//! Reads the kernel's log, to find out why the kernel has refused a request.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

/// Maximum length of a record of `/dev/kmsg`, in bytes (Linux, `CONSOLE_EXT_LOG_MAX`).
const RECORD_BYTES_MAX: usize = 8 << 10;
/// Maximum number of records to read. The kernel's ring buffer holds fewer.
const RECORDS_MAX: usize = 1 << 16;
/// Highest level of a reported record: warnings (Linux, `KERN_WARNING`). Lower levels are more severe.
const LEVEL_MAX: u32 = 4;
/// Mask for the level in a record's priority (syslog(3)).
const LEVEL_MASK: u32 = 7;
/// Maximum number of reported lines. If there are more, the last lines are reported.
const LINES_MAX: usize = 4;
/// Maximum length of a reported line, in bytes.
const LINE_BYTES_MAX: usize = 256;

/// Returns the last warnings and errors that name `device`, as the end of a sentence, or an empty text.
pub(crate) fn about(device: &str) -> String {
    let Ok(log) = open("/dev/kmsg", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
    else {
        return String::new();
    };
    let mut buffer = [0; RECORD_BYTES_MAX];
    let mut lines = Vec::new();
    for _ in 0..RECORDS_MAX {
        match read(&log, &mut buffer) {
            Ok(0) => break,
            Ok(length) => lines.extend(line_about(&buffer[..length], device)),
            // The kernel overwrote the record before this loop read it.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let told = &lines[lines.len().saturating_sub(LINES_MAX)..];
    if told.is_empty() { String::new() } else { format!("; the kernel says: {}", told.join("; ")) }
}

/// Returns the text of a record if the level is warning or more severe and the text names the device. The form is
/// `PRIORITY,NUMBER,TIME,FLAGS;TEXT\n`, followed by property lines (Linux, Documentation/ABI/testing/dev-kmsg).
fn line_about(record: &[u8], device: &str) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (head, text) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    if priority & LEVEL_MASK > LEVEL_MAX {
        return None;
    }
    let text = text.lines().next()?.trim();
    let names = |word: &str| word == device;
    if !text.split(|c: char| !c.is_ascii_alphanumeric()).any(names) {
        return None;
    }
    let mut text = text.to_owned();
    text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::line_about;

    #[test]
    fn a_record_is_told_if_it_names_the_device() {
        let record = b"3,412,1234567,-;EXT4-fs (vdb): VFS: Found ext4 filesystem with invalid superblock checksum.\n SUBSYSTEM=x\n";
        let text = "EXT4-fs (vdb): VFS: Found ext4 filesystem with invalid superblock checksum.";
        assert_eq!(line_about(record, "vdb").as_deref(), Some(text));
        assert_eq!(line_about(record, "vdbx"), None);
        assert_eq!(line_about(record, "vd"), None);
        assert_eq!(line_about(b"no record", "record"), None);
        assert_eq!(line_about(b"no;record", "record"), None);
        let news = b"6,40,900000,-;virtio_blk virtio3: [vdb] 131072 512-byte logical blocks\n";
        assert_eq!(line_about(news, "vdb"), None, "that it is there is no complaint");
        let long = format!("4,1,2,-;vdb {}", "\u{e4}".repeat(500));
        assert!(line_about(long.as_bytes(), "vdb").is_some_and(|text| text.len() <= 256));
    }
}
