//! Paths of open and mapped files.

use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX, PATH_STEPS_MAX, PATH_STEPS_OF_PROCESS_MAX};
use crate::task::Process;
use crate::{Error, Guest};

/// A place in the tree of mounted file systems (`struct path`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Address of the `vfsmount`.
    pub(crate) mount: u64,
    /// Address of the `dentry`.
    pub(crate) dentry: u64,
}

impl Guest<'_> {
    /// Returns the path of the program that a process runs. `None` for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if a structure of the kernel cannot be read.
    pub fn program_path(&self, process: &Process) -> Result<Option<String>, Error> {
        let (Some(mm), Some(thread)) = (process.mm, process.threads.first()) else { return Ok(None) };
        let path = || {
            let root = self.root_of(thread.task)?;
            let file = self.number(mm, self.kernel.layout.mm_executable)?;
            let mut steps_left = PATH_STEPS_OF_PROCESS_MAX;
            self.path_of_file(file, root, &mut steps_left)
        };
        path().map(Some).map_err(Error::reading("the path of a program"))
    }

    /// Returns the address at which the code of the program that a process runs begins. `None` for threads of the kernel,
    /// for zombies, and until `execve` has mapped the program.
    ///
    /// # Errors
    /// Returns an error if the kernel's structure cannot be read.
    pub fn code_start(&self, process: &Process) -> Result<Option<u64>, Error> {
        let Some(mm) = process.mm else { return Ok(None) };
        let start = self.number(mm, self.kernel.layout.mm_code_start);
        // The kernel sets it after the mappings of the program. It is 0 in a new `mm_struct`.
        start
            .map(|start| Some(start).filter(|start| *start != 0))
            .map_err(Error::reading("the code of a program"))
    }

    /// Returns the root folder of a process, from the address of one of its tasks. `None` if the process is ending and
    /// has none any more.
    pub(crate) fn root_of(&self, task: u64) -> Result<Option<Place>, Error> {
        let layout = &self.kernel.layout;
        let fs = self.number(task, layout.task_fs)?;
        if fs == 0 {
            return Ok(None);
        }
        let mount = self.number(fs, layout.fs_root_mount)?;
        Ok(Some(Place { mount, dentry: self.number(fs, layout.fs_root_dentry)? }))
    }

    /// Returns the path of a file (`struct file`), as `/proc/PID/maps` shows it to a process with this root folder.
    /// `steps_left` is the number of steps from files to the root that may still be made for the process.
    pub(crate) fn path_of_file(
        &self,
        file: u64,
        root: Option<Place>,
        steps_left: &mut usize,
    ) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let dentry = self.number(file, layout.file_dentry)?;
        let ops = self.number(dentry, layout.dentry_ops)?;
        let naming = if ops == 0 { 0 } else { self.number(ops, layout.dentry_ops_name)? };
        if naming == 0 {
            return self.path(
                Place { mount: self.number(file, layout.file_mount)?, dentry },
                root,
                steps_left,
            );
        }
        // A file without a folder. The kernel has a function for the names of each kind of such files.
        let is = |function| self.kernel.values.get(function) == Some(naming);
        let kind = match () {
            () if is("anon_inodefs_dname") => return Ok(format!("anon_inode:{}", self.name_of(dentry)?)),
            () if is("sockfs_dname") => "socket".to_owned(),
            () if is("pipefs_dname") => "pipe".to_owned(),
            () if is("pidfs_dname") => return Ok("anon_inode:[pidfd]".to_owned()),
            () if is("ns_dname") => self.kind_of_namespace(file)?,
            // For example memory of `memfd_create`.
            () => return Ok(format!("/{} (deleted)", self.name_of(dentry)?)),
        };
        let inode = self.number(file, layout.file_inode)?;
        Ok(format!("{kind}:[{}]", self.number(inode, layout.inode_number)?))
    }

    /// Returns the kind of the namespace that a file in `/proc/PID/ns` names, for example `net`.
    fn kind_of_namespace(&self, file: u64) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let (Some(private), Some(ops), Some(name)) =
            (layout.inode_private, layout.namespace_ops, layout.namespace_name)
        else {
            return Err(Error::Field("proc_ns_operations.name"));
        };
        let namespace = self.number(self.number(file, layout.file_inode)?, private)?;
        self.text(self.number(self.number(namespace, ops)?, name)?, NAME_BYTES_MAX)
    }

    fn name_of(&self, dentry: u64) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let bytes = self.number(dentry, layout.dentry_name_bytes)?.min(NAME_BYTES_MAX as u64);
        self.text(self.number(dentry, layout.dentry_name)?, bytes as usize)
    }

    /// Returns a path below a root folder. Goes from the file to the root, through mount points.
    fn path(&self, file: Place, root: Option<Place>, steps_left: &mut usize) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let deleted = self.number(file.dentry, layout.dentry_hash)? == 0;
        let Place { mut mount, mut dentry } = file;
        let (mut names, mut bytes) = (Vec::new(), 0);
        let mut is_root = true;
        for step in 0.. {
            if step >= PATH_STEPS_MAX {
                return Err(Error::TooMany { what: "folders in a path", max: PATH_STEPS_MAX });
            }
            if bytes > PATH_BYTES_MAX {
                return Err(Error::TooMany { what: "bytes in a path", max: PATH_BYTES_MAX });
            }
            if root == Some(Place { mount, dentry }) {
                break;
            }
            let too_many = Error::TooMany { what: "folders of mapped files", max: PATH_STEPS_OF_PROCESS_MAX };
            *steps_left = steps_left.checked_sub(1).ok_or(too_many)?;
            let parent = self.number(dentry, layout.dentry_parent)?;
            if dentry == self.number(mount, layout.vfs_root)? || parent == dentry {
                let this = mount.wrapping_sub(layout.mount_vfs.offset());
                let above = self.number(this, layout.mount_parent)?;
                if above == this {
                    break;
                }
                dentry = self.number(this, layout.mount_point)?;
                mount = above.wrapping_add(layout.mount_vfs.offset());
                continue;
            }
            is_root = false;
            let name = self.name_of(dentry)?;
            bytes += name.len() + 1;
            names.push(name);
            dentry = parent;
        }
        let path: String = names.iter().rev().flat_map(|name| ["/", name]).collect();
        let path = if path.is_empty() { "/".to_owned() } else { path };
        Ok(if deleted && !is_root { path + " (deleted)" } else { path })
    }
}
