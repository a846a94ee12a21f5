//! Lines beyond RFC 9309: delays, rates and visiting hours.

use std::time::Duration;

use crate::number::saturating;

/// The longest delay that a file can require. Longer ones are reduced to it, so that no number in a
/// file is too large to compute with.
pub const MAX_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

/// A minute of the day, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    minute: u16,
}

impl TimeOfDay {
    /// Returns the time of day at this many seconds since the beginning of 1970.
    #[must_use]
    pub fn from_unix(seconds: u64) -> Self {
        Self {
            minute: (seconds / 60 % (24 * 60)) as u16,
        }
    }

    /// Parses `hhmm` or `hh:mm`; 2400 is the end of the day.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.replacen(':', "", 1);
        if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: u16 = digits.parse().ok()?;
        let (hour, minute) = (number / 100, number % 100);
        let is_time = (hour < 24 && minute < 60) || number == 2400;
        is_time.then(|| Self {
            minute: (hour * 60 + minute).min(24 * 60 - 1),
        })
    }
}

/// Writes `hhmm`.
impl std::fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02}{:02}", self.minute / 60, self.minute % 60)
    }
}

/// Hours of the day, including first and last minute; they may extend past midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitTime {
    /// The first minute.
    pub from: TimeOfDay,
    /// The last minute.
    pub to: TimeOfDay,
}

impl VisitTime {
    /// Parses `hhmm-hhmm`; anything after whitespace is ignored.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let to = to.split_whitespace().next()?;
        Some(Self {
            from: TimeOfDay::parse(from.trim())?,
            to: TimeOfDay::parse(to)?,
        })
    }

    /// Whether `time` lies within these hours.
    #[must_use]
    pub fn contains(&self, time: TimeOfDay) -> bool {
        if self.from <= self.to {
            self.from <= time && time <= self.to
        } else {
            self.from <= time || time <= self.to
        }
    }
}

/// Writes `hhmm-hhmm`.
impl std::fmt::Display for VisitTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.from, self.to)
    }
}

/// A number of documents per period, possibly only at certain hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRate {
    /// The number of documents.
    pub documents: u32,
    /// The period.
    pub period: Duration,
    /// The hours at which it applies; `None` for always.
    pub hours: Option<VisitTime>,
    /// As in the file, without the comment.
    pub written: Box<str>,
}

impl RequestRate {
    /// Parses `n/u` with an optional unit `s`, `m` or `h` and optional hours: `1/5`, `10/10m`,
    /// `1/1h 0600-0845`. Returns `None` for anything else, and for zero documents or a zero period.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (documents, rest) = text.split_once('/')?;
        let rest = rest.trim_start();
        let (period, hours) = rest
            .split_once(char::is_whitespace)
            .map_or((rest, ""), |(period, hours)| (period, hours.trim()));
        let documents = saturating(documents.trim()).filter(|&n| n > 0)?;
        Some(Self {
            documents: u32::try_from(documents).unwrap_or(u32::MAX),
            period: parse_period(period)?,
            hours: (!hours.is_empty())
                .then(|| VisitTime::parse(hours))
                .flatten(),
            written: text.trim().into(),
        })
    }

    /// Returns the time between two documents, at most [`MAX_DELAY`].
    #[must_use]
    pub fn per_document(&self) -> Duration {
        (self.period / self.documents.max(1)).min(MAX_DELAY)
    }

    /// Whether the rate applies at that time.
    #[must_use]
    pub fn applies(&self, time: TimeOfDay) -> bool {
        self.hours.is_none_or(|hours| hours.contains(time))
    }
}

impl std::fmt::Display for RequestRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)
    }
}

fn parse_period(text: &str) -> Option<Duration> {
    let (digits, seconds_per_unit) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b's' => (&text[..text.len() - 1], 1),
        b'm' => (&text[..text.len() - 1], 60),
        b'h' => (&text[..text.len() - 1], 3600),
        _ => (text, 1),
    };
    let n = saturating(digits).filter(|&n| n > 0)?;
    // This exceeds the longest delay even if divided by the largest number of documents.
    let most = MAX_DELAY.as_secs() * u64::from(u32::MAX);
    let seconds = n.saturating_mul(seconds_per_unit).min(most);
    Some(Duration::from_secs(seconds))
}

/// Parses a number of seconds, possibly with a fraction; at most [`MAX_DELAY`].
pub(super) fn parse_delay(text: &str) -> Option<Duration> {
    let number = text.split_whitespace().next()?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let seconds: f64 = number.parse().ok().filter(|_| is_number)?;
    Duration::try_from_secs_f64(seconds.min(MAX_DELAY.as_secs_f64())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> TimeOfDay {
        TimeOfDay::parse(text).unwrap()
    }

    #[test]
    fn visiting_hours_include_both_ends() {
        let hours = VisitTime::parse("0600-0845").unwrap();
        for (at, expected) in [
            ("0559", false),
            ("0600", true),
            ("0845", true),
            ("0846", false),
        ] {
            assert_eq!(hours.contains(time(at)), expected, "{at}");
        }
        assert_eq!(hours.to_string(), "0600-0845");
    }

    #[test]
    fn visiting_hours_past_midnight() {
        let hours = VisitTime::parse("2300-0159").unwrap();
        for (at, expected) in [
            ("2259", false),
            ("2300", true),
            ("0000", true),
            ("0200", false),
        ] {
            assert_eq!(hours.contains(time(at)), expected, "{at}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(TimeOfDay::from_unix(86_400 + 6 * 3600 + 59), time("06:00"));
        assert_eq!(time("2400"), time("2359"));
        for text in ["2460", "2401", "600", "0660", "06-0", "", "+600", "0:600x"] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
        assert_eq!(
            VisitTime::parse("0600 - 0845 UTC").map(|hours| hours.to),
            Some(time("0845"))
        );
    }

    #[track_caller]
    fn check_rate(text: &str, documents: u32, seconds: u64, per_document_ms: u128) {
        let rate = RequestRate::parse(text).unwrap();
        assert_eq!(rate.documents, documents);
        assert_eq!(rate.period, Duration::from_secs(seconds));
        assert_eq!(rate.per_document().as_millis(), per_document_ms);
    }

    #[test]
    fn rates() {
        check_rate("1/5", 1, 5, 5000);
        check_rate("10/10m", 10, 600, 60_000);
        check_rate("8/1s", 8, 1, 125);
        check_rate("1 / 2H 0600-0845", 1, 7200, 7_200_000);
    }

    /// Numbers that no clock can represent require the longest delay, never none.
    #[test]
    fn rates_without_bounds() {
        for text in [
            "1/18446744073709551615",
            "1/18446744073709551616h",
            "1/9999999999999999999999999m",
        ] {
            let rate = RequestRate::parse(text).unwrap();
            assert_eq!(rate.per_document(), MAX_DELAY, "{text}");
        }
        let rate = RequestRate::parse("18446744073709551616/1").unwrap();
        assert_eq!(rate.documents, u32::MAX);
    }

    #[test]
    fn no_rates() {
        for text in [
            "10", "1/0", "0/5", "a/5", "1/5d", "1/", "/5", "1/-5", "1/m", "1/é",
        ] {
            assert_eq!(RequestRate::parse(text), None, "{text}");
        }
    }

    #[test]
    fn delays() {
        assert_eq!(parse_delay("10"), Some(Duration::from_secs(10)));
        assert_eq!(parse_delay(".5"), Some(Duration::from_millis(500)));
        assert_eq!(parse_delay("2.5 s"), Some(Duration::from_millis(2500)));
        for text in ["1e30", "1e300", "999999999999999999999999", "2592001"] {
            assert_eq!(parse_delay(text), Some(MAX_DELAY), "{text}");
        }
        for text in ["", "x", "-1", "nan", "inf", "[5]"] {
            assert_eq!(parse_delay(text), None, "{text}");
        }
    }
}
