//! What guests of worlds with the SDK get (`sdk/`).

/// The library that programs with the SDK load: a shared object that needs no C library.
pub const LIBRARY: &[u8] = include_bytes!(env!("EVERETT_SDK_LIBRARY"));

/// Path of the library in guests. The SDKs look for it there.
pub const LIBRARY_PATH: &str = "/usr/lib/libvoidstar.so";

/// The program that carries lines out of a guest, and asks for quiet periods: a static ELF program.
pub const COLLECTOR: &[u8] = include_bytes!(env!("EVERETT_SDK_COLLECTOR"));

/// Path of the program in guests. Workloads call it by this name.
pub const COLLECTOR_PATH: &str = "/usr/bin/ANTITHESIS_STOP_FAULTS";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{COLLECTOR, LIBRARY};
    use crate::kernel::elf;

    #[test]
    fn both_are_free_of_libraries_and_of_paths_of_this_machine() {
        let here = env!("CARGO_MANIFEST_DIR").as_bytes();
        for file in [COLLECTOR, LIBRARY] {
            assert!(elf::check_x86_64(file).is_ok() && !elf::has_interpreter(file));
            assert!(!file.windows(here.len()).any(|window| window == here));
        }
    }

    /// Symbols of the library that are looked up at run time, each with true if the library defines it.
    fn symbols() -> BTreeMap<String, bool> {
        let section = |name| elf::section(LIBRARY, name).unwrap();
        let (symbols, names) = (section(".dynsym"), section(".dynstr"));
        // `Elf64_Sym`: the name at 0, the section at 6. The first symbol is none.
        let one = |symbol: &[u8]| {
            let name = u32::from_le_bytes(symbol[..4].try_into().unwrap()) as usize;
            let name = names[name..].split(|&byte| byte == 0).next().unwrap();
            (String::from_utf8(name.to_vec()).unwrap(), symbol[6..8] != [0, 0])
        };
        symbols.chunks_exact(24).skip(1).map(one).collect()
    }

    #[test]
    fn the_library_has_what_programs_call_and_needs_nothing() {
        let wanted = [
            "__sanitizer_cov_trace_pc_guard",
            "__sanitizer_cov_trace_pc_guard_init",
            "__sanitizer_cov_trace_pc_guard_internal",
            "fuzz_flush",
            "fuzz_get_random",
            "fuzz_json_data",
            "init_coverage_module",
            "notify_coverage",
        ];
        assert_eq!(symbols(), wanted.map(|name| (name.to_owned(), true)).into());
    }
}
