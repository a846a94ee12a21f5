//! Parses and formats dates: ISO 8601 (WARC), 14 digits (ARC), seconds since 1970.

/// Seconds since 1970 for `2024-05-18T01:58:10Z`, `2024-05-18 01:58`, `2024-05-18`,
/// `20240518015810` or a number of seconds. Fractions are dropped, and offsets such as `+02:00` are
/// applied.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.len() {
            14..=20 => compact(text),
            1..=11 => text.parse().ok(),
            _ => None,
        };
    }
    if let Some((whole, fraction)) = text.split_once('.')
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && whole.bytes().all(|b| b.is_ascii_digit())
    {
        return (1..=11)
            .contains(&whole.len())
            .then(|| whole.parse().ok())?;
    }
    let (date, rest) = text.split_at_checked(10)?;
    let day = match date.as_bytes() {
        [_, _, _, _, b'-', _, _, b'-', _, _] => days(&date[..4], &date[5..7], &date[8..])?,
        _ => return None,
    };
    Some(day * 86_400 + clock(rest)?)
}

/// Formats a time like `2024-05-18T01:58:10Z`.
#[must_use]
pub fn format(seconds: i64) -> String {
    let (day, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(day);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn compact(digits: &str) -> Option<i64> {
    let part = |from: usize, to: usize| digits.get(from..to);
    let day = days(part(0, 4)?, part(4, 6)?, part(6, 8)?)?;
    let clock = seconds(part(8, 10)?, part(10, 12)?, part(12, 14)?)?;
    Some(day * 86_400 + clock)
}

/// The seconds for `T01:58:10.123+02:00` and its shorter forms.
fn clock(text: &str) -> Option<i64> {
    let Some(text) = text.strip_prefix(['T', 't', ' ']) else {
        return text.is_empty().then_some(0);
    };
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.');
    let (time, zone) = text.split_at(digits.unwrap_or(text.len()));
    let time = time.split('.').next()?;
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let local = seconds(hour, minute, parts.next().unwrap_or("0"))?;
    Some(local - offset(zone.trim())?)
}

fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => (1, &zone[1..]),
        Some(b'-') => (-1, &zone[1..]),
        Some(_) => return (zone == "UTC").then_some(0),
    };
    let digits: String = rest.chars().filter(|&c| c != ':').collect();
    let (hour, minute) = (digits.get(..2)?, digits.get(2..4).unwrap_or("0"));
    Some(sign * seconds(hour, minute, "0")?)
}

fn seconds(hour: &str, minute: &str, second: &str) -> Option<i64> {
    let hour = number(hour, 0, 24)?;
    let minute = number(minute, 0, 59)?;
    Some(hour * 3600 + minute * 60 + number(second, 0, 60)?)
}

fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    let all_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| all_digits)?;
    (least..=most).contains(&number).then_some(number)
}

/// Days since 1970 for a date of the Gregorian calendar.
///
/// Years start in March, so that the leap day is last and the months before it have a regular
/// pattern.
fn days(year: &str, month: &str, day: &str) -> Option<i64> {
    let month = number(month, 1, 12)?;
    let day = number(day, 1, 31)?;
    let year = number(year, 0, 9999)? - i64::from(month < 3);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + day_of_year - 719_468)
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    (era * 400 + year + i64::from(month < 3), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse(text), expected, "{text}");
    }

    #[test]
    fn known_dates() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2000-02-29", Some(951_782_400));
        check("2024-05-18T01:58:10Z", Some(1_715_997_490));
        check("2024-05-18T03:58:10.25+02:00", Some(1_715_997_490));
        check("2024-05-18 01:58:10", Some(1_715_997_490));
        check("20240518015810", Some(1_715_997_490));
        check("1715997490", Some(1_715_997_490));
        check("1715997490.75", Some(1_715_997_490));
        check("1969-12-31T23:59:59Z", Some(-1));
    }

    #[test]
    fn no_dates() {
        for text in [
            "",
            "x",
            ".",
            "1715997490.7.5",
            "2024-13-01",
            "2024-05-18Tnoon",
            "20241318015810",
            "é024-05-18T01:58",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn format_is_the_inverse_of_parse() {
        for seconds in (-4_000_000_000..9_000_000_000).step_by(86_399_001) {
            assert_eq!(
                parse(&format(seconds)),
                Some(seconds),
                "{}",
                format(seconds)
            );
        }
    }
}
