//! Users and groups from `/etc/passwd` and `/etc/group`. A static program cannot load libc's name service.

use crate::failure::{Context as _, Failure};
use std::fs;
use std::path::Path;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Credentials and home of the user that a program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// IDs of all groups of the user. The first is the primary group.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

impl Identity {
    /// Looks a user up by name or number.
    pub(crate) fn of_user(user: &str) -> Result<Identity, Failure> {
        Identity::parse(user, &read(PASSWD)?, &read(GROUP)?)
    }

    fn parse(user: &str, passwd: &str, group: &str) -> Result<Identity, Failure> {
        let found = Identity::find(user, passwd, group)?;
        found.ok_or_else(|| Failure::new(format!("cannot find the user {user} in {PASSWD}")))
    }

    fn find(user: &str, passwd: &str, group: &str) -> Result<Option<Identity>, Failure> {
        // Format of a line, by passwd(5): name:password:uid:gid:gecos:home:shell
        for line in passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let &[name, _, uid, gid, _, home, ..] = fields.as_slice() else { continue };
            if name != user && uid != user {
                continue;
            }
            let uid = number(uid, PASSWD, line)?;
            let gid = number(gid, PASSWD, line)?;
            let mut groups = vec![gid];
            groups.extend(member_of(name, group)?.into_iter().filter(|&other| other != gid));
            return Ok(Some(Identity { uid, gid, groups, home: home.to_owned() }));
        }
        Ok(None)
    }
}

/// Returns the user ID and group ID of an owner. The owner is `user` or `user:group`, by name or number.
pub(crate) fn owner(owner: &str) -> Result<(u32, u32), Failure> {
    // A root filesystem without these files can still have owners by number.
    let text = |path: &str| if Path::new(path).exists() { read(path) } else { Ok(String::new()) };
    parse_owner(owner, &text(PASSWD)?, &text(GROUP)?)
}

/// Parses an owner. The default group is the user's primary group, or for an unknown user ID the group of the same ID.
fn parse_owner(owner: &str, passwd: &str, group: &str) -> Result<(u32, u32), Failure> {
    let (user, of_group) = match owner.split_once(':') {
        Some((user, of_group)) => (user, Some(of_group)),
        None => (owner, None),
    };
    let (uid, primary) = match (user.parse::<u32>(), of_group) {
        (Ok(uid), Some(_)) => (uid, uid),
        // The number is formatted again, because `/etc/passwd` has no leading zeros.
        (Ok(uid), None) => match Identity::find(&uid.to_string(), passwd, group)? {
            Some(identity) => (uid, identity.gid),
            None => (uid, uid),
        },
        (Err(_), _) => {
            let identity = Identity::parse(user, passwd, group)?;
            (identity.uid, identity.gid)
        }
    };
    let gid = match of_group.map(|name| (name, name.parse::<u32>())) {
        None => primary,
        Some((_, Ok(gid))) => gid,
        Some((name, Err(_))) => group_number(name, group)?,
    };
    Ok((uid, gid))
}

/// Returns the groups that list this user as a member. Format, by group(5): name:password:gid:members
fn member_of(user: &str, group: &str) -> Result<Vec<u32>, Failure> {
    let mut groups = Vec::new();
    for line in group.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let &[_, _, gid, members] = fields.as_slice() else { continue };
        if members.split(',').any(|member| member == user) {
            groups.push(number(gid, GROUP, line)?);
        }
    }
    Ok(groups)
}

fn group_number(name: &str, group: &str) -> Result<u32, Failure> {
    for line in group.lines() {
        let mut fields = line.split(':');
        if fields.next() == Some(name) {
            return number(fields.nth(1).unwrap_or(""), GROUP, line);
        }
    }
    Err(Failure::new(format!("cannot find the group {name} in {GROUP}")))
}

fn number(text: &str, file: &str, line: &str) -> Result<u32, Failure> {
    text.parse().context(|| format!("read {file}, line {line:?}"))
}

fn read(path: &str) -> Result<String, Failure> {
    let bytes = fs::read(path).context(|| format!("read {path}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Identity, group_number, parse_owner};

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nredis:x:101:103::/var/lib/redis:/bin/false\n";
    const GROUP: &str = "root:x:0:\nssl:x:99:redis,other\nredis:x:103:redis\n";

    #[test]
    fn a_user_is_found_by_name_and_number_with_its_groups() {
        let redis = Identity::parse("redis", PASSWD, GROUP).unwrap();
        assert_eq!((redis.uid, redis.gid, redis.groups.as_slice()), (101, 103, [103, 99].as_slice()));
        assert_eq!(redis.home, "/var/lib/redis");
        assert_eq!(Identity::parse("101", PASSWD, GROUP).unwrap(), redis);
    }

    #[test]
    fn an_owner_has_its_own_group_unless_one_is_given() {
        let owner = |owner| parse_owner(owner, PASSWD, GROUP);
        for (text, ids) in [
            ("redis", (101, 103)),
            ("101", (101, 103)),
            ("0101", (101, 103)),
            ("redis:ssl", (101, 99)),
            ("101:7", (101, 7)),
            // No user has the number 4242.
            ("4242", (4242, 4242)),
            ("4242:ssl", (4242, 99)),
        ] {
            assert_eq!(owner(text).unwrap(), ids, "{text}");
        }
        assert!(owner("none").is_err() && owner("redis:none").is_err());
        assert_eq!(parse_owner("7", "", "").unwrap(), (7, 7));
    }

    #[test]
    fn who_is_unknown_is_named() {
        let failure = Identity::parse("nobody", PASSWD, GROUP).unwrap_err().to_string();
        assert!(failure.contains("nobody"), "{failure}");
        assert_eq!(group_number("ssl", GROUP).unwrap(), 99);
        assert!(group_number("none", GROUP).is_err());
    }
}
