//! Parses service units of systemd (systemd.service(5), systemd.exec(5)). They say how a package starts its server.

use super::Listening;

/// Maximum length of a unit file that Everett reads, in bytes.
const UNIT_BYTES_MAX: usize = 64 << 10;
/// Maximum number of words in all commands of a unit together.
const WORDS_MAX: usize = 1_024;

/// The settings of a service unit that a world needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitFile {
    /// Name of the unit without `.service`.
    pub name: String,
    /// Command line of the server, as words of a shell.
    command: Vec<String>,
    /// Commands that run before the server starts.
    before: Vec<Vec<String>>,
    user: Option<String>,
    group: Option<String>,
    folder: Option<String>,
    environment: Vec<String>,
    environment_files: Vec<String>,
    /// Folders that the service needs. They are made with the user as owner.
    folders: Vec<String>,
    /// Folders in `folders` that keep the server's state.
    state: Vec<String>,
    /// True if the server's program forks and leaves the foreground.
    pub forks: bool,
    /// Restart policy, in the words of a world file: "never", "on-failure" or "always".
    pub restart: &'static str,
}

impl UnitFile {
    /// Parses a unit. `None` if the unit has no command that keeps running, as with `Type=oneshot`. Also `None` if the
    /// unit is a template (`NAME@.service`) or exceeds a bound, or if one of its lines cannot be parsed.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Option<UnitFile> {
        if text.len() > UNIT_BYTES_MAX || name.contains('@') {
            return None;
        }
        let name = name.strip_suffix(".service")?;
        let mut unit = UnitFile { name: name.to_owned(), restart: "never", ..UnitFile::default() };
        let joined = text.replace("\\\n", " ");
        let lines = joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
        let mut is_service = false;
        for line in lines {
            if line.starts_with('[') {
                is_service = line == "[Service]";
            } else if let Some((key, value)) = line.split_once('=').filter(|_| is_service) {
                unit.set(key.trim(), value.trim())?;
            }
        }
        let words = unit.before.iter().chain([&unit.command]).map(Vec::len).sum::<usize>();
        (!unit.command.is_empty() && words <= WORDS_MAX).then_some(unit)
    }

    /// Applies a line of the section `[Service]`. `None` if the unit is not a server, or if Everett cannot parse the
    /// line.
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let words = || value.split_whitespace().map(|word| self.specifiers(word));
        match key {
            "ExecStart" if value.is_empty() => self.command.clear(),
            "ExecStart" => self.command = self.command_line(value)?.1,
            "ExecStartPre" if value.is_empty() => self.before.clear(),
            "ExecStartPre" => {
                let (may_fail, mut words) = self.command_line(value)?;
                if may_fail {
                    words.extend(["||".to_owned(), "true".to_owned()]);
                }
                self.before.push(words);
            }
            "Type" if value == "oneshot" => return None,
            "Type" => self.forks = value == "forking",
            "User" => self.user = Some(self.specifiers(value)),
            "Group" => self.group = Some(self.specifiers(value)),
            "WorkingDirectory" => self.folder = Some(self.specifiers(value.trim_start_matches('-'))),
            "Environment" => {
                let mut assignments = Vec::new();
                for word in shlex::split(value)? {
                    let (name, value) = word.split_once('=')?;
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    if name.is_empty() || !name.chars().all(is_name) {
                        return None;
                    }
                    assignments.push(format!("{name}={}", quoted(&self.specifiers(value))));
                }
                self.environment.extend(assignments);
            }
            "EnvironmentFile" => {
                self.environment_files.push(self.specifiers(value.trim_start_matches('-')));
            }
            "RuntimeDirectory" => {
                let folders: Vec<String> = words().map(|word| format!("/run/{word}")).collect();
                self.folders.extend(folders);
            }
            "StateDirectory" | "CacheDirectory" | "LogsDirectory" => {
                let parent = match key {
                    "StateDirectory" => "/var/lib",
                    "CacheDirectory" => "/var/cache",
                    _ => "/var/log",
                };
                let folders: Vec<String> = words().map(|word| format!("{parent}/{word}")).collect();
                if key == "StateDirectory" {
                    self.state.extend(folders.iter().cloned());
                }
                self.folders.extend(folders);
            }
            "Restart" => {
                self.restart = match value {
                    "always" | "on-success" => "always",
                    "on-failure" | "on-abnormal" | "on-abort" | "on-watchdog" => "on-failure",
                    _ => "never",
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Parses a command line. The first result is true if the command may fail (prefix `-`). The second result is the
    /// command line as words of a shell.
    fn command_line(&self, value: &str) -> Option<(bool, Vec<String>)> {
        let command = value.trim_start_matches(['-', '@', ':', '+', '!', '|']);
        let may_fail = value[..value.len() - command.len()].contains('-');
        let words = shlex::split(command)?;
        Some((may_fail, words.iter().map(|word| shell_word(&self.specifiers(word))).collect()))
    }

    /// Replaces systemd's specifiers, such as `%n`, with their values in a machine.
    fn specifiers(&self, text: &str) -> String {
        let mut out = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match (c, c == '%') {
                (_, false) => out.push(c),
                _ => match chars.next() {
                    Some('t') => out.push_str("/run"),
                    Some('S') => out.push_str("/var/lib"),
                    Some('C') => out.push_str("/var/cache"),
                    Some('L') => out.push_str("/var/log"),
                    Some('n') => out.push_str(&format!("{}.service", self.name)),
                    Some('N' | 'p') => out.push_str(&self.name),
                    Some('%') => out.push('%'),
                    Some('H' | 'l') => out.push_str("localhost"),
                    _ => {}
                },
            }
        }
        out
    }

    /// Returns the user as whom the server runs. `None` means root.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref().filter(|user| *user != "root")
    }

    /// Returns the first of the folders that keep the server's state.
    #[must_use]
    pub fn state_folder(&self) -> Option<&str> {
        self.state.first().map(String::as_str)
    }

    /// Returns a shell script that starts the server as systemd would.
    #[must_use]
    pub fn script(&self) -> String {
        let mut lines = vec!["set -e".to_owned()];
        let owner = self.user().map(|user| match &self.group {
            Some(group) => format!("{user}:{group}"),
            None => format!("{user}:"),
        });
        for folder in &self.folders {
            let folder = quoted(folder);
            lines.push(format!("mkdir -p {folder}"));
            lines.extend(owner.as_ref().map(|owner| format!("chown {} {folder}", quoted(owner))));
        }
        lines.push("set -a".to_owned());
        lines.extend(self.environment.iter().cloned());
        for file in &self.environment_files {
            let file = quoted(file);
            lines.push(format!("if [ -r {file} ]; then . {file}; fi"));
        }
        lines.push("set +a".to_owned());
        lines.extend(self.before.iter().map(|words| words.join(" ")));
        lines.extend(self.folder.as_ref().map(|folder| format!("cd {}", quoted(folder))));
        let command = self.command.join(" ");
        let command = match (self.user(), &self.group) {
            (Some(user), Some(group)) => {
                let (user, group) = (quoted(user), quoted(group));
                format!("setpriv --reuid={user} --regid={group} --init-groups {command}")
            }
            (Some(user), None) => {
                let user = quoted(user);
                format!("setpriv --reuid={user} --regid=\"$(id -g {user})\" --init-groups {command}")
            }
            (None, _) => command,
        };
        if self.forks {
            // The unit's program leaves the foreground, so the agent (Everett's program in the guest) cannot see its
            // end.
            lines.push(command);
            lines.push("exec sleep infinity".to_owned());
        } else {
            lines.push(format!("exec {command}"));
        }
        lines.join("\n") + "\n"
    }
}

/// Converts a word of a unit's command line to a word of a shell. In systemd, `$NAME` alone becomes several words, and
/// `${NAME}` is a part of one word.
fn shell_word(word: &str) -> String {
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if word.strip_prefix('$').is_some_and(is_name) {
        return word.to_owned();
    }
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        let Some(end) = after.find('}').filter(|end| is_name(&after[..*end])) else { break };
        if start > 0 {
            out.push_str(&quoted(&rest[..start]));
        }
        out.push_str(&format!("\"${{{}}}\"", &after[..end]));
        rest = &after[end + 1..];
    }
    if !rest.is_empty() || out.is_empty() {
        out.push_str(&quoted(rest));
    }
    out
}

/// Quotes a word for a shell if that is necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%:=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Mark before the path of each unit in the output of [`UNITS_SCRIPT`].
const MARK: &str = "== ";

/// Script that prints the service units of the package `$1` and of the packages that its field `Depends` names.
pub const UNITS_SCRIPT: &str = r#"
depends=$(dpkg-query -W -f='${Depends}' "$1" | tr ',|' '\n\n' | sed 's/^ *//; s/[ :(].*//')
for package in "$1" $depends; do
    for file in $(dpkg -L "$package" 2>/dev/null | grep '/systemd/system/[^/]*\.service$'); do
        [ -f "$file" ] || continue
        echo "== $file"
        cat "$file"
    done
done
"#;

/// Returns the unit of a package's server, from the output of [`UNITS_SCRIPT`]. Prefers the unit with the package's
/// name. The second choice is a unit whose name is the start of the package's name, and the third is the first unit.
/// `None` if [`UnitFile::parse`] accepts no unit.
#[must_use]
pub fn unit_of(package: &str, lines: &[String]) -> Option<UnitFile> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for line in lines {
        if let Some(path) = line.strip_prefix(MARK) {
            texts.push((path.rsplit('/').next().unwrap_or(path), String::new()));
        } else if let Some((_, text)) = texts.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let mut units: Vec<UnitFile> =
        texts.iter().filter_map(|(name, text)| UnitFile::parse(name, text)).collect();
    let package = package.split('=').next().unwrap_or(package);
    let named = units.iter().position(|unit| unit.name == package);
    let alike = || units.iter().position(|unit| package.starts_with(&unit.name));
    let chosen = named.or_else(alike).unwrap_or(0);
    (chosen < units.len()).then(|| units.swap_remove(chosen))
}

/// Script that waits at most a minute until a program listens at a TCP port. It prints the kernel's tables of sockets.
pub const LISTENING_SCRIPT: &str = r#"
count=0
while [ $count -lt 60 ] && ! grep -q ' 0A ' /proc/net/tcp /proc/net/tcp6; do
    count=$((count + 1))
    sleep 1
done
sleep 2
cat /proc/net/tcp /proc/net/tcp6
"#;

/// Code of the state LISTEN in `/proc/net/tcp` (proc(5)).
const TCP_LISTEN: &str = "0A";

/// Returns the TCP ports at which programs listen, from the output of [`LISTENING_SCRIPT`]. Ports that other machines
/// can reach come first, and lower ports come before higher ones.
#[must_use]
pub fn listening(lines: &[String]) -> Vec<Listening> {
    let mut found: Vec<Listening> = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace().skip(1);
        let (Some(local), Some(_), Some(TCP_LISTEN)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Some((address, port)) = local.split_once(':') else { continue };
        let Some(port) = u16::from_str_radix(port, 16).ok().filter(|port| *port != 0) else { continue };
        // The endings of 127.0.0.0/8 and of ::1 in the kernel's notation, which is in host byte order.
        let is_local = address.len() == 8 && address.ends_with("7F") || address.ends_with("01000000");
        let one = Listening { port, everywhere: !is_local };
        match found.iter_mut().find(|other| other.port == port) {
            Some(other) => other.everywhere |= one.everywhere,
            None => found.push(one),
        }
    }
    found.sort_by_key(|one| (!one.everywhere, one.port));
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: &str = "[Unit]\nDescription=x\nUser=no\n[Service]\nType=notify\n# ExecStart=/bin/no\n\
        Environment=A=1 \"B=two words\"\nEnvironmentFile=-/etc/default/x\nExecStartPre=-/bin/mkdir -p /run/more\n\
        ExecStart=/usr/bin/x --dir %S/x \\\n  $OPTIONS --name=${A}b 'q q'\nUser=x\nRuntimeDirectory=x x/y\n\
        StateDirectory=x\nRestart=on-abnormal\n[Install]\nUser=no\n";

    #[test]
    fn a_unit_becomes_a_script() {
        let unit = UnitFile::parse("x.service", UNIT).unwrap();
        assert_eq!(
            (unit.user(), unit.state_folder(), unit.restart),
            (Some("x"), Some("/var/lib/x"), "on-failure")
        );
        assert_eq!(
            unit.script(),
            "set -e\nmkdir -p /run/x\nchown x: /run/x\nmkdir -p /run/x/y\nchown x: /run/x/y\nmkdir -p /var/lib/x\n\
             chown x: /var/lib/x\nset -a\nA=1\nB='two words'\nif [ -r /etc/default/x ]; then . /etc/default/x; fi\n\
             set +a\n/bin/mkdir -p /run/more || true\n\
             exec setpriv --reuid=x --regid=\"$(id -g x)\" --init-groups /usr/bin/x --dir /var/lib/x $OPTIONS \
             --name=\"${A}\"b 'q q'\n"
        );
    }

    #[test]
    fn units_that_are_no_server_are_left_out() {
        assert_eq!(UnitFile::parse("x@.service", UNIT), None);
        assert_eq!(UnitFile::parse("x.socket", UNIT), None);
        assert_eq!(UnitFile::parse("x.service", "[Service]\nType=oneshot\nExecStart=/bin/x\n"), None);
        assert_eq!(UnitFile::parse("x.service", "[Service]\nExecStart=/bin/x\nExecStart=\n"), None);
        let forks = UnitFile::parse("x.service", "[Service]\nType=forking\nExecStart=/bin/x\n").unwrap();
        assert!(forks.forks && forks.script().ends_with("/bin/x\nexec sleep infinity\n"));
        let lines: Vec<String> =
            format!("== /lib/systemd/system/other.service\n{UNIT}== /a/pack.service\n{UNIT}")
                .lines()
                .map(str::to_owned)
                .collect();
        assert_eq!(unit_of("pack=1-2", &lines).unwrap().name, "pack");
        assert_eq!(unit_of("third", &lines).unwrap().name, "other");
        assert_eq!(unit_of("third", &[]), None);
    }

    #[test]
    fn listening_ports_are_found() {
        let lines = [
            "  sl  local_address rem_address   st tx_queue",
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000",
            "   1: 00000000:2C24 00000000:0000 0A 00000000:00000000",
            "   2: 00000000:0016 00000000:0000 01 00000000:00000000",
            "   0: 00000000000000000000000001000000:0017 00000000000000000000000000000000:0000 0A 0",
            "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0",
        ]
        .map(str::to_owned);
        let ports: Vec<(u16, bool)> =
            listening(&lines).into_iter().map(|one| (one.port, one.everywhere)).collect();
        assert_eq!(ports, [(8080, true), (11300, true), (23, false)]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in any::<String>(), value in any::<String>()) {
            let _ = UnitFile::parse("x.service", &text);
            let _ = listening(std::slice::from_ref(&text));
            for key in ["ExecStart", "Environment", "User", "RuntimeDirectory"] {
                let unit = format!("[Service]\nExecStart=/bin/x\n{key}={value}\n");
                let _ = UnitFile::parse("x.service", &unit).map(|unit| unit.script());
            }
        }
    }
}
