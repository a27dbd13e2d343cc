//! Compares Debian's versions (deb-version(7)).

use std::cmp::Ordering;

/// Compares two versions: epochs as numbers, then the upstream versions, then the revisions.
#[must_use]
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left_epoch, left) = left.split_once(':').unwrap_or(("0", left));
    let (right_epoch, right) = right.split_once(':').unwrap_or(("0", right));
    let (left, left_revision) = left.rsplit_once('-').unwrap_or((left, ""));
    let (right, right_revision) = right.rsplit_once('-').unwrap_or((right, ""));
    parts(left_epoch, right_epoch)
        .then_with(|| parts(left, right))
        .then_with(|| parts(left_revision, right_revision))
}

/// Compares two epochs, upstream versions or revisions. Splits both into alternating runs of non-digits and of digits.
/// Compares non-digits by [`weight`], and runs of digits as numbers.
fn parts(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    while !left.is_empty() || !right.is_empty() {
        let (left_text, right_text) = (run(&mut left, false), run(&mut right, false));
        for at in 0..left_text.len().max(right_text.len()) {
            let order = weight(left_text.get(at)).cmp(&weight(right_text.get(at)));
            if order.is_ne() {
                return order;
            }
        }
        let (left_number, right_number) = (number(&mut left), number(&mut right));
        let order = left_number.len().cmp(&right_number.len()).then_with(|| left_number.cmp(right_number));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Removes the longest start of the text that has only digits, or only other characters. Returns this start.
fn run<'a>(text: &mut &'a [u8], digits: bool) -> &'a [u8] {
    let end = text.iter().position(|byte| byte.is_ascii_digit() != digits).unwrap_or(text.len());
    let (taken, rest) = text.split_at(end);
    *text = rest;
    taken
}

/// Removes a number from the start of the text. Returns the number without leading zeros.
fn number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let digits = run(text, true);
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

/// Returns the sort key of a character. From low to high: a tilde, the end of the text, letters, all other characters.
fn weight(byte: Option<&u8>) -> (u8, u8) {
    match byte {
        Some(b'~') => (0, 0),
        None => (1, 0),
        Some(&byte) if byte.is_ascii_alphabetic() => (2, byte),
        Some(&byte) => (3, byte),
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use proptest::prelude::*;
    use std::cmp::Ordering;
    use std::process::{Command, Stdio};

    #[test]
    fn versions_have_debians_order() {
        let ascending = [
            "0~~",
            "0~~a",
            "0~",
            "0",
            "0a",
            "0+",
            "1.0~rc1-1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-1.1",
            "1.0a-1",
            "1.0.1-1",
            "1.9-1",
            "1.10-1",
            "6.1.9-1",
            "6.1.140-1",
            "6.1.140-1+deb12u1",
            "1:0.1",
        ];
        for (at, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left} {right}");
            }
        }
        assert_eq!(compare("1.0", "1.00"), Ordering::Equal);
        assert_eq!(compare("0:1", "1"), Ordering::Equal);
        assert_eq!(compare("1-0", "1"), Ordering::Equal);
    }

    proptest! {
        /// Compares Everett's order with dpkg's, on hosts that have dpkg.
        #[test]
        fn versions_are_compared_as_by_dpkg(
            left in "[0-9](:[0-9])?[0-9a-zA-Z.+~]{0,6}(-[0-9a-zA-Z+.~]{1,4})?",
            right in "[0-9](:[0-9])?[0-9a-zA-Z.+~]{0,6}(-[0-9a-zA-Z+.~]{1,4})?",
        ) {
            prop_assert_eq!(compare(&left, &right), compare(&right, &left).reverse());
            let mut dpkg = Command::new("dpkg");
            dpkg.args(["--compare-versions", &left, "lt", &right]).stderr(Stdio::null());
            if let Ok(status) = dpkg.status() {
                prop_assert_eq!(compare(&left, &right) == Ordering::Less, status.success());
            }
        }
    }
}
