//! Places of the kernel's fields that describe open files.

use everett_symbols::kernel::btf::{Btf, Field};

use crate::Error;
use crate::layout::places;

places! {
    /// Places of fields in the structures of open files.
    FileLayout {
        task_files = "task_struct.files";
        files_table = "files_struct.fdt";
        table_max = "fdtable.max_fds";
        table_files = "fdtable.fd";
        table_open = "fdtable.open_fds";
        table_close_on_exec = "fdtable.close_on_exec";
        file_flags = "file.f_flags";
        file_offset = "file.f_pos";
        file_ops = "file.f_op";
        file_private = "file.private_data";
        inode_mode = "inode.i_mode";
        inode_size = "inode.i_size";
        inode_special_device = "inode.i_rdev";
        inode_pipe = "inode.i_pipe";
        mount_id = "mount.mnt_id";
        socket_sock = "socket.sk";
        @some_kernels
        event_count = "eventfd_ctx.count";
        epoll_tree = "eventpoll.rbr.rb_root.rb_node";
        watch_node = "epitem.rbn";
        watch_descriptor = "epitem.ffd.fd";
        watch_events = "epitem.event.events";
        tree_left = "rb_node.rb_left";
        tree_right = "rb_node.rb_right";
        pipe_head = "pipe_inode_info.head";
        pipe_tail = "pipe_inode_info.tail";
        pipe_ring = "pipe_inode_info.ring_size";
        pipe_buffers = "pipe_inode_info.bufs";
        pipe_buffer_bytes = "pipe_buffer.len";
        @lengths
        pipe_buffer_length = "pipe_buffer";
    }
}
