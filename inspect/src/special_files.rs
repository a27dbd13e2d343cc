//! Contents of pipes, eventfds and epoll instances.

use crate::files::OpenFile;
use crate::limits::{PIPE_BUFFERS_MAX, WATCHES_MAX};
use crate::{Error, Guest};

/// State of an open file that is not in a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Special {
    /// Number of bytes in a pipe.
    Pipe(u64),
    /// Counter of an eventfd.
    Event(u64),
    /// Files that an epoll instance watches, ascending by descriptor.
    Epoll(Vec<Watch>),
}

/// File that an epoll instance watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watch {
    /// Descriptor of the file.
    pub descriptor: u32,
    /// Events, as bits of `EPOLLIN` and so on.
    pub events: u32,
}

impl Guest<'_> {
    /// Returns the state of a file that is not in a file system. `None` for other kinds of files.
    ///
    /// # Errors
    /// Returns an error if a structure of the kernel cannot be read.
    pub fn special(&self, file: &OpenFile) -> Result<Option<Special>, Error> {
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        let is = |name| self.kernel.values.get(name) == Some(file.ops);
        if is("pipefifo_fops") {
            return self.bytes_in_pipe(file).map(Some).map_err(Error::reading("a pipe"));
        }
        if is("eventfd_fops")
            && let Some(count) = layout.event_count
        {
            let count = self.number(file.private, count).map_err(Error::reading("an eventfd"))?;
            return Ok(Some(Special::Event(count)));
        }
        if is("eventpoll_fops") {
            return self.watches(file.private).map(Some).map_err(Error::reading("an epoll instance"));
        }
        Ok(None)
    }

    fn bytes_in_pipe(&self, file: &OpenFile) -> Result<Special, Error> {
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        let field = |field: Option<_>| field.ok_or(Error::Field("pipe_inode_info.head"));
        let pipe = self.number(file.inode_at, layout.inode_pipe)?;
        let number = |place| self.number(pipe, field(place)?);
        let (head, tail) = (number(layout.pipe_head)? as u32, number(layout.pipe_tail)? as u32);
        let (ring, buffers) = (number(layout.pipe_ring)?, number(layout.pipe_buffers)?);
        let used = u64::from(head.wrapping_sub(tail));
        if !ring.is_power_of_two() || used > ring || used > PIPE_BUFFERS_MAX {
            return Err(Error::TooMany { what: "buffers in a pipe", max: PIPE_BUFFERS_MAX as usize });
        }
        let mut bytes = 0;
        for n in 0..used {
            let slot = (u64::from(tail) + n) & (ring - 1);
            let buffer = buffers.wrapping_add(slot * layout.pipe_buffer_length);
            bytes += self.number(buffer, field(layout.pipe_buffer_bytes)?)?;
        }
        Ok(Special::Pipe(bytes))
    }

    /// Returns the files that an epoll instance watches. The kernel keeps them in a red-black tree.
    fn watches(&self, epoll: u64) -> Result<Special, Error> {
        let layout = self.kernel.file_layout.as_ref().map_err(Clone::clone)?;
        let (Some(tree), Some(node), Some(descriptor), Some(events), Some(left), Some(right)) = (
            layout.epoll_tree,
            layout.watch_node,
            layout.watch_descriptor,
            layout.watch_events,
            layout.tree_left,
            layout.tree_right,
        ) else {
            return Err(Error::Field("eventpoll.rbr"));
        };
        let mut watches = Vec::new();
        let mut nodes = vec![self.number(epoll, tree)?];
        while let Some(at) = nodes.pop() {
            if at == 0 {
                continue;
            }
            if watches.len() >= WATCHES_MAX {
                return Err(Error::TooMany { what: "files of an epoll instance", max: WATCHES_MAX });
            }
            let item = at.wrapping_sub(node.offset());
            let descriptor = self.number(item, descriptor)? as u32;
            watches.push(Watch { descriptor, events: self.number(item, events)? as u32 });
            nodes.extend([self.number(at, left)?, self.number(at, right)?]);
        }
        watches.sort_unstable();
        Ok(Special::Epoll(watches))
    }
}
