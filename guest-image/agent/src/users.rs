//! `/etc/passwd` and `/etc/group`, read directly: a static binary has no name service.

use crate::failure::{Context as _, Failure};
use std::fs;

/// Who a program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Every group, the primary one first.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

impl Identity {
    /// The user with this name, or this number.
    pub(crate) fn of_user(user: &str) -> Result<Identity, Failure> {
        let passwd = read("/etc/passwd")?;
        let group = read("/etc/group")?;
        Identity::parse(user, &passwd, &group)
    }

    fn parse(user: &str, passwd: &str, group: &str) -> Result<Identity, Failure> {
        // passwd(5): name:password:uid:gid:gecos:home:shell
        for line in passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let &[name, _, uid, gid, _, home, ..] = fields.as_slice() else { continue };
            if name != user && uid != user {
                continue;
            }
            let uid = number(uid, "/etc/passwd", line)?;
            let gid = number(gid, "/etc/passwd", line)?;
            let mut groups = vec![gid];
            groups.extend(member_of(name, group)?.into_iter().filter(|&other| other != gid));
            return Ok(Identity { uid, gid, groups, home: home.to_owned() });
        }
        Err(Failure::new(format!("cannot find the user {user} in /etc/passwd")))
    }
}

/// User and group of an owner that is written `user` or `user:group`, by name or number.
pub(crate) fn owner(owner: &str) -> Result<(u32, u32), Failure> {
    let (user, group) = match owner.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (owner, None),
    };
    let (uid, primary) = match (user.parse::<u32>(), group) {
        // Both may be numbers that no database has.
        (Ok(uid), _) => (uid, uid),
        (Err(_), _) => {
            let identity = Identity::of_user(user)?;
            (identity.uid, identity.gid)
        }
    };
    let gid = match group.map(|group| (group, group.parse::<u32>())) {
        None => primary,
        Some((_, Ok(gid))) => gid,
        Some((name, Err(_))) => group_number(name, &read("/etc/group")?)?,
    };
    Ok((uid, gid))
}

/// The groups that list this user as a member. group(5): name:password:gid:members
fn member_of(user: &str, group: &str) -> Result<Vec<u32>, Failure> {
    let mut groups = Vec::new();
    for line in group.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let &[_, _, gid, members] = fields.as_slice() else { continue };
        if members.split(',').any(|member| member == user) {
            groups.push(number(gid, "/etc/group", line)?);
        }
    }
    Ok(groups)
}

fn group_number(name: &str, group: &str) -> Result<u32, Failure> {
    for line in group.lines() {
        let mut fields = line.split(':');
        if fields.next() == Some(name) {
            return number(fields.nth(1).unwrap_or(""), "/etc/group", line);
        }
    }
    Err(Failure::new(format!("cannot find the group {name} in /etc/group")))
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
    use super::{Identity, group_number};

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
    fn who_is_unknown_is_named() {
        let failure = Identity::parse("nobody", PASSWD, GROUP).unwrap_err().to_string();
        assert!(failure.contains("nobody"), "{failure}");
        assert_eq!(group_number("ssl", GROUP).unwrap(), 99);
        assert!(group_number("none", GROUP).is_err());
    }
}
