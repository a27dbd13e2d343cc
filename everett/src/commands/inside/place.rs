//! A path in a machine, as `NODE:PATH`.

use std::str::FromStr;

use everett_protocol::limits::PATH_BYTES_MAX;

/// A path in a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the node.
    pub node: String,
    /// Absolute path.
    pub path: String,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let (node, path) = text.split_once(':').ok_or("a node and a path are needed, such as n1:/var/log")?;
        if !path.starts_with('/') || path.contains('\0') {
            return Err("the path must begin with /, such as n1:/var/log".to_owned());
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(format!("the path has more than {PATH_BYTES_MAX} bytes"));
        }
        Ok(Place { node: node.to_owned(), path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed() {
        let place = Place { node: "n1".to_owned(), path: "/a:b".to_owned() };
        assert_eq!("n1:/a:b".parse(), Ok(place));
        for text in ["n1", "n1:", "n1:a", "/a"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
