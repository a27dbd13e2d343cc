//! Finds users and groups in the image's `/etc/passwd` and `/etc/group`, by the rules of container engines.

use std::fs;
use std::io;

use crate::{Context as _, Failure};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Maximum number of bytes to read of each file.
const BYTES_MAX: u64 = 16 << 20;

/// Maximum number of groups of a process, which is Linux's `NGROUPS_MAX`.
const GROUPS_MAX: usize = 65_536;

/// Credentials and home folder of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Groups of the process except the primary group.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: Option<String>,
}

/// Finds a user. The text is `USER` or `USER:GROUP`, each by name or number.
pub(crate) fn find(user: &str) -> Result<Identity, Failure> {
    identity(user, &read(PASSWD)?, &read(GROUP)?)
}

/// Returns the content of a file. If the file does not exist, returns an empty text.
fn read(path: &str) -> Result<String, Failure> {
    use io::Read as _;
    let mut bytes = Vec::new();
    match fs::File::open(path) {
        Ok(file) => file.take(BYTES_MAX).read_to_end(&mut bytes).context(|| format!("read {path}"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error).context(|| format!("read {path}")),
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Finds the identity for `text` in the contents of the files. An unknown number is a user in group 0, without other
/// groups. If `text` names a group, the user is in no other group.
fn identity(text: &str, passwd: &str, group: &str) -> Result<Identity, Failure> {
    let (user, of_group) = match text.split_once(':') {
        Some((user, of_group)) => (user, Some(of_group).filter(|name| !name.is_empty())),
        None => (text, None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let number = user.parse::<u32>().ok();
    // Format, by passwd(5): name:password:uid:gid:gecos:home:shell. A name takes precedence over a number.
    let entries = || {
        passwd.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let &[name, _, uid, gid, _, home, ..] = fields.as_slice() else { return None };
            Some((name, uid.parse::<u32>().ok()?, gid.parse::<u32>().ok()?, home))
        })
    };
    let entry = entries()
        .find(|&(name, ..)| name == user)
        .or_else(|| entries().find(|&(_, uid, ..)| Some(uid) == number));
    let (name, uid, primary, home) = match (entry, number) {
        (Some((name, uid, gid, home)), _) => (Some(name), uid, gid, Some(home)),
        (None, Some(uid)) => (None, uid, 0, None),
        (None, None) => return Err(Failure::new(format!("there is no user {user} in {PASSWD}"))),
    };
    let home = home.filter(|home| !home.is_empty()).map(str::to_owned);
    // Format, by group(5): name:password:gid:members
    let known = || {
        group.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let &[name, _, gid, members] = fields.as_slice() else { return None };
            Some((name, gid.parse::<u32>().ok()?, members))
        })
    };
    if let Some(wanted) = of_group {
        let found = known().find(|&(name, ..)| name == wanted).map(|(_, gid, _)| gid);
        let gid = found.or_else(|| wanted.parse().ok());
        let gid = gid.ok_or_else(|| Failure::new(format!("there is no group {wanted} in {GROUP}")))?;
        return Ok(Identity { uid, gid, groups: Vec::new(), home });
    }
    let is_member = |members: &str| name.is_some_and(|name| members.split(',').any(|member| member == name));
    let mut groups: Vec<u32> =
        known().filter(|&(.., members)| is_member(members)).map(|(_, gid, _)| gid).collect();
    groups.truncate(GROUPS_MAX);
    Ok(Identity { uid, gid: primary, groups, home })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nbroken\nredis:x:101:103::/data:/bin/false\n7:x:9:9::/seven:\n";
    const GROUP: &str = "root:x:0:\nssl:x:99:redis,other\nredis:x:103:\n";

    fn of(user: &str) -> (u32, u32, Vec<u32>, Option<String>) {
        let identity = identity(user, PASSWD, GROUP).unwrap();
        (identity.uid, identity.gid, identity.groups, identity.home)
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        let home = |home: &str| Some(home.to_owned());
        assert_eq!(of("redis"), (101, 103, vec![99], home("/data")));
        assert_eq!(of("101"), of("redis"));
        assert_eq!(of("7"), (9, 9, vec![], home("/seven")));
        assert_eq!(of("4242"), (4242, 0, vec![], None));
        assert_eq!(of(""), (0, 0, vec![], home("/root")));
        assert_eq!(of("redis:ssl"), (101, 99, vec![], home("/data")));
        assert_eq!(of("redis:5"), (101, 5, vec![], home("/data")));
        assert_eq!(of("4242:ssl"), (4242, 99, vec![], None));
        assert_eq!(identity("5", "", "").unwrap().gid, 0);
    }

    #[test]
    fn the_unknown_are_named() {
        let failed = |user: &str| identity(user, PASSWD, GROUP).unwrap_err().text;
        assert_eq!(failed("nosuch"), "there is no user nosuch in /etc/passwd");
        assert_eq!(failed("redis:nosuch"), "there is no group nosuch in /etc/group");
    }
}
