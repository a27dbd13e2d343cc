//! The reason why KVM on a host cannot scale a guest's TSC: the processor lacks TSC scaling, or a parameter of the kvm
//! module disables it.
//!
//! `everett doctor` prints the reason, and no decision depends on it. In `/proc/cpuinfo`, Linux lists AMD's feature
//! among the processor's flags and Intel's among the VMX flags, under different names.

/// Returns the reason, if it can be found. `cpuinfo` is the text of `/proc/cpuinfo`. `parameter` is the value of the
/// parameter `tsc_scaling` of kvm_amd.
pub(super) fn lacking(cpuinfo: &str, parameter: Option<&str>) -> Option<String> {
    let flags = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key))?;
        Some(line.split(':').nth(1)?.split_whitespace().collect::<Vec<_>>())
    };
    let processor = flags("flags")?;
    if processor.contains(&"svm") {
        return Some(match (processor.contains(&"tsc_scale"), parameter.map(str::trim)) {
            (false, _) => "this AMD processor has no TSC scaling (flag tsc_scale)".to_owned(),
            (true, Some("0" | "N")) => "the module kvm_amd was loaded with tsc_scaling=0".to_owned(),
            (true, _) => {
                "this AMD processor has TSC scaling (flag tsc_scale), but kvm_amd does not use it".to_owned()
            }
        });
    }
    if processor.contains(&"vmx") {
        let vmx = flags("vmx flags").unwrap_or_default();
        return Some(if vmx.contains(&"tsc_scaling") {
            "this Intel processor has TSC scaling (VMX flag tsc_scaling), but kvm_intel does not use it"
                .to_owned()
        } else {
            "this Intel processor has no TSC scaling (VMX flag tsc_scaling)".to_owned()
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::lacking;

    fn says(cpuinfo: &str, parameter: Option<&str>, what: &str) {
        let said = lacking(cpuinfo, parameter).expect("a reason");
        assert!(said.contains(what), "{said}");
    }

    #[test]
    fn each_make_has_its_own_flag() {
        let no_amd = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu svm\n";
        let amd = "flags\t\t: fpu svm tsc_scale\n";
        let no_intel = "flags\t\t: fpu vmx\nvmx flags\t: vnmi ept\n";
        let intel = "flags\t\t: fpu vmx\nvmx flags\t: vnmi tsc_scaling\n";
        says(no_amd, Some("Y\n"), "AMD processor has no TSC scaling (flag tsc_scale)");
        says(amd, Some("0\n"), "loaded with tsc_scaling=0");
        says(amd, Some("1\n"), "kvm_amd does not use it");
        says(no_intel, None, "Intel processor has no TSC scaling (VMX flag tsc_scaling)");
        says(intel, None, "kvm_intel does not use it");
    }

    #[test]
    fn an_unknown_processor_gives_no_reason() {
        assert_eq!(lacking("", None), None);
        assert_eq!(lacking("flags : fpu\nbugs : svm vmx\n", None), None);
    }
}
