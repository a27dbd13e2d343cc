//! Control fields (deb822(5)) of the form `Key: value`. A line that starts with a space continues the value above.

/// The fields of one package, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Control {
    fields: Vec<(String, String)>,
}

impl Control {
    /// Parses one paragraph. Ignores lines that are not fields.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = fields.last_mut() {
                    value.push('\n');
                    value.push_str(line);
                }
            } else if let Some((key, value)) = line.split_once(':') {
                fields.push((key.to_owned(), value.trim().to_owned()));
            }
        }
        Control { fields }
    }

    /// Returns a field's value. Field names are case-insensitive.
    #[must_use]
    pub fn field(&self, wanted: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(key, _)| key.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    }

    /// Returns all fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::Control;

    #[test]
    fn fields_are_read_with_their_continuation_lines() {
        let control = Control::parse("Package: a\nDescription: one\n two\n .\n three\nversion:1:2\nnoise\n");
        assert_eq!(control.field("package"), Some("a"));
        assert_eq!(control.field("Description"), Some("one\n two\n .\n three"));
        assert_eq!(control.field("Version"), Some("1:2"));
        assert_eq!(control.field("nothing"), None);
        assert_eq!(control.fields().count(), 3);
    }
}
