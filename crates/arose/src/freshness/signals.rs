//! Signals: sitemaps and feeds that announce, sometimes wrongly, that a page has changed.
//!
//! A share `l` of the changes of a page is announced (*recall*), and announcements without a change
//! occur at a rate `v`. Then changes without a signal occur at the rate `a = (1 - l) r`, signals at
//! `g = l r + v`, and each signal is evidence of `b = ln(g/v)` for a change. The page is unchanged
//! with probability `exp(-x)`, where `x = a t + n b` after `t` days and `n` signals. Everything is
//! a function of `x` (Busa-Fekete et al. 2025). Recall and false rate are learned from visits
//! ([`Quality`]): for a site whose dates are always the current time, `b` becomes close to 0.

/// Maximum number of terms of the sums, which fall faster than powers.
const MAX_TERMS: usize = 200;

/// The rates at which a page changes and is announced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalRates {
    /// Changes per day.
    pub rate: f64,
    /// The share of changes that is announced, 0 to 1.
    pub recall: f64,
    /// Announcements per day without a change.
    pub false_rate: f64,
}

/// The average result of a policy that visits a page at a given evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyResult {
    /// Days between visits.
    pub interval: f64,
    /// The days of the interval on which the page is up to date.
    pub fresh: f64,
}

impl SignalRates {
    /// Returns the changes per day that no signal announces.
    #[must_use]
    pub fn unannounced(&self) -> f64 {
        (1.0 - self.recall.clamp(0.0, 1.0)) * self.rate
    }

    /// Returns the signals per day.
    #[must_use]
    pub fn signal_rate(&self) -> f64 {
        self.recall.clamp(0.0, 1.0) * self.rate + self.false_rate
    }

    /// Returns the evidence of one signal; infinite if signals are never wrong.
    #[must_use]
    pub fn weight(&self) -> f64 {
        match self.signal_rate() > 0.0 {
            true => (self.signal_rate() / self.false_rate).ln(),
            false => 0.0,
        }
    }

    /// Returns the evidence after `days` and `n` signals.
    #[must_use]
    pub fn evidence(&self, days: f64, n: u32) -> f64 {
        let of_signals = match n {
            0 => 0.0,
            n => f64::from(n) * self.weight(),
        };
        self.unannounced() * days.max(0.0) + of_signals
    }

    /// Returns the result of visiting at evidence `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> PolicyResult {
        let (a, g, b) = (self.unannounced(), self.signal_rate(), self.weight());
        // If signals carry no information, the interval is fixed.
        if g <= 0.0 || b < 1e-9 {
            let t = x / a;
            return PolicyResult {
                interval: t,
                fresh: -(-x).exp_m1() / a,
            };
        }
        let (mut interval, mut fresh, mut factor) = (0.0, 0.0, 1.0);
        for i in 0..MAX_TERMS {
            let left = x - i as f64 * b;
            if left <= 0.0 || left.is_nan() {
                break;
            }
            let y = left / a;
            let of_interval = more_than(i, g * y) / g;
            let of_fresh = factor * more_than(i, (a + g) * y) / (a + g);
            interval += of_interval;
            fresh += of_fresh;
            factor *= self.false_rate / (a + g);
            if of_interval < interval * 1e-14 {
                break;
            }
        }
        PolicyResult { interval, fresh }
    }

    /// Returns the value of a visit at evidence `x`, if the cost is the time out of date.
    #[must_use]
    pub fn value(&self, mu: f64, x: f64) -> f64 {
        let PolicyResult { interval, fresh } = self.at(x);
        mu * (fresh - (-x).exp() * interval)
    }

    /// Returns the same with a part that grows without bound, as in
    /// [`Value::Harmonic`](super::Value::Harmonic). So every page has its turn, even if there are
    /// no signals or signals with little information. This part is the difference between the
    /// harmonic and the binary value of a page that changes at the mean rate `x / days` implied by
    /// the evidence. Without signals, the sum is the harmonic value.
    #[must_use]
    pub fn harmonic_value(&self, mu: f64, days: f64, n: u32) -> f64 {
        let x = self.evidence(days, n);
        self.value(mu, x) + mu * days.max(0.0) * unbounded(x)
    }

    /// Returns the days after which [`SignalRates::harmonic_value`] reaches `value` if there is no
    /// further signal.
    #[must_use]
    pub fn wait(&self, mu: f64, n: u32, value: f64) -> f64 {
        const MOST: f64 = 1e5;
        if n > 0 && self.weight().is_infinite() || self.harmonic_value(mu, 0.0, n) >= value {
            return 0.0;
        }
        let beyond = |days: f64| self.harmonic_value(mu, days, n) - value;
        let (mut low, mut high) = (0.0, 1.0);
        let (mut below, mut above) = (beyond(low), beyond(high));
        while above < 0.0 {
            if high >= MOST {
                return MOST;
            }
            (low, below) = (high, above);
            high *= 4.0;
            above = beyond(high);
        }
        // The line between two points, one of which counts half if it did not move (Illinois
        // method).
        let mut days = high;
        for _ in 0..60 {
            days = (low * above - high * below) / (above - below);
            if !days.is_finite() {
                return MOST;
            }
            let reached = beyond(days);
            match reached < 0.0 {
                true => {
                    (low, below) = (days, reached);
                    above /= 2.0;
                }
                false => {
                    (high, above) = (days, reached);
                    below /= 2.0;
                }
            }
            if high - low <= 1e-7 * high || reached.abs() <= 1e-8 * value {
                break;
            }
        }
        days
    }
}

/// Returns the harmonic value minus the binary value at the expected number of changes `x`, per
/// unit of elapsed time.
fn unbounded(x: f64) -> f64 {
    // Use the form without cancellation.
    match x < 1e-3 {
        true => x * x * (1.0 / 6.0 - x / 12.0),
        false => 1.0 + (-x).exp() + 2.0 * (-x).exp_m1() / x,
    }
}

/// Returns the probability of more than `i` events if `z` are expected.
fn more_than(i: usize, z: f64) -> f64 {
    if z.is_infinite() {
        return 1.0;
    }
    // Use the form without cancellation.
    let mut term = (-z).exp();
    if z < i as f64 {
        for j in 1..=i {
            term *= z / j as f64;
        }
        let (mut sum, mut j) = (0.0, i + 1);
        while term > sum * 1e-17 && j < i + 1000 {
            term *= z / j as f64;
            sum += term;
            j += 1;
        }
        return sum;
    }
    let mut sum = term;
    for j in 1..=i {
        term *= z / j as f64;
        sum += term;
    }
    1.0 - sum
}

/// The quality of the signals of a site so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quality {
    /// Changes found that a signal had announced.
    pub announced: f32,
    /// Changes found that no signal had announced.
    pub missed: f32,
    /// Signals without a change.
    pub wrong: f32,
    /// Days in intervals without change.
    pub days: f32,
}

impl Quality {
    /// Records a visit to a page, `days` after the previous one, with `n` signals in between.
    pub fn note(&mut self, days: f64, n: u32, is_changed: bool) {
        if !days.is_finite() || days < 0.0 {
            return;
        }
        match (is_changed, n) {
            (true, 0) => self.missed += 1.0,
            // The first signal announced the change; the others add no information.
            (true, _) => self.announced += 1.0,
            (false, n) => {
                self.wrong += n as f32;
                self.days += days as f32;
            }
        }
    }

    /// Returns the signals for a page with this change rate. Until there are visits, recall is 0.5
    /// and there are as many wrong signals as changes.
    #[must_use]
    pub fn signals(&self, rate: f64) -> SignalRates {
        let n_changes = f64::from(self.announced + self.missed);
        let recall = (f64::from(self.announced) + 0.5) / (n_changes + 1.0);
        // The prior has the weight of one change.
        let false_rate = (f64::from(self.wrong) + 1.0) / (f64::from(self.days) + 1.0 / rate);
        SignalRates {
            rate,
            recall,
            false_rate,
        }
    }
}
