//! Places of the kernel's fields in arguments of its functions.

use everett_symbols::kernel::btf::{Btf, Field};

use crate::Error;
use crate::layout::places;

places! {
    /// Places of fields in structures that functions of the kernel have as arguments.
    ArgumentLayout {
        request_sector = "request.__sector";
        request_bytes = "request.__data_len";
        request_flags = "request.cmd_flags";
        request_queue = "request.q";
        queue_disk = "request_queue.disk";
        disk_name = "gendisk.disk_name";
        signal_number = "ksignal.sig";
        futex_task = "futex_q.task";
        message_rest = "msghdr.msg_iter.count";
        buffers_rest = "iov_iter.count";
        io_file = "kiocb.ki_filp";
        io_offset = "kiocb.ki_pos";
        @some_kernels
        @lengths
    }
}
