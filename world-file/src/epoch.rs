//! Converts RFC 3339 dates to seconds since 1970, without a calendar library.

/// Parses a date and returns it in seconds since 1970. The date must have an offset (`Z` or `+02:00`).
pub(super) fn parse_unix_s(text: &str) -> Result<u64, String> {
    let bad = || format!("\"{text}\" is not a date such as \"2026-01-01T00:00:00Z\"");
    let date: toml::value::Datetime = text.parse().map_err(|_| bad())?;
    let (Some(day), Some(time), Some(offset)) = (date.date, date.time, date.offset) else {
        return Err(bad());
    };
    if time.nanosecond.is_some_and(|nanosecond| nanosecond != 0) {
        return Err("the epoch must be a whole second".to_owned());
    }
    let offset_minutes = match offset {
        toml::value::Offset::Z => 0,
        toml::value::Offset::Custom { minutes } => i64::from(minutes),
    };
    let days = days_from_civil(i64::from(day.year), i64::from(day.month), i64::from(day.day));
    // If the seconds are missing, they are 0.
    let of_day = i64::from(time.hour) * 3_600
        + i64::from(time.minute) * 60
        + i64::from(time.second.unwrap_or_default());
    let seconds = days * 86_400 + of_day - offset_minutes * 60;
    // The guest's RTC has two digits for the year. The guest's kernel reads them as 1970 to 2069.
    u64::try_from(seconds)
        .ok()
        .filter(|s| *s < 3_155_760_000)
        .ok_or_else(|| format!("\"{text}\" is not between 1970 and 2069, which the guest's clock can show"))
}

/// Returns the days since 1970-01-01 in the proleptic Gregorian calendar. The computation starts each year in March, so
/// that the leap day is the year's last day.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse_unix_s;

    #[test]
    fn known_dates() {
        assert_eq!(parse_unix_s("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(parse_unix_s("2000-02-29T12:00:00Z"), Ok(951_825_600));
        assert_eq!(parse_unix_s("2026-01-01T00:00:00Z"), Ok(1_767_225_600));
        assert_eq!(parse_unix_s("2026-01-01T02:00:00+02:00"), Ok(1_767_225_600));
        assert_eq!(parse_unix_s("2000-02-29T12:00Z"), Ok(951_825_600));
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "yesterday",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(parse_unix_s(text).is_err(), "{text}");
        }
        assert!(parse_unix_s("2026-01-01T00:00:00.5Z").is_err());
        assert!(parse_unix_s("2070-06-01T00:00:00Z").is_err());
    }
}
