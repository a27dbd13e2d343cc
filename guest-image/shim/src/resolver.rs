//! A DNS server for the names in `/etc/hosts` (RFC 1035), for programs that ask a server instead of reading the file.
//! It has the same address as the DNS server of container engines.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use crate::{Context as _, Failure};

/// Address and port of the server.
const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 11), 53);
/// File with the names and their addresses.
const HOSTS: &str = "/etc/hosts";
/// Maximum length of an answer over UDP, in bytes (RFC 1035, 4.2.1). For a longer answer, the client must use TCP.
const UDP_BYTES_MAX: usize = 512;
/// Length of the header of a message, in bytes.
const HEADER_BYTES: usize = 12;
/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Maximum number of records in an answer. A world has at most this many machines.
const ANSWERS_MAX: usize = 64;
/// Time for which a client may keep an answer, in seconds.
const TTL_S: u32 = 600;
/// Time that the server waits for the next bytes of a TCP client.
const PATIENCE: Duration = Duration::from_secs(5);

/// Types of records: IPv4 address (`A`), name of an address (`PTR`), IPv6 address (`AAAA`).
const A: u16 = 1;
const PTR: u16 = 12;
const AAAA: u16 = 28;
/// Class of all records: Internet.
const INTERNET: u16 = 1;

/// Response codes: malformed query, unknown name, operation that the server does not support.
const FORMAT_ERROR: u8 = 1;
const NO_SUCH_NAME: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;

/// Answers queries until the machine stops.
pub(crate) fn serve() -> Result<Infallible, Failure> {
    let what = || format!("listen on {ADDRESS}");
    let udp = UdpSocket::bind(ADDRESS).context(what)?;
    let tcp = TcpListener::bind(ADDRESS).context(what)?;
    thread::spawn(move || {
        for client in tcp.incoming().flatten() {
            // An error ends only this connection. Usually the client has closed it or sends nothing.
            let _ = answer_stream(client);
        }
    });
    let mut query = [0; UDP_BYTES_MAX];
    loop {
        let Ok((length, client)) = udp.recv_from(&mut query) else { continue };
        let hosts = fs::read_to_string(HOSTS).unwrap_or_default();
        if let Some(mut answer) = answer(&query[..length], &hosts) {
            if answer.len() > UDP_BYTES_MAX {
                answer.truncate(question_end(&answer).unwrap_or(HEADER_BYTES));
                answer[2] |= 2; // TC: truncated
                answer[6..8].fill(0);
            }
            let _ = udp.send_to(&answer, client);
        }
    }
}

fn answer_stream(mut client: TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    loop {
        let mut length = [0; 2];
        client.read_exact(&mut length)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        client.read_exact(&mut query)?;
        let hosts = fs::read_to_string(HOSTS)?;
        let Some(answer) = answer(&query, &hosts) else { return Ok(()) };
        let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
        client.write_all(&[&length.to_be_bytes()[..], &answer].concat())?;
    }
}

/// Returns the answer to a query. `None` if the bytes are a response or too short.
fn answer(query: &[u8], hosts: &str) -> Option<Vec<u8>> {
    let header = query.get(..HEADER_BYTES)?;
    if header[2] & 0x80 != 0 {
        return None;
    }
    let mut answer = header.to_vec();
    // Sets QR (response) and RA (recursion available). Copies OPCODE and RD (recursion desired) from the query.
    answer[2] = 0x80 | header[2] & 0x79;
    answer[3] = 0x80;
    answer[4..].fill(0);
    let is_plain = header[2] & 0x78 == 0;
    let end = question_end(query).filter(|_| header[4..6] == [0, 1]);
    let (Some(end), true) = (end, is_plain) else {
        answer[3] |= if is_plain { FORMAT_ERROR } else { NOT_IMPLEMENTED };
        return Some(answer);
    };
    let question = &query[HEADER_BYTES..end];
    answer[5] = 1;
    answer.extend(question);
    let (name, kind) = question.split_at(question.len() - 4);
    let kind = (u16::from_be_bytes([kind[0], kind[1]]), u16::from_be_bytes([kind[2], kind[3]]));
    let (is_known, records) = records(&text_of(name), kind, hosts);
    if !is_known {
        answer[3] |= NO_SUCH_NAME;
    }
    for record in records.iter().take(ANSWERS_MAX) {
        answer.extend([0xc0, HEADER_BYTES as u8]);
        answer.extend(kind.0.to_be_bytes());
        answer.extend(kind.1.to_be_bytes());
        answer.extend(TTL_S.to_be_bytes());
        answer.extend(u16::try_from(record.len()).ok()?.to_be_bytes());
        answer.extend(record);
        answer[7] += 1;
    }
    Some(answer)
}

/// Returns the offset of the end of the first question in a message.
fn question_end(message: &[u8]) -> Option<usize> {
    let mut at = HEADER_BYTES;
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1 + length;
        // A length above 63 would be a pointer to another name. Queries have no pointers.
        if length > 63 || at - HEADER_BYTES > NAME_BYTES_MAX {
            return None;
        }
        if length == 0 {
            return (at + 4 <= message.len()).then_some(at + 4);
        }
    }
}

/// Returns a name with dots between its labels, in lower case.
fn text_of(name: &[u8]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(&length) = name.get(at).filter(|length| **length > 0) {
        let label = name.get(at + 1..at + 1 + usize::from(length)).unwrap_or_default();
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + usize::from(length);
    }
    text
}

/// Returns whether `hosts` contains the name, and a list of the name's records of this type and class.
fn records(name: &str, kind: (u16, u16), hosts: &str) -> (bool, Vec<Vec<u8>>) {
    let lines = hosts.lines().filter_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        Some((words.next()?.parse::<IpAddr>().ok()?, words.collect::<Vec<_>>()))
    });
    let mut is_known = false;
    let mut records = Vec::new();
    for (address, names) in lines {
        if reversed(address).as_deref() == Some(name) {
            is_known = true;
            if let (PTR, Some(first)) = (kind.0, names.first()) {
                let labels =
                    first.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
                records.push(labels.chain([0]).collect());
            }
        }
        if names.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            is_known = true;
            match address {
                IpAddr::V4(address) if kind.0 == A => records.push(address.octets().to_vec()),
                IpAddr::V6(address) if kind.0 == AAAA => records.push(address.octets().to_vec()),
                _ => {}
            }
        }
    }
    if kind.1 != INTERNET {
        records.clear();
    }
    (is_known, records)
}

/// Returns the name that a client uses to look up the name of an IPv4 address.
fn reversed(address: IpAddr) -> Option<String> {
    let IpAddr::V4(address) = address else { return None };
    let [a, b, c, d] = address.octets();
    Some(format!("{d}.{c}.{b}.{a}.in-addr.arpa"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "127.0.0.1 localhost\n10.0.0.1 web API # x\n10.0.0.2 db\n10.0.0.3 db db-2\n::1 six\nbroken\n";

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut query = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(label.len() as u8);
            query.extend(label.as_bytes());
        }
        query.push(0);
        query.extend(kind.to_be_bytes());
        query.extend(INTERNET.to_be_bytes());
        query
    }

    /// Returns the response code and the data of the records.
    fn ask(name: &str, kind: u16) -> (u8, Vec<Vec<u8>>) {
        let query = query(name, kind);
        let answer = answer(&query, TABLE).unwrap();
        assert_eq!(answer[..3], [7, 8, 0x81]);
        let mut at = question_end(&answer).unwrap();
        let mut records = Vec::new();
        for _ in 0..answer[7] {
            let length = usize::from(u16::from_be_bytes([answer[at + 10], answer[at + 11]]));
            records.push(answer[at + 12..at + 12 + length].to_vec());
            at += 12 + length;
        }
        assert_eq!(at, answer.len());
        (answer[3] & 0xf, records)
    }

    #[test]
    fn names_have_their_addresses() {
        assert_eq!(ask("web", A), (0, vec![vec![10, 0, 0, 1]]));
        assert_eq!(ask("api", A), (0, vec![vec![10, 0, 0, 1]]));
        assert_eq!(ask("DB", A), (0, vec![vec![10, 0, 0, 2], vec![10, 0, 0, 3]]));
        assert_eq!(ask("db", AAAA), (0, vec![]));
        assert_eq!(ask("six", AAAA).1[0].len(), 16);
        assert_eq!(ask("nosuch", A), (NO_SUCH_NAME, vec![]));
        assert_eq!(ask("2.0.0.10.in-addr.arpa", PTR), (0, vec![b"\x02db\0".to_vec()]));
        assert_eq!(ask("9.0.0.10.in-addr.arpa", PTR), (NO_SUCH_NAME, vec![]));
    }

    #[test]
    fn what_is_no_query_is_refused() {
        let good = query("web", A);
        assert_eq!(answer(&good[..11], TABLE), None);
        for end in 12..good.len() {
            assert_eq!(answer(&good[..end], TABLE).unwrap()[3] & 0xf, FORMAT_ERROR, "{end}");
        }
        let with = |at: usize, byte: u8| {
            let mut query = good.clone();
            query[at] = byte;
            answer(&query, TABLE)
        };
        assert_eq!(with(2, 0x80), None);
        assert_eq!(with(2, 0x28).unwrap()[3] & 0xf, NOT_IMPLEMENTED);
        assert_eq!(with(5, 2).unwrap()[3] & 0xf, FORMAT_ERROR);
        assert_eq!(with(12, 0xc0).unwrap()[3] & 0xf, FORMAT_ERROR);
        // The server must not panic for any byte at any position.
        for at in 0..good.len() {
            for byte in 0..=255 {
                let _ = with(at, byte);
            }
        }
    }
}
