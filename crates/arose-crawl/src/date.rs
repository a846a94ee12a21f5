//! Parses dates in HTTP headers, in any of the three forms of RFC 9110.

/// Returns the seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`,
/// `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`. Years after 9999 count as 9999,
/// and dates before 1970 as 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let words = text.split([' ', '\t', ',', '-']);
    let mut date = Date::default();
    words
        .filter(|word| !word.is_empty())
        .for_each(|word| date.read(word));
    let (year, month, day) = (date.year?, date.month?, date.day?);
    let iso = format!("{year:04}-{month:02}-{day:02}T{}Z", date.clock?);
    let seconds = arose_corpus::time::parse(&iso)?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// The parts of a date found so far.
#[derive(Default)]
struct Date<'t> {
    year: Option<u64>,
    month: Option<usize>,
    day: Option<u64>,
    clock: Option<&'t str>,
}

impl<'t> Date<'t> {
    fn read(&mut self, word: &'t str) {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        if word.contains(':') {
            self.clock = Some(word);
        } else if let Some(number) = crate::number::saturating(word) {
            match self.day {
                None => self.day = Some(number),
                Some(_) => self.year = Some(full_year(word, number)),
            }
        } else if let Some(month) = MONTHS.iter().position(|month| word == *month) {
            self.month = Some(month + 1);
        }
    }
}

/// Returns the year, which has two or more digits; RFC 850 dates omit the century.
fn full_year(word: &str, number: u64) -> u64 {
    match (word.len(), number) {
        (..=2, 70..) => number + 1900,
        (..=2, _) => number + 2000,
        _ => number.min(9999),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
        let last = parse("Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(last, Some(253_402_300_799));
        assert_eq!(
            parse(&format!("Fri, 31 Dec {} 23:59:59 GMT", "9".repeat(50))),
            last
        );
        assert_eq!(parse("Wed, 31 Dec 1969 23:59:59 GMT"), Some(0));
    }

    #[test]
    fn no_dates() {
        for text in [
            "",
            "gibberish, 1 2 3 4",
            "Sun, 06 Nov 1994",
            "99 Nov 1994 08:49:37",
            "1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
