//! Parses the header `WWW-Authenticate`, with which a registry demands authentication (RFC 9110, 11.6.1).

/// Kind of authentication that a registry demands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// The registry demands a name and a password.
    Basic,
    /// The registry demands a token, which another server gives out.
    Bearer {
        /// Address of the server that gives out tokens.
        realm: String,
        /// Name of the registry, as the token server knows it.
        service: Option<String>,
        /// Actions that the token is to allow.
        scope: Option<String>,
    },
}

/// Maximum length of a challenge, in bytes.
const CHALLENGE_BYTES_MAX: usize = 8 << 10;

impl Challenge {
    /// Returns the challenge in these headers. Prefers tokens to passwords. `None` if no challenge is understood.
    pub(super) fn of(headers: &[&str]) -> Option<Challenge> {
        let parsed =
            || headers.iter().filter(|text| text.len() <= CHALLENGE_BYTES_MAX).filter_map(|text| parse(text));
        parsed().find(|one| *one != Challenge::Basic).or_else(|| parsed().next())
    }
}

fn parse(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    for (name, value) in parameters(rest) {
        match name.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    let realm = realm.filter(|realm| realm.starts_with("https://") || realm.starts_with("http://"))?;
    Some(Challenge::Bearer { realm, service, scope })
}

/// Splits `NAME=VALUE` and `NAME="VALUE"` at commas outside quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, behind)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_owned();
        let mut value = String::new();
        let end = if let Some(quoted) = behind.strip_prefix('"') {
            let mut escaped = false;
            let mut end = quoted.len();
            for (at, c) in quoted.char_indices() {
                match c {
                    _ if escaped => {
                        value.push(c);
                        escaped = false;
                    }
                    '\\' => escaped = true,
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    c => value.push(c),
                }
            }
            1 + end
        } else {
            let end = behind.find(',').unwrap_or(behind.len());
            value.push_str(behind[..end].trim());
            end
        };
        found.push((name, value));
        rest = &behind[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn challenges_are_parsed() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        };
        let of = |headers: &[&str]| Challenge::of(headers);
        assert_eq!(
            of(&[r#"Bearer realm="https://a/token",service="r.io",scope="repository:x:pull,push""#]),
            Some(bearer("https://a/token", Some("r.io"), Some("repository:x:pull,push")))
        );
        assert_eq!(
            of(&["Basic realm=\"x\"", r#"bearer service=a, realm="http://b""#]),
            Some(bearer("http://b", Some("a"), None))
        );
        assert_eq!(of(&["Basic"]), Some(Challenge::Basic));
        for text in
            ["", "Bearer", "Bearer realm=", "Bearer realm=\"file:///x\"", "Negotiate", "Bearer realm=\"https"]
        {
            assert_eq!(of(&[text]), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(header in ".{0,200}", rest in "(Bearer |bearer )[a-z=\", \\\\é]{0,80}") {
            let _ = Challenge::of(&[&header, &rest]);
        }
    }
}
