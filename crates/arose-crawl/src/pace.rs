//! Delays between requests to a host.
//!
//! Crawls and single visits share this module, so both wait equally long. The delay after a request
//! is the largest of four values: the delay of the settings, the delay that robots.txt requires, a
//! multiple of the last download time, and a delay that doubles with every 429 or 503 without
//! `Retry-After` and halves after [`RECOVERY`] successes. `Retry-After` and failures add waits of
//! their own.

use std::time::Duration;

use crate::fetch::{Failure, Response};
use crate::robots::{Robots, TimeOfDay};
use crate::settings::{Polite, Settings, seconds};
use crate::{date, number};

/// Maximum wait after failures or busy responses before the next try.
const MAX_BACKOFF: Duration = Duration::from_secs(3600);

/// Maximum wait that `Retry-After` can require.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// How long a host rests that requires a longer delay than the settings accept.
pub(crate) const DEFERRED: Duration = Duration::from_secs(24 * 3600);

/// Number of successes after which the delay of a busy host is halved.
const RECOVERY: u8 = 10;

/// The state of the delays of one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// Delay that robots.txt requires.
    pub(crate) asked_delay: Duration,
    /// Delay after busy responses; halved by successes.
    busy_delay: Duration,
    n_successes: u8,
    /// Consecutive failures.
    pub(crate) n_failures: u8,
}

/// The consequence of a result for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Nothing beyond the usual delay.
    None,
    /// The host failed or is busy: wait this long.
    For(Duration),
    /// The host is busy and requires this wait.
    Asked(Duration),
}

impl Pause {
    pub(crate) fn duration(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::For(wait) | Self::Asked(wait) => wait,
        }
    }
}

impl Pace {
    /// Returns the whole state as numbers.
    pub(crate) fn to_numbers(&self) -> [u64; 4] {
        let millis = |time: Duration| time.as_millis() as u64;
        let counts = [self.n_successes.into(), self.n_failures.into()];
        [
            millis(self.asked_delay),
            millis(self.busy_delay),
            counts[0],
            counts[1],
        ]
    }

    /// Restores the state from numbers, to the millisecond.
    pub(crate) fn from_numbers(numbers: [u64; 4]) -> Self {
        let [asked, busy, n_successes, n_failures] = numbers;
        Self {
            asked_delay: Duration::from_millis(asked),
            busy_delay: Duration::from_millis(busy),
            n_successes: n_successes as u8,
            n_failures: n_failures as u8,
        }
    }

    /// Records the result of a request: slows down for hosts that are busy or fail, and speeds up
    /// again for hosts that recover.
    pub(crate) fn note(
        &mut self,
        result: &Result<Response, Failure>,
        settings: &Settings,
        unix_seconds: u64,
    ) -> Pause {
        match result {
            // A server that sends malformed responses is reachable all the same.
            Err(failure) if !failure.is_passing() => Pause::None,
            Err(_) => {
                self.n_failures = self.n_failures.saturating_add(1);
                Pause::For(backoff(settings, self.n_failures))
            }
            Ok(response) => {
                self.n_failures = 0;
                match is_busy(response) {
                    true => self.slow_down(response, settings, unix_seconds),
                    false => self.recover(settings),
                }
            }
        }
    }

    fn recover(&mut self, settings: &Settings) -> Pause {
        self.n_successes += 1;
        if self.n_successes >= RECOVERY {
            self.n_successes = 0;
            let halved = self.busy_delay / 2;
            let is_over = halved < least_busy_delay(settings);
            self.busy_delay = if is_over { Duration::ZERO } else { halved };
        }
        Pause::None
    }

    fn slow_down(&mut self, response: &Response, settings: &Settings, unix_seconds: u64) -> Pause {
        self.n_successes = 0;
        let head = response.message.head();
        let asked = head.and_then(|head| head.get("retry-after"));
        if let Some(wait) = asked.and_then(|value| retry_after(value, unix_seconds)) {
            return Pause::Asked(wait);
        }
        let least = least_busy_delay(settings).max(adaptive(response.took, &settings.polite));
        self.busy_delay = (self.busy_delay.max(least) * 2).min(MAX_BACKOFF);
        Pause::For(self.busy_delay)
    }

    /// Returns the time that must pass after a request that took this long, whatever its result.
    pub(crate) fn delay(
        &self,
        took: Duration,
        robots: Option<&Robots>,
        polite: &Polite,
        unix_seconds: u64,
    ) -> Duration {
        let asked = match self.is_deferred(robots, polite, unix_seconds) {
            true => DEFERRED,
            false => self.asked(robots, unix_seconds),
        };
        seconds(polite.delay)
            .max(adaptive(took, polite))
            .max(asked)
            .max(self.busy_delay)
    }

    /// Whether robots.txt requires a longer delay than the settings accept, so that the host is
    /// deferred to another day.
    pub(crate) fn is_deferred(
        &self,
        robots: Option<&Robots>,
        polite: &Polite,
        unix_seconds: u64,
    ) -> bool {
        self.asked(robots, unix_seconds) > seconds(polite.defer_above)
    }

    /// Returns the delay that robots.txt requires at this time of day.
    fn asked(&self, robots: Option<&Robots>, unix_seconds: u64) -> Duration {
        match robots {
            Some(robots) if !robots.request_rates.is_empty() => {
                robots.delay(TimeOfDay::from_unix(unix_seconds))
            }
            _ => self.asked_delay,
        }
    }

    /// Whether the host fails so often that it counts as dead.
    pub(crate) fn is_dead(&self, settings: &Settings) -> bool {
        self.n_failures >= settings.fetch.tries.saturating_mul(3)
    }
}

fn least_busy_delay(settings: &Settings) -> Duration {
    seconds(settings.polite.delay).max(Duration::from_secs(1))
}

fn adaptive(took: Duration, polite: &Polite) -> Duration {
    let delay = took.mul_f64(polite.factor.max(0.0));
    delay.min(seconds(polite.max_delay))
}

/// Returns the wait before the next try after this many failures.
pub(crate) fn backoff(settings: &Settings, n_failures: u8) -> Duration {
    let doublings = u32::from(n_failures.saturating_sub(1)).min(10);
    (seconds(settings.fetch.retry_delay) * (1 << doublings)).min(MAX_BACKOFF)
}

/// Whether a response says that the host is too busy.
pub(crate) fn is_busy(response: &Response) -> bool {
    let head = response.message.head();
    head.is_some_and(|head| matches!(head.status, 429 | 503))
}

/// Returns how long a site stays closed from now on; `None` if it is open.
pub(crate) fn opens_in(robots: &Robots, unix_seconds: u64) -> Option<Duration> {
    let is_open = |seconds: u64| robots.is_open(TimeOfDay::from_unix(seconds));
    if robots.visit_times.is_empty() || is_open(unix_seconds) {
        return None;
    }
    let minute = unix_seconds / 60;
    let opening = (minute + 1..minute + 24 * 60).find(|minute| is_open(minute * 60));
    let opening = opening.unwrap_or(minute + 24 * 60) * 60;
    Some(Duration::from_secs(opening - unix_seconds))
}

/// Returns the wait that `Retry-After` requires, in seconds or as a date.
fn retry_after(value: &str, unix_seconds: u64) -> Option<Duration> {
    let seconds = match number::saturating(value.trim()) {
        Some(seconds) => seconds,
        None => date::parse(value)?.saturating_sub(unix_seconds),
    };
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::Message;

    fn response(head: &str, took: u64) -> Result<Response, Failure> {
        let bytes = format!("HTTP/1.1 {head}\r\n\r\n").into_bytes();
        let message = Message {
            head_end: bytes.len(),
            bytes,
            cut: None,
        };
        let took = Duration::from_secs(took);
        Ok(Response { message, took })
    }

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// The delay of a busy host doubles each time, starting from the delay that held before. It
    /// halves only after ten successes.
    #[test]
    fn busy_hosts_slow_down_and_recover_slowly() {
        let settings = Settings::default();
        let mut pace = Pace::default();
        let busy = response("503 Busy", 0);
        assert_eq!(pace.note(&busy, &settings, 0), Pause::For(secs(2)));
        assert_eq!(pace.note(&busy, &settings, 0), Pause::For(secs(4)));
        let success = response("200 OK", 0);
        for _ in 0..9 {
            assert_eq!(pace.note(&success, &settings, 0), Pause::None);
        }
        assert_eq!(
            pace.delay(Duration::ZERO, None, &settings.polite, 0),
            secs(4)
        );
        pace.note(&success, &settings, 0);
        assert_eq!(
            pace.delay(Duration::ZERO, None, &settings.polite, 0),
            secs(2)
        );
        // A slow host doubles the delay that its slowness already caused.
        let slow = response("429 Busy", 3);
        let mut pace = Pace::default();
        assert_eq!(pace.note(&slow, &settings, 0), Pause::For(secs(60)));
    }

    /// A wait that the host requires does not end the delay of earlier busy responses.
    #[test]
    fn retry_after_does_not_speed_up() {
        let settings = Settings::default();
        let mut pace = Pace::default();
        for _ in 0..4 {
            pace.note(&response("503 Busy", 0), &settings, 0);
        }
        let asked = response("503 Busy\r\nRetry-After: 1", 0);
        assert_eq!(pace.note(&asked, &settings, 0), Pause::Asked(secs(1)));
        assert_eq!(
            pace.delay(Duration::ZERO, None, &settings.polite, 0),
            secs(16)
        );
    }

    #[test]
    fn failures_back_off_up_to_an_hour() {
        let settings = Settings::default();
        let mut pace = Pace::default();
        let first = pace.note(&Err(Failure::Closed), &settings, 0).duration();
        let second = pace.note(&Err(Failure::Closed), &settings, 0).duration();
        assert_eq!((first, second), (backoff(&settings, 1), first * 2));
        assert_eq!(pace.note(&Err(Failure::Tls), &settings, 0), Pause::None);
        for _ in 0..300 {
            pace.note(&Err(Failure::Slow), &settings, 0);
        }
        assert_eq!(backoff(&settings, pace.n_failures), MAX_BACKOFF);
        assert!(pace.is_dead(&settings));
    }

    #[test]
    fn dates_and_seconds() {
        assert_eq!(retry_after("120", 0), Some(secs(120)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after(date, 784_111_770), Some(secs(7)));
        assert_eq!(retry_after(date, 784_111_780), Some(Duration::ZERO));
        for longest in [
            "999999999999",
            "99999999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(retry_after(longest, 0), Some(secs(86400)), "{longest}");
        }
        assert_eq!(retry_after("soon", 0), None);
    }

    #[test]
    fn closed_sites_open_at_their_minute() {
        let robots = Robots::parse(b"User-agent: *\nVisit-time: 0600-0845\n", "x");
        let at = |hour: u64, minute: u64, second: u64| hour * 3600 + minute * 60 + second;
        assert_eq!(opens_in(&robots, at(6, 0, 0)), None);
        assert_eq!(opens_in(&robots, at(8, 45, 59)), None);
        assert_eq!(opens_in(&robots, at(5, 59, 30)), Some(secs(30)));
        let opens = Some(secs(at(21, 14, 0)));
        assert_eq!(opens_in(&robots, at(8, 46, 0)), opens);
        assert_eq!(opens_in(&Robots::allow_all(), 0), None);
    }
}
