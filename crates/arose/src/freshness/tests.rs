use super::*;
use crate::mix::mix;

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value}, expected {expected}"
    );
}

/// Uniform numbers from a seed.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.uniform()).ln() / rate
    }
}

/// Simpson's rule, for simplicity.
fn integral(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let n = 20_000;
    let step = (to - from) / f64::from(n);
    let each = (0..=n).map(|i| {
        let weight = match i {
            0 => 1.0,
            i if i == n => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * f(from + f64::from(i) * step)
    });
    each.sum::<f64>() * step / 3.0
}

#[test]
fn rates_are_log_spaced() {
    near(RATES[0], 1.0 / 3000.0, 1e-12);
    near(RATES[47], 3.0, 1e-9);
    for pair in RATES.windows(2) {
        near(pair[1] / pair[0], 9000f64.powf(1.0 / 47.0), 1e-9);
    }
}

#[test]
fn values_of_the_literature() {
    let values = [Value::Binary, Value::Harmonic, Value::Age];
    for (page, expected) in [
        ((1.0, 1.0, 1.0), [0.264241, 0.367879, 0.235759]),
        ((2.0, 0.5, 3.0), [1.768698, 2.892521, 5.462603]),
    ] {
        for (value, expected) in values.iter().zip(expected) {
            near(value.of(page.0, page.1, page.2), expected, 1e-6);
        }
    }
    near(Value::harmonic_wait(1.0, 0.367879), 1.0, 2e-6);
    near(Value::harmonic_wait(0.5, 1.446260), 3.0, 2e-6);
}

/// `V(t) = t c(t) - integral of c`, with the costs of the three values.
#[test]
fn values_are_their_definition() {
    let ein = |x: f64| integral(|y| if y == 0.0 { 1.0 } else { -(-y).exp_m1() / y }, 0.0, x);
    for (r, t) in [
        (0.01, 3.0),
        (0.5, 2.0),
        (3.0, 1.5),
        (1.0, 12.0),
        (1e-4, 5.0),
    ] {
        let costs: [(Value, &dyn Fn(f64) -> f64); 2] = [
            (Value::Binary, &|t: f64| -(-r * t).exp_m1()),
            (Value::Age, &|t: f64| t + (-r * t).exp_m1() / r),
        ];
        for (value, cost) in costs {
            let expected = t * cost(t) - integral(cost, 0.0, t);
            near(value.of(1.0, r, t), expected, 1e-9 * expected.max(1e-3));
        }
        // The integral of Ein by parts.
        let expected = t * ein(r * t) - (t * ein(r * t) - integral(|s| -(-r * s).exp_m1(), 0.0, t));
        near(
            Value::Harmonic.of(1.0, r, t),
            expected,
            1e-9 * expected.max(1e-3),
        );
    }
}

#[test]
fn series_and_closed_forms_meet() {
    for value in [Value::Binary, Value::Harmonic, Value::Age] {
        let (below, above) = (
            value.of(1.0, 1.0, 0.000_999_999),
            value.of(1.0, 1.0, 0.001_000_001),
        );
        assert!(
            (above / below - 1.0).abs() < 1e-4,
            "{value:?} {below} {above}"
        );
        assert_eq!(value.of(1.0, 1.0, 0.0), 0.0);
        assert!(value.of(1.0, 3.0, 1e6).is_finite());
    }
}

#[test]
fn waits_invert_values() {
    for r in RATES {
        for value in [1e-6, 0.01, 1.0, 30.0, 4000.0] {
            let t = Value::harmonic_wait(r, value);
            near(Value::Harmonic.of(1.0, r, t), value, value * 1e-9);
        }
    }
    assert_eq!(Value::harmonic_wait(1.0, 0.0), 0.0);
    assert_eq!(Value::harmonic_wait(0.0, 1.0), f64::INFINITY);
}

#[test]
fn most_likely_rates() {
    // Intervals of 1 and 3 days without a change, of 1 and 5 with one.
    near(map_rate(&[1.0, 5.0], 4.0, 0.5, 5.0, 1e3), 0.216653, 1e-6);
    near(map_rate(&[], 10.0, 0.5, 5.0, 1e3), 0.033333, 1e-6);
    near(
        map_rate(&[1.0, 1.0, 5.0, 3.0], 0.0, 0.5, 5.0, 1e3),
        0.526625,
        1e-6,
    );
    near(map_rate(&[1.0, 5.0], 4.0, 0.0, 0.0, 1e3), 0.315332, 1e-6);
    // The first visit on day 1: intervals 1 and 5 with change, 3 without.
    near(map_rate(&[1.0, 5.0], 3.0, 0.0, 0.0, 1e3), 0.38358, 1e-5);
    // One interval of half a day of each kind as a prior.
    near(
        map_rate(&[1.0, 5.0, 0.5], 4.5, 0.0, 0.0, 1e3),
        0.437411,
        1e-6,
    );
    assert_eq!(map_rate(&[], 10.0, 0.0, 0.0, 1e3), 0.0);
    assert_eq!(map_rate(&[1.0], 0.0, 0.0, 0.0, 50.0), 50.0);
}

/// The posterior means under a Gamma prior of shape 0.5 and rate 5, by quadrature over all rates.
#[test]
fn exact_posterior_means() {
    let mean = |likelihood: &dyn Fn(f64) -> f64| {
        // With the substitution r = x^2 the prior has no pole.
        let weight = |x: f64| (-5.0 * x * x).exp() * likelihood(x * x);
        let sum = integral(weight, 0.0, 3.0);
        integral(|x| x * x * weight(x), 0.0, 3.0) / sum
    };
    let share = |r: f64, t: f64| -(-r * t).exp_m1();
    near(
        mean(&|r| (-4.0 * r).exp() * share(r, 1.0) * share(r, 5.0)),
        0.21990,
        1e-5,
    );
    near(mean(&|r| (-10.0 * r).exp()), 0.03333, 1e-5);
    let all = |r: f64| share(r, 1.0) * share(r, 1.0) * share(r, 5.0) * share(r, 3.0);
    near(mean(&all), 0.54324, 1e-5);
}

/// The posterior of the grid equals sums written by the definition.
#[test]
fn posteriors_are_their_definition() {
    let prior = Prior::default();
    for (unchanged, changed, n) in [
        (0.0, 0.0, 0),
        (30.0, 0.0, 0),
        (4.0, 6.0, 2),
        (0.0, 900.0, 40),
    ] {
        let history = History {
            unchanged,
            changed,
            n_changes: n as f32,
        };
        let posterior = Posterior::new(&prior, &history);
        let weights: Vec<f64> = RATES
            .iter()
            .map(|r| {
                let mean = f64::from(changed) / f64::from(n.max(1));
                (-r * f64::from(unchanged)).exp() * (-(-r * mean).exp_m1()).powi(n)
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        let rate: f64 = weights.iter().zip(&RATES).map(|(w, r)| w * r / sum).sum();
        near(posterior.rate(), rate, rate * 1e-9);
        for t in [1e-4, 0.5, 40.0, 5e3] {
            let each = weights.iter().zip(&RATES);
            let value: f64 = each
                .map(|(w, r)| w / sum * Value::Harmonic.of(1.0, *r, t))
                .sum();
            near(posterior.value(Value::Harmonic, t), value, value * 1e-8);
            // Minutes do not matter: no page is visited twice within an hour.
            if t > 0.01 {
                near(posterior.wait(value), t, t * 1e-5);
            }
            let fresh: f64 = weights
                .iter()
                .zip(&RATES)
                .map(|(w, r)| w / sum * (-r * t).exp())
                .sum();
            near(posterior.freshness(t), fresh, 1e-9);
        }
    }
}

#[test]
fn strange_histories_have_a_posterior() {
    let prior = Prior::default();
    for history in [
        History {
            unchanged: f32::MAX,
            changed: 0.0,
            n_changes: 0.0,
        },
        History {
            unchanged: 0.0,
            changed: 0.0,
            n_changes: 5.0,
        },
        History {
            unchanged: 1e9,
            changed: 1e-9,
            n_changes: 8e3,
        },
        History {
            unchanged: -1.0,
            changed: 3.0,
            n_changes: -2.0,
        },
    ] {
        let posterior = Posterior::new(&prior, &history);
        assert!(posterior.rate() >= RATES[0] * 0.999 && posterior.rate() <= RATES[47] * 1.001);
        assert!(posterior.wait(1.0).is_finite());
    }
    let mut history = History::default();
    history.note(-1.0, true);
    history.note(f64::NAN, false);
    history.note(f64::INFINITY, true);
    assert_eq!(history, History::default());
}

/// Expectation maximization finds the mixture from which histories were sampled.
#[test]
fn priors_are_learned() {
    let mut random = Random(7);
    let (slow, fast) = (0.004, 0.5);
    let histories: Vec<History> = (0..4000)
        .map(|i| {
            let rate = if i % 4 == 0 { fast } else { slow };
            let mut history = History::default();
            for _ in 0..40 {
                let days = 1.0 + 10.0 * random.uniform();
                history.note(days, random.uniform() < -(-rate * days).exp_m1());
            }
            history
        })
        .collect();
    let prior = Prior::default().learned(&histories, 60);
    let share = |from: f64, to: f64| -> f64 {
        let each = RATES.iter().zip(prior.weights());
        each.filter(|(r, _)| (from..to).contains(*r))
            .map(|(_, w)| w)
            .sum()
    };
    near(share(0.25, 1.0), 0.25, 0.02);
    near(share(0.001, 0.016), 0.75, 0.03);
    near(prior.weights().iter().sum(), 1.0, 1e-12);
    assert!(prior.weights().iter().all(|w| *w >= 0.0009 / 48.0));
    assert_eq!(
        Prior::default().learned(&[History::default()], 9),
        Prior::default()
    );
    assert_eq!(Prior::from_weights(&[f64::NAN; N_RATES]), None);
    assert_eq!(Prior::from_weights(&[0.0; N_RATES]), None);
}

fn demands(pages: &[(f64, f64)]) -> Vec<Demand> {
    pages
        .iter()
        .map(|&(mu, rate)| Demand { mu, rate })
        .collect()
}

#[track_caller]
fn check_visits(allocation: &Allocation, expected: &[f64], threshold: f64) {
    for (visits, expected) in allocation.visits.iter().zip(expected) {
        near(*visits, *expected, 1.01e-4);
    }
    near(allocation.threshold, threshold, 1e-5);
}

#[test]
fn optimal_rates_at_fixed_intervals() {
    let pages = demands(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0), (1.0, 4.0), (1.0, 5.0)]);
    let binary = fixed_intervals(Value::Binary, &pages, 5.0);
    check_visits(&binary, &[1.1499, 1.3584, 1.3538, 1.1379, 0.0], 0.216432);
    near(binary.freshness(&pages), 0.37389, 1e-5);
    let harmonic = fixed_intervals(Value::Harmonic, &pages, 5.0);
    check_visits(
        &harmonic,
        &[0.7166, 0.9206, 1.0441, 1.1286, 1.1901],
        0.64325,
    );
    near(harmonic.freshness(&pages), 0.35675, 1e-5);
    let age = fixed_intervals(Value::Age, &pages, 5.0);
    let expected = [0.8349, 0.9679, 1.0335, 1.0706, 1.0931];
    check_visits(&age, &expected, age.threshold);
    let pages = demands(&[(5.0, 1.0), (1.0, 1.0), (1.0, 10.0)]);
    let harmonic = fixed_intervals(Value::Harmonic, &pages, 3.0);
    check_visits(&harmonic, &[1.4681, 0.5667, 0.9653], 0.93597);
}

#[test]
fn optimal_rates_of_random_visits() {
    let pages = demands(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0), (1.0, 4.0), (1.0, 5.0)]);
    let harmonic = random_visits(Value::Harmonic, &pages, 5.0);
    check_visits(
        &harmonic,
        &[0.7829, 0.9472, 1.0372, 1.0956, 1.1371],
        0.71646,
    );
    let cost = |visits: &[f64]| -> f64 {
        let each = pages.iter().zip(visits);
        each.map(|(page, f)| (page.rate / f).ln_1p()).sum::<f64>() / 5.0
    };
    near(cost(&harmonic.visits), 1.30801, 1e-5);
    near(cost(&[1.0; 5]), 1.31585, 1e-5);
    let binary = random_visits(Value::Binary, &pages, 5.0);
    check_visits(&binary, &[1.3860, 1.3743, 1.1326, 0.7719, 0.3352], 0.175659);
    near(binary.random_freshness(&pages), 0.29737, 1e-5);
    let weighted = demands(&[(5.0, 1.0), (1.0, 1.0), (1.0, 10.0)]);
    let binary = random_visits(Value::Binary, &weighted, 3.0);
    check_visits(&binary, &[2.4549, 0.5451, 0.0], binary.threshold);
    let hosts = [Some(0), Some(0), None, None, None];
    let with_cap = capped(&pages, &hosts, &[1.0], 5.0);
    check_visits(
        &with_cap,
        &[0.6569, 0.3431, 1.6435, 1.3618, 0.9947],
        0.13913,
    );
    near(with_cap.random_freshness(&pages), 0.26335, 1e-5);
}

#[test]
fn values_with_signals() {
    for (signals, x_over_a, expected) in [
        ((1.0, 0.5, 0.2), 1.5, (0.92866, 0.69558, 0.256916)),
        ((2.0, 0.3, 1.0), 0.7, (0.49376, 0.32567, 0.140353)),
    ] {
        let signals = SignalRates {
            rate: signals.0,
            recall: signals.1,
            false_rate: signals.2,
        };
        let x = x_over_a * signals.unannounced();
        let found = signals.at(x);
        near(found.interval, expected.0, 1e-5);
        near(found.fresh, expected.1, 1e-5);
        near(signals.value(1.0, x), expected.2, 2e-6);
        near(signals.value(3.0, x), 3.0 * signals.value(1.0, x), 1e-12);
    }
}

/// Interval and fresh time of the policy "visit at evidence x", by simulation.
#[test]
fn values_with_signals_by_simulation() {
    let mut random = Random(11);
    for (rate, recall, false_rate, x) in [
        (1.0, 0.5, 0.2, 0.75),
        (2.0, 0.3, 1.0, 0.98),
        (1.0, 0.8, 0.05, 4.0),
    ] {
        let signals = SignalRates {
            rate,
            recall,
            false_rate,
        };
        let (a, b) = (signals.unannounced(), signals.weight());
        let n_runs = 200_000;
        let (mut interval, mut fresh) = (0.0, 0.0);
        for _ in 0..n_runs {
            let (mut t, mut n, mut changed) = (0.0, 0, f64::INFINITY);
            let end = loop {
                let last = (x - f64::from(n) * b) / a;
                let step = random.exponential(rate + false_rate);
                if last <= t || t + step >= last {
                    break last.max(t);
                }
                t += step;
                let is_change = random.uniform() < rate / (rate + false_rate);
                if is_change {
                    changed = f64::min(changed, t);
                }
                n += i32::from(!is_change || random.uniform() < recall);
            };
            interval += end;
            fresh += changed.min(end);
        }
        let found = signals.at(x);
        // Four standard errors of times whose standard deviation is about their mean.
        let error = 4.0 / f64::from(n_runs).sqrt();
        near(
            interval / f64::from(n_runs),
            found.interval,
            found.interval * error,
        );
        near(fresh / f64::from(n_runs), found.fresh, found.fresh * error);
    }
}

#[test]
fn signals_at_their_limits() {
    // Signals without information give the value without signals.
    let none = SignalRates {
        rate: 0.5,
        recall: 0.0,
        false_rate: 2.0,
    };
    near(
        none.value(1.0, 0.5 * 3.0),
        Value::Binary.of(1.0, 0.5, 3.0),
        1e-9,
    );
    near(
        none.harmonic_value(1.0, 3.0, 4),
        Value::Harmonic.of(1.0, 0.5, 3.0),
        1e-9,
    );
    near(none.wait(1.0, 2, 1.446260), 3.0, 1e-5);
    // If signals are never wrong, visit immediately.
    let perfect = SignalRates {
        rate: 0.5,
        recall: 0.9,
        false_rate: 0.0,
    };
    assert_eq!(perfect.wait(1.0, 1, 1e6), 0.0);
    assert!(perfect.wait(1.0, 0, 1.0) > none.wait(1.0, 0, 1.0));
    // If all changes are announced, there is nothing to find without a signal.
    let complete = SignalRates {
        rate: 0.5,
        recall: 1.0,
        false_rate: 0.01,
    };
    assert!(complete.wait(1.0, 0, 0.1) >= 1e4);
    assert!(complete.wait(1.0, 1, 0.1) == 0.0);
}

/// A site announces all of its pages at every request: signals carry almost no information, and
/// every change has one. The value must still grow without bound. Otherwise pages that change often
/// would never be visited, since the maximum of the binary value falls as a page changes more
/// often.
#[test]
fn constant_signals_starve_nobody() {
    let constant = SignalRates {
        rate: 3.0,
        recall: 1.0,
        false_rate: 4.0,
    };
    let value = |days: u32| constant.harmonic_value(1.0, days.into(), 7 * days);
    for days in 1..200 {
        assert!(value(days + 1) > value(days) + 0.3, "{days}");
    }
    let binary = constant.value(1.0, constant.evidence(200.0, 1400));
    assert!(binary < 1.0, "{binary}");
    // The schedule does not even wait for the announced changes.
    near(
        value(200),
        Value::Harmonic.of(1.0, 3.0, 200.0),
        0.01 * 200.0,
    );
}

/// The signals of a site that announces each page every day end with no weight; those of a reliable
/// site end with the correct recall and false rate.
#[test]
fn quality_is_learned() {
    let mut random = Random(3);
    let (mut liar, mut honest) = (Quality::default(), Quality::default());
    for _ in 0..3000 {
        let days = 5.0;
        let is_changed = random.uniform() < -(-0.1f64 * days).exp_m1();
        liar.note(days, 5, is_changed);
        let n_false = u32::from(random.uniform() < 0.05 * days);
        let n = u32::from(is_changed && random.uniform() < 0.8) + n_false;
        honest.note(days, n, is_changed);
    }
    assert!(liar.signals(0.1).weight() < 0.15, "{:?}", liar.signals(0.1));
    let found = honest.signals(0.1);
    // A change between two visits may also coincide with a wrong signal.
    near(found.recall, 0.85, 0.03);
    near(found.false_rate, 0.05, 0.01);
    let unknown = Quality::default().signals(0.2);
    near(unknown.recall, 0.5, 1e-12);
    near(unknown.false_rate, 0.2, 1e-12);
}

/// Pages whose rates are known, for schedules.
struct Known {
    priors: Vec<Prior>,
    statistics: Vec<PageStatistics>,
}

impl Pages for Known {
    fn statistics(&self, page: u32) -> Option<PageStatistics> {
        self.statistics.get(page as usize).copied()
    }

    fn prior(&self, page: u32) -> &Prior {
        &self.priors[page as usize % self.priors.len()]
    }
}

/// A prior concentrated on the rate of the grid nearest to `rate`; also returns that rate.
fn sure(rate: f64) -> (Prior, f64) {
    let nearest = |a: &usize, b: &usize| {
        let far = |i: &usize| (RATES[*i] / rate).ln().abs();
        far(a).total_cmp(&far(b))
    };
    let index = (0..N_RATES).min_by(nearest).unwrap();
    let mut weights = [0.0; N_RATES];
    weights[index] = 1.0;
    (Prior::from_weights(&weights).unwrap(), RATES[index])
}

/// The schedule visits the same number of pages in every tick, and each page as often as the
/// optimum.
#[test]
fn schedules_reach_the_optimal_rates() {
    let (priors, rates): (Vec<Prior>, Vec<f64>) = [0.01, 0.03, 0.1, 0.3, 1.0]
        .iter()
        .map(|rate| sure(*rate))
        .unzip();
    let n_pages = 2000;
    let mut known = Known {
        priors,
        statistics: vec![PageStatistics::new(0, 1.0); n_pages],
    };
    let mut schedule = Schedule::new(Value::Harmonic, 0);
    let (tick, budget) = (900, 2.0);
    let sample: Vec<(PageStatistics, &Prior)> = (0..100u32)
        .map(|page| (known.statistics[0], known.prior(page)))
        .collect();
    schedule.calibrate(&sample, n_pages as u64, budget / f64::from(tick), tick);
    for page in 0..n_pages as u32 {
        schedule.add(page, &known, 0);
    }
    let mut n_visits = [0.0; 5];
    // Long enough for a dozen visits of each page: all pages of the same rate are visited at the
    // same time.
    let (days, warm) = (500, 100);
    let mut per_hours = Vec::new();
    for i in 0..days * 86_400 / tick {
        let now = i * tick;
        let visited = schedule.tick(&known, now, budget);
        let is_warm = now > warm * 86_400;
        if is_warm {
            per_hours.push(visited.len() as f64);
        }
        for page in visited {
            known.statistics[page as usize].last = now;
            schedule.add(page, &known, now);
            n_visits[page as usize % 5] += f64::from(u8::from(is_warm));
        }
    }
    for hours in per_hours.windows(40) {
        near(hours.iter().sum(), 40.0 * budget, 40.0 * budget * 0.05);
    }
    assert_eq!(schedule.len(), n_pages);
    let pages: Vec<(f64, f64)> = rates.iter().map(|rate| (1.0, *rate)).collect();
    let per_page = budget * 86_400.0 / f64::from(tick) / n_pages as f64;
    let optimum = fixed_intervals(Value::Harmonic, &demands(&pages), per_page * 5.0);
    for (n, expected) in n_visits.iter().zip(&optimum.visits) {
        let visits = n / f64::from(days - warm) / (n_pages as f64 / 5.0);
        near(visits, *expected, expected * 0.05);
    }
    let n_all: f64 = n_visits.iter().sum();
    let per_visit =
        schedule.n_decisions() as f64 / (n_all * f64::from(days) / f64::from(days - warm));
    assert!(per_visit < 4.0, "{per_visit} decisions per visit");
}

/// A threshold that is far off converges.
#[test]
fn schedules_recover_from_a_wrong_threshold() {
    for start in [1e-6, 1e6] {
        let known = Known {
            priors: vec![Prior::default()],
            statistics: vec![PageStatistics::new(0, 1.0); 500],
        };
        let mut known = known;
        let mut schedule = Schedule::new(Value::Harmonic, 3600);
        schedule.set_threshold(start);
        (0..500).for_each(|page| schedule.add_at(page, 0));
        let mut n_visits = 0;
        for i in 0..4000u32 {
            let now = i * 600;
            let visited = schedule.tick(&known, now, 1.0);
            n_visits += visited.len();
            for page in visited {
                known.statistics[page as usize].visit(now, page % 3 == 0);
                schedule.add(page, &known, now);
            }
        }
        assert!(n_visits > 3500, "{n_visits} visits from {start}");
    }
}

#[test]
fn clocks_that_jump_starve_no_page() {
    let mut known = Known {
        priors: vec![Prior::default()],
        statistics: vec![PageStatistics::new(u32::MAX - 5, 1.0); 10],
    };
    let mut schedule = Schedule::new(Value::Harmonic, 3600);
    let now = 1_000_000;
    (0..10).for_each(|page| {
        schedule.add(page, &known, now);
    });
    let visited = schedule.tick(&known, now, 20.0);
    assert_eq!(visited.len(), 10);
    for page in visited {
        known.statistics[page as usize].visit(now, false);
        assert_eq!(
            known.statistics[page as usize].history(),
            History::default()
        );
    }
    assert_eq!(schedule.tick(&known, now, f64::NAN), []);
}

/// Entries hold four years: a schedule that lives longer, or whose first page is due at another
/// time, still visits pages in the order of their times.
#[test]
fn schedules_outlive_their_entries() {
    let year = 365 * 86_400;
    let mut known = Known {
        priors: vec![Prior::default()],
        statistics: vec![PageStatistics::new(year, 1.0); 64],
    };
    let mut schedule = Schedule::new(Value::Harmonic, 3600);
    schedule.add_at(0, u32::MAX);
    (1..64).for_each(|page| {
        schedule.add(page, &known, year);
    });
    let mut last = [0_u32; 64];
    for day in 0..365 * 20 {
        let now = year + day * 86_400;
        for page in schedule.tick(&known, now, 1.0) {
            last[page as usize] = now;
            known.statistics[page as usize].visit(now, false);
            schedule.add(page, &known, now);
        }
        let longest = last.iter().map(|last| now.saturating_sub(*last)).max();
        let is_warm = day > 365;
        assert!(
            !is_warm || longest < Some(100 * 86_400),
            "{longest:?} on day {day}"
        );
    }
    assert_eq!(schedule.len(), 64);
}

#[test]
fn stats_keep_what_they_are_told() {
    assert_eq!(size_of::<PageStatistics>(), 16);
    for mu in [1e-6, 0.15, 1.0, 10.0, 3e7] {
        near(PageStatistics::new(0, mu).importance(), mu, mu * 4e-4);
    }
    let mut statistics = PageStatistics::new(0, 1.0);
    for i in 1..=20_000u32 {
        statistics.visit(i * 3600, true);
    }
    let history = statistics.history();
    assert!(history.n_changes <= 8000.0);
    near(
        f64::from(history.changed / history.n_changes),
        1.0 / 24.0,
        1e-3,
    );
    statistics.set_importance(f64::NAN);
    assert!(statistics.importance() > 0.0);
}
