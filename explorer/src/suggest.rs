//! Suggestions for misspelt names.

/// Returns the known name that is nearest to `name`, or `None` if no name is similar enough. If several names are
/// equally near, returns the alphabetically first one.
#[must_use]
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Allow a third of the letters to differ. In a name of at least two letters, always allow one.
    let letters = name.chars().count();
    let most = if letters < 2 { 0 } else { (letters / 3).max(1) };
    known
        .into_iter()
        .map(|k| (strsim::osa_distance(name, k), k))
        .filter(|(distance, k)| {
            *distance <= most || letters > 1 && (k.starts_with(name) || name.starts_with(*k))
        })
        .min()
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggestions() {
        let known = ["partition", "pause", "power_loss", "n1", "n2"];
        assert_eq!(nearest("partiton", known), Some("partition"));
        assert_eq!(nearest("power", known), Some("power_loss"));
        assert_eq!(nearest("pauses", known), Some("pause"));
        assert_eq!(nearest("n3", known), Some("n1"));
        assert_eq!(nearest("velocity", known), None);
        let known = ["memory", "packages", "files", "name"];
        assert_eq!(nearest("memroy", known), Some("memory"));
        assert_eq!(nearest("package", known), Some("packages"));
        assert_eq!(nearest("mem", known), Some("memory"));
        assert_eq!(nearest("velocity", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("x", known), None);
    }
}
