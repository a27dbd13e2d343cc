//! Binary of the agent, the program through which Everett controls a guest.

/// The guest's PID 1: a static x86-64 ELF that the build script builds from `guest-image/agent`.
pub const AGENT: &[u8] = include_bytes!(env!("EVERETT_AGENT"));

#[cfg(test)]
mod tests {
    use super::AGENT;
    use crate::kernel::elf;
    use everett_elf::{Elf, Needs};

    #[test]
    fn the_agent_is_a_static_program_without_paths_of_this_machine() {
        assert!(elf::check_x86_64(AGENT).is_ok());
        let needs = Elf::parse(AGENT).unwrap().needs().unwrap();
        assert_eq!(needs, Needs::default(), "the agent needs a dynamic linker or libraries");
        let here = env!("CARGO_MANIFEST_DIR").as_bytes();
        assert!(!AGENT.windows(here.len()).any(|window| window == here));
    }
}
