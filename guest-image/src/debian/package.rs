//! One Debian package: its control files, and a reader of its data.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use everett_input::causes::with_causes;
use everett_input::file::{self as input, Reason};

use super::{Error, ar, control::Control};
use crate::archive;
use crate::compression::Format;

/// Maximum total length of a package's control files (scripts, digests, lists), in bytes.
const CONTROL_BYTES_MAX: u64 = 64 << 20;

/// A package whose control part has been read.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    /// Name of the package.
    pub name: String,
    /// Fields of the file `control`.
    pub control: Control,
    /// Control files besides `control` (scripts, `md5sums`, `conffiles`, `triggers`...): name, mode, content.
    pub files: Vec<(String, u32, Vec<u8>)>,
    data: ar::Member,
}

impl Package {
    /// Reads the control part of the package in this file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a package, or is for another architecture.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = || path.display().to_string();
        let format = |problem: String| Error::Format { path: name(), problem };
        let read = |source: io::Error| match source.kind() {
            io::ErrorKind::InvalidData => Error::Format { path: name(), problem: with_causes(&source) },
            _ => Error::Read { path: name(), source: Reason::Io(source) },
        };
        let opened = input::open(path);
        let (mut file, _) = opened.map_err(|error| Error::Read { path: name(), source: error.reason })?;
        let members = ar::members(&mut file).map_err(read)?;
        let member = |start: &str| {
            let found = members.iter().find(|member| member.name.starts_with(start)).cloned();
            found.ok_or_else(|| format(format!("it has no {start}")))
        };
        let (control_part, data) = (member("control.tar")?, member("data.tar")?);
        let mut control = None;
        let mut files = Vec::new();
        let control_part = reader(file, &control_part).map_err(read)?;
        let entries = archive::each(control_part, CONTROL_BYTES_MAX, |entry, _| {
            if !entry.header().entry_type().is_file() {
                return Ok(());
            }
            let path = entry.path()?;
            let Some(file_name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
                return Ok(());
            };
            let mode = entry.header().mode().unwrap_or(0o644) & 0o777;
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if file_name == "control" {
                control = Some(Control::parse(&String::from_utf8_lossy(&content)));
            } else {
                files.push((file_name, mode, content));
            }
            Ok::<(), archive::Error>(())
        });
        entries.map_err(|error| format(with_causes(&error)))?;
        files.sort();
        let control = control.ok_or_else(|| format(String::from("it has no control file")))?;
        let required = |key: &str| control.field(key).ok_or_else(|| format(format!("it has no field {key}")));
        let package = required("Package")?.to_owned();
        required("Version")?;
        let architecture = required("Architecture")?;
        if !matches!(architecture, "amd64" | "all") {
            return Err(Error::Architecture { package, architecture: architecture.to_owned() });
        }
        Ok(Package { path: path.to_path_buf(), name: package, control, files, data })
    }

    /// Returns the path of the package's file. Error messages show it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text of the control file with this name.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<String> {
        let found = self.files.iter().find(|(file, ..)| file == name);
        found.map(|(_, _, content)| String::from_utf8_lossy(content).into_owned())
    }

    /// Returns a reader of the package's data, which is a tar archive.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the compression format is unknown.
    pub fn data(&self) -> io::Result<Box<dyn Read>> {
        reader(File::open(&self.path)?, &self.data)
    }

    /// Returns the paths of the package's configuration files (deb-conffiles(5)).
    #[must_use]
    pub fn conffiles(&self) -> Vec<String> {
        let text = self.file("conffiles").unwrap_or_default();
        let lines = text.lines().map(str::trim);
        lines.filter(|line| line.starts_with('/')).map(str::to_owned).collect()
    }
}

/// Returns a reader of a member. The suffix of the member's name decides how the reader decompresses.
fn reader(mut file: File, member: &ar::Member) -> io::Result<Box<dyn Read>> {
    file.seek(SeekFrom::Start(member.offset))?;
    let packed = BufReader::with_capacity(1 << 20, file.take(member.bytes));
    if member.name.ends_with(".tar") {
        return Ok(Box::new(packed));
    }
    let unknown = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} has an unknown compression format", member.name),
        )
    };
    Format::of_name(&member.name).ok_or_else(unknown)?.reader(packed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Control, Package, ar};

    /// Returns a package with these control fields and files, and without data.
    pub(crate) fn package(name: &str, control: &str, files: &[(&str, &str)]) -> Package {
        let files =
            files.iter().map(|(name, text)| ((*name).to_owned(), 0o755, text.as_bytes().to_vec())).collect();
        let data = ar::Member { name: "data.tar".to_owned(), offset: 0, bytes: 0 };
        let control = Control::parse(&format!("Package: {name}\nVersion: 1\nArchitecture: all\n{control}"));
        Package { path: name.into(), name: name.to_owned(), control, files, data }
    }
}
