//! Open files of a process.

use crate::limits::{FILES_MAX, PATH_STEPS_OF_PROCESS_MAX};
use crate::path::Place;
use crate::task::Process;
use crate::{Error, Guest};

/// Open file of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Kind.
    pub kind: Kind,
    /// Path or name, as the link in `/proc/PID/fd` shows it to the process.
    pub name: String,
    /// Offset at which the file is read and written next, in bytes.
    pub offset: u64,
    /// Flags as in `/proc/PID/fdinfo`: bits of `O_RDWR`, `O_APPEND` and so on, with `O_CLOEXEC`.
    pub flags: u32,
    /// Number of the mount, as in `/proc/PID/mountinfo`.
    pub mount: u32,
    /// Device of the file system: major and minor number.
    pub device: (u32, u32),
    /// Number of the inode.
    pub inode: u64,
    /// Length of the inode, in bytes.
    pub bytes: u64,
    /// Device of a character or block special file: major and minor number.
    pub special_device: Option<(u32, u32)>,
    /// Address of the `sock`, if the file is a socket.
    pub sock: Option<u64>,
    /// Address of its `file_operations`.
    pub(crate) ops: u64,
    /// Its `private_data`.
    pub(crate) private: u64,
    /// Address of its `inode`.
    pub(crate) inode_at: u64,
}

/// Descriptors of a process, each with its file, or with the reason why the file cannot be read.
pub type OpenFiles = Vec<(u32, Result<OpenFile, Error>)>;

/// Kind of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Regular file.
    Regular,
    /// Folder.
    Folder,
    /// Symbolic link.
    Link,
    /// Character special file.
    Character,
    /// Block special file.
    Block,
    /// Pipe, with or without a name.
    Pipe,
    /// Socket.
    Socket,
    /// Object without a file, such as an eventfd.
    Anonymous,
}

impl Kind {
    /// Returns the kind of a file with this mode.
    fn of(mode: u64) -> Kind {
        match mode & 0o170_000 {
            0o010_000 => Kind::Pipe,
            0o020_000 => Kind::Character,
            0o040_000 => Kind::Folder,
            0o060_000 => Kind::Block,
            0o100_000 => Kind::Regular,
            0o120_000 => Kind::Link,
            0o140_000 => Kind::Socket,
            _ => Kind::Anonymous,
        }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Regular => "file",
            Kind::Folder => "folder",
            Kind::Link => "link",
            Kind::Character => "char",
            Kind::Block => "block",
            Kind::Pipe => "pipe",
            Kind::Socket => "socket",
            Kind::Anonymous => "anon",
        }
    }
}

/// Descriptor of an open file, and whether it is closed when the process executes another program.
pub(crate) struct Descriptor {
    pub(crate) number: u32,
    pub(crate) is_close_on_exec: bool,
    /// Address of the `file`.
    pub(crate) file: u64,
}

impl Guest<'_> {
    /// Returns the open files of a process, ascending by descriptor. A file that cannot be read is an error at its
    /// place. Empty for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if the table of open files cannot be read, or if there are more than [`FILES_MAX`].
    pub fn files(&self, process: &Process) -> Result<OpenFiles, Error> {
        let reading = Error::reading("the open files of a process");
        let descriptors = self.descriptors(process).map_err(&reading)?;
        let root = match process.threads.first() {
            Some(thread) => self.root_of(thread.task).map_err(&reading)?,
            None => None,
        };
        let mut steps_left = PATH_STEPS_OF_PROCESS_MAX;
        let mut file = |descriptor: &Descriptor| {
            self.open_file(descriptor, root, &mut steps_left).map_err(Error::reading("an open file"))
        };
        Ok(descriptors.iter().map(|descriptor| (descriptor.number, file(descriptor))).collect())
    }

    /// Returns the descriptors of a process, ascending.
    pub(crate) fn descriptors(&self, process: &Process) -> Result<Vec<Descriptor>, Error> {
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        // A process whose first thread has ended lives on in its other threads.
        let mut files = 0;
        for thread in &process.threads {
            files = self.number(thread.task, layout.task_files)?;
            if files != 0 {
                break;
            }
        }
        if files == 0 {
            return Ok(Vec::new());
        }
        let table = self.number(files, layout.files_table)?;
        let number = |field| self.number(table, field);
        let max = number(layout.table_max)? as usize;
        if max > FILES_MAX {
            return Err(Error::TooMany { what: "open files", max: FILES_MAX });
        }
        let bitmap = |field| {
            let mut bits = vec![0; max.div_ceil(8)];
            self.memory().read(self.number(table, field)?, &mut bits)?;
            Ok::<_, Error>(bits)
        };
        let (open, close_on_exec) = (bitmap(layout.table_open)?, bitmap(layout.table_close_on_exec)?);
        let is_set = |bits: &[u8], n: usize| bits.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 == 1);
        let array = number(layout.table_files)?;
        let mut found = Vec::new();
        for n in (0..max).filter(|n| is_set(&open, *n)) {
            let file = self.word(array.wrapping_add(8 * n as u64))?;
            // A descriptor is reserved before the kernel has opened its file.
            if file != 0 {
                let is_close_on_exec = is_set(&close_on_exec, n);
                found.push(Descriptor { number: n as u32, is_close_on_exec, file });
            }
        }
        Ok(found)
    }

    pub(crate) fn open_file(
        &self,
        descriptor: &Descriptor,
        root: Option<Place>,
        steps_left: &mut usize,
    ) -> Result<OpenFile, Error> {
        const CLOSE_ON_EXEC: u32 = 0o2_000_000;
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        let paths = &self.kernel.layout;
        let file = descriptor.file;
        let of_file = |field| self.number(file, field);
        let inode_at = of_file(paths.file_inode)?;
        let of_inode = |field| self.number(inode_at, field);
        let device = |number: u64| ((number >> 20) as u32, (number & 0xf_ffff) as u32);
        let kind = Kind::of(of_inode(layout.inode_mode)?);
        let mount = of_file(paths.file_mount)?.wrapping_sub(paths.mount_vfs.offset());
        let special_device = match kind {
            Kind::Character | Kind::Block => Some(device(of_inode(layout.inode_special_device)?)),
            _ => None,
        };
        let flags = of_file(layout.file_flags)? as u32 & !CLOSE_ON_EXEC;
        Ok(OpenFile {
            kind,
            name: self.path_of_file(file, root, steps_left)?,
            offset: of_file(layout.file_offset)?,
            flags: flags | if descriptor.is_close_on_exec { CLOSE_ON_EXEC } else { 0 },
            mount: self.number(mount, layout.mount_id)? as u32,
            device: device(self.number(of_inode(paths.inode_super)?, paths.super_device)?),
            inode: of_inode(paths.inode_number)?,
            bytes: of_inode(layout.inode_size)?,
            special_device,
            sock: self.sock_of(file)?,
            ops: of_file(layout.file_ops)?,
            private: of_file(layout.file_private)?,
            inode_at,
        })
    }

    /// Returns the address of the `sock` of an open file. `None` if the file is not a socket.
    pub(crate) fn sock_of(&self, file: u64) -> Result<Option<u64>, Error> {
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        if self.number(file, layout.file_ops)? != self.kernel.symbol("socket_file_ops")? {
            return Ok(None);
        }
        let socket = self.number(file, layout.file_private)?;
        // A socket that is being closed has no `sock` any more.
        Ok(Some(self.number(socket, layout.socket_sock)?).filter(|sock| *sock != 0))
    }
}
