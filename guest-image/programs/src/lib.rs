//! Programs that run in guests: in worlds that use container images or the SDK, and in throw-away forks in which a user
//! works. The build script builds them.
//!
//! A build of Everett can leave this crate out. Worlds that use only packages need just the agent, the PID 1 of each
//! guest. The agent is in `everett-guest-image`, and so are the paths at which guests find the programs of this crate.

/// The program that starts the processes of container images (`../shim/`), a static ELF program.
pub const SHIM: &[u8] = include_bytes!(env!("EVERETT_SHIM"));

/// The program that supervises services of compose files (`../init/`), a static ELF program.
pub const INIT: &[u8] = include_bytes!(env!("EVERETT_INIT"));

/// The program that Everett starts in throw-away forks, for shells and files (`../inside/`), a static ELF program.
pub const INSIDE: &[u8] = include_bytes!(env!("EVERETT_INSIDE"));

/// The library that workloads with the SDK load (`../sdk/library/`), a shared object that needs no C library.
pub const LIBRARY: &[u8] = include_bytes!(env!("EVERETT_SDK_LIBRARY"));

/// The program that receives a workload's SDK lines and passes them on to Everett (`../sdk/collector/`). It also asks
/// Everett for quiet periods, i.e. times without faults. It is a static ELF program.
pub const COLLECTOR: &[u8] = include_bytes!(env!("EVERETT_SDK_COLLECTOR"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{COLLECTOR, INIT, INSIDE, LIBRARY, SHIM};
    use everett_elf::{Elf, Needs, Symbol, SymbolTable};
    use everett_guest_image::kernel::elf;

    #[test]
    fn all_are_free_of_libraries_and_of_paths_of_this_machine() {
        let here = env!("CARGO_MANIFEST_DIR").trim_end_matches("/programs").as_bytes();
        for file in [COLLECTOR, INIT, INSIDE, LIBRARY, SHIM] {
            assert!(elf::check_x86_64(file).is_ok());
            assert_eq!(Elf::parse(file).unwrap().needs().unwrap(), Needs::default());
            assert!(!file.windows(here.len()).any(|window| window == here));
        }
    }

    /// Returns the symbols of the library. The value is true if the library defines the symbol, and false if it needs
    /// it.
    fn symbols() -> BTreeMap<String, bool> {
        let one = |symbol: Symbol<'_>| {
            (String::from_utf8(symbol.name(usize::MAX).unwrap().to_vec()).unwrap(), symbol.is_defined)
        };
        let sections = Elf::parse(LIBRARY).unwrap().sections().unwrap();
        // The first symbol of an ELF table is the null symbol.
        sections.symbols(SymbolTable::Dynamic).unwrap().iter().skip(1).map(one).collect()
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
