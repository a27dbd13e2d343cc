//! The thread that runs on the CPU, and its open files by their descriptors.
//!
//! Observers of a running guest read it often, so it is read without the list of all processes.

use crate::files::{Descriptor, OpenFile};
use crate::limits::{FILES_MAX, PATH_STEPS_OF_PROCESS_MAX};
use crate::{Error, Guest};

/// Thread that runs on the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// Process ID. 0 if the CPU is idle.
    pub pid: u32,
    /// Thread ID. 0 if the CPU is idle.
    pub tid: u32,
    /// Name of the process's first thread.
    pub process: String,
    /// Address of its `task_struct`.
    task: u64,
}

impl Guest<'_> {
    /// Returns the thread that runs on the CPU.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures cannot be read.
    pub fn current_thread(&self) -> Result<Current, Error> {
        self.current().and_then(|task| self.thread_at(task)).map_err(Error::reading("the running thread"))
    }

    /// Returns the thread whose `task_struct` is at this address.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures cannot be read.
    pub fn thread_at(&self, task: u64) -> Result<Current, Error> {
        let layout = &self.kernel.layout;
        let number = |field| self.number(task, field);
        let leader = number(layout.task_leader)?;
        Ok(Current {
            pid: number(layout.task_tgid)? as u32,
            tid: number(layout.task_pid)? as u32,
            process: self.thread_name(leader)?,
            task,
        })
    }

    /// Returns an open file of a thread. `None` if the descriptor is not open.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures cannot be read.
    pub fn open_file_of(&self, thread: &Current, number: u32) -> Result<Option<OpenFile>, Error> {
        let read = || {
            let Some(descriptor) = self.descriptor(thread.task, number)? else { return Ok(None) };
            let root = self.root_of(thread.task)?;
            self.open_file(&descriptor, root, &mut { PATH_STEPS_OF_PROCESS_MAX }).map(Some)
        };
        read().map_err(Error::reading("an open file"))
    }

    /// Finds a descriptor in the table of a task's open files.
    fn descriptor(&self, task: u64, number: u32) -> Result<Option<Descriptor>, Error> {
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        let files = self.number(task, layout.task_files)?;
        if files == 0 || number as usize >= FILES_MAX {
            return Ok(None);
        }
        let table = self.number(files, layout.files_table)?;
        let number_64 = u64::from(number);
        if number_64 >= self.number(table, layout.table_max)? & 0xffff_ffff {
            return Ok(None);
        }
        let array = self.number(table, layout.table_files)?;
        let file = self.word(array.wrapping_add(8 * number_64))?;
        let bits = self.number(table, layout.table_close_on_exec)?;
        let word = self.word(bits.wrapping_add(number_64 / 64 * 8))?;
        let is_close_on_exec = word >> (number_64 % 64) & 1 == 1;
        Ok((file != 0).then_some(Descriptor { number, is_close_on_exec, file }))
    }
}
