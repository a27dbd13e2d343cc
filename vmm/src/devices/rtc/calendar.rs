//! Conversion between seconds since 1970 and civil dates, in the proleptic Gregorian calendar.

/// A date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// Month, 1-12.
    pub(super) month: u8,
    /// Day of the month, 1-31.
    pub(super) day: u8,
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
}

const DAY: i64 = 86_400;
/// Number of days in 400 years. The calendar then repeats.
const ERA: i64 = 146_097;
/// Number of days from 0000-03-01 to 1970-01-01. Years begin in March here, so that the leap day is the last day of a
/// year.
const EPOCH: i64 = 719_468;

impl Civil {
    pub(super) fn from_unix(seconds: i64) -> Civil {
        let (days, rest) = (seconds.div_euclid(DAY) + EPOCH, seconds.rem_euclid(DAY));
        let (era, day_of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA - 1)) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Civil {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month: month as u8,
            day: (day_of_year - (153 * march_month + 2) / 5 + 1) as u8,
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
        }
    }

    /// Returns the seconds since 1970. The guest may write fields out of range; these carry over into the next field.
    pub(super) fn to_unix(self) -> i64 {
        let month = i64::from(self.month);
        let year = self.year - i64::from(month <= 2);
        let march_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * march_month + 2) / 5 + i64::from(self.day) - 1;
        let year_of_era = year.rem_euclid(400);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = year.div_euclid(400) * ERA + day_of_era - EPOCH;
        days * DAY + i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)
    }

    /// Returns the day of the week, from 1 (Sunday) to 7 (Saturday).
    pub(super) fn weekday(self) -> u8 {
        ((self.to_unix().div_euclid(DAY) + 4).rem_euclid(7) + 1) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        let at = |s| {
            let c = Civil::from_unix(s);
            (c.year, c.month, c.day, c.hour, c.minute, c.second, c.weekday())
        };
        assert_eq!(at(0), (1970, 1, 1, 0, 0, 0, 5));
        assert_eq!(at(1_767_225_600), (2026, 1, 1, 0, 0, 0, 5));
        assert_eq!(at(1_709_210_096), (2024, 2, 29, 12, 34, 56, 5));
        assert_eq!(at(4_102_444_799), (2099, 12, 31, 23, 59, 59, 5));
        assert_eq!(at(-1), (1969, 12, 31, 23, 59, 59, 4));
    }

    proptest! {
        #[test]
        fn conversions_round_trip(seconds in -(1i64 << 40)..1i64 << 40) {
            let civil = Civil::from_unix(seconds);
            prop_assert_eq!(civil.to_unix(), seconds);
            prop_assert!((1..=12).contains(&civil.month) && (1..=31).contains(&civil.day));
            let next = Civil::from_unix(seconds + 86_400);
            prop_assert_eq!(next.weekday(), civil.weekday() % 7 + 1);
        }
    }
}
