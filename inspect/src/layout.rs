//! Places of the kernel's fields that this crate reads.

use everett_symbols::kernel::btf::{Btf, Field};

use crate::Error;

/// Declares a structure with the places of fields: each field with its path in the kernel's types. Fields after
/// `@some_kernels` are missing in some kernels. After `@lengths` are structures whose length is needed,
/// in bytes. After `@lengths_or_0` are those that some kernels lack.
macro_rules! places {
    ($(#[$doc:meta])* $places:ident {
        $($name:ident = $path:literal;)*
        @some_kernels $($maybe:ident = $maybe_path:literal;)*
        @lengths $($length:ident = $structure:literal;)*
        $(@lengths_or_0 $($maybe_length:ident = $maybe_structure:literal;)*)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $places {
            $(pub(crate) $name: Field,)*
            $(pub(crate) $maybe: Option<Field>,)*
            $(pub(crate) $length: u64,)*
            $($(pub(crate) $maybe_length: u64,)*)?
        }

        impl $places {
            /// Finds all fields.
            pub(crate) fn new(types: &Btf) -> Result<$places, Error> {
                Ok($places {
                    $($name: types.field($path).ok_or(Error::Field($path))?,)*
                    $($maybe: types.field($maybe_path),)*
                    $($length: types.size_of($structure).ok_or(Error::Field($structure))?,)*
                    $($($maybe_length: types.size_of($maybe_structure).unwrap_or(0),)*)?
                })
            }
        }
    };
}

pub(crate) use places;

places! {
    /// Places of fields in the structures of processes, their mappings and their paths.
    Layout {
        task_tasks = "task_struct.tasks";
        task_pid = "task_struct.pid";
        task_tgid = "task_struct.tgid";
        task_comm = "task_struct.comm";
        task_flags = "task_struct.flags";
        task_exit_state = "task_struct.exit_state";
        task_mm = "task_struct.mm";
        task_parent = "task_struct.real_parent";
        task_cred = "task_struct.real_cred";
        task_leader = "task_struct.group_leader";
        task_signal = "task_struct.signal";
        task_thread_node = "task_struct.thread_node";
        task_fs = "task_struct.fs";
        task_stack = "task_struct.stack";
        task_sp = "task_struct.thread.sp";
        task_ds = "task_struct.thread.ds";
        task_es = "task_struct.thread.es";
        task_fs_index = "task_struct.thread.fsindex";
        task_gs_index = "task_struct.thread.gsindex";
        task_fs_base = "task_struct.thread.fsbase";
        task_gs_base = "task_struct.thread.gsbase";
        switch_ip = "inactive_task_frame.ret_addr";
        switch_bp = "inactive_task_frame.bp";
        registers_ip = "pt_regs.ip";
        registers_sp = "pt_regs.sp";
        registers_bp = "pt_regs.bp";
        registers_cs = "pt_regs.cs";
        signal_threads = "signal_struct.thread_head";
        cred_uid = "cred.uid.val";
        fs_root_mount = "fs_struct.root.mnt";
        fs_root_dentry = "fs_struct.root.dentry";
        mm_pgd = "mm_struct.pgd";
        mm_auxiliary = "mm_struct.saved_auxv";
        mm_executable = "mm_struct.exe_file";
        mm_code_start = "mm_struct.start_code";
        mm_arg_start = "mm_struct.arg_start";
        mm_arg_end = "mm_struct.arg_end";
        mm_start_brk = "mm_struct.start_brk";
        mm_brk = "mm_struct.brk";
        mm_start_stack = "mm_struct.start_stack";
        vma_start = "vm_area_struct.vm_start";
        vma_end = "vm_area_struct.vm_end";
        vma_flags = "vm_area_struct.vm_flags";
        vma_offset = "vm_area_struct.vm_pgoff";
        vma_file = "vm_area_struct.vm_file";
        vma_ops = "vm_area_struct.vm_ops";
        vma_private = "vm_area_struct.vm_private_data";
        special_name = "vm_special_mapping.name";
        file_mount = "file.f_path.mnt";
        file_dentry = "file.f_path.dentry";
        file_inode = "file.f_inode";
        inode_number = "inode.i_ino";
        inode_super = "inode.i_sb";
        super_device = "super_block.s_dev";
        dentry_parent = "dentry.d_parent";
        dentry_name = "dentry.d_name.name";
        dentry_name_bytes = "dentry.d_name.len";
        dentry_hash = "dentry.d_hash.pprev";
        dentry_ops = "dentry.d_op";
        dentry_ops_name = "dentry_operations.d_dname";
        mount_vfs = "mount.mnt";
        mount_parent = "mount.mnt_parent";
        mount_point = "mount.mnt_mountpoint";
        vfs_root = "vfsmount.mnt_root";
        @some_kernels
        inode_private = "inode.i_private";
        namespace_ops = "ns_common.ops";
        namespace_name = "proc_ns_operations.name";
        task_state = "task_struct.__state";
        task_private = "task_struct.worker_private";
        kthread_name = "kthread.full_name";
        kthread_data = "kthread.data";
        worker_description = "worker.desc";
        worker_work = "worker.current_work";
        worker_pool = "worker.pool";
        hot_task = "pcpu_hot.current_task";
        // Kernels since Linux 6.16 have it elsewhere.
        task_floating = "task_struct.thread.fpu";
        floating_cpu = "fpu.last_cpu";
        floating_state = "fpu.fpstate";
        floating_registers = "fpstate.regs.fxsave";
        // Before Linux 5.16.
        floating_old_registers = "fpu.state.fxsave";
        // Before Linux 5.14.
        task_old_state = "task_struct.state";
        // Since Linux 6.1, the mappings are in a maple tree.
        mm_tree = "mm_struct.mm_mt.ma_root";
        range_pivot = "maple_range_64.pivot";
        range_slot = "maple_range_64.slot";
        range_end = "maple_range_64.meta.end";
        gaps_pivot = "maple_arange_64.pivot";
        gaps_slot = "maple_arange_64.slot";
        gaps_end = "maple_arange_64.meta.end";
        // Before, they were in a list.
        mm_list = "mm_struct.mmap";
        vma_next = "vm_area_struct.vm_next";
        vma_anonymous_name = "vm_area_struct.anon_name";
        anonymous_name = "anon_vma_name.name";
        // Kernels without loadable modules have no such fields.
        module_list = "module.list";
        module_state = "module.state";
        module_name = "module.name";
        module_kallsyms = "module.kallsyms";
        module_rows = "module.arch.num_orcs";
        module_row_starts = "module.arch.orc_unwind_ip";
        module_row_content = "module.arch.orc_unwind";
        module_symbols = "mod_kallsyms.symtab";
        module_symbol_count = "mod_kallsyms.num_symtab";
        module_names = "mod_kallsyms.strtab";
        // Before Linux 6.4, a module has two areas.
        module_core_base = "module.core_layout.base";
        module_core_bytes = "module.core_layout.size";
        module_init_base = "module.init_layout.base";
        module_init_bytes = "module.init_layout.size";
        // Since then, it has an array of areas.
        module_areas = "module.mem";
        area_base = "module_memory.base";
        area_bytes = "module_memory.size";
        @lengths
        registers_bytes = "pt_regs";
        switch_bytes = "inactive_task_frame";
        @lengths_or_0
        area_stride = "module_memory";
    }
}
