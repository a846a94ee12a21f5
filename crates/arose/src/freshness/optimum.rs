//! Optimal revisit rates for known change rates: the best result that a schedule can reach, and the
//! effect of a budget before it is spent.
//!
//! All three problems have one multiplier `L`, the value of the last visit that the budget allows.
//! It is found by bisection; each page then has its own closed or monotone equation.

use super::Value;

/// A page to be visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Importance.
    pub mu: f64,
    /// Changes per day.
    pub rate: f64,
}

/// The number of visits to each page.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// Visits per day, in the order of the pages.
    pub visits: Vec<f64>,
    /// The value of the last visit.
    pub threshold: f64,
}

impl Allocation {
    /// Returns the mean freshness with visits at fixed intervals, weighted by importance.
    #[must_use]
    pub fn freshness(&self, pages: &[Demand]) -> f64 {
        let each = pages.iter().zip(&self.visits);
        let fresh: f64 = each
            .map(|(page, f)| match *f > 0.0 {
                true => page.mu * -(-page.rate / f).exp_m1() * f / page.rate,
                false => 0.0,
            })
            .sum();
        fresh / pages.iter().map(|page| page.mu).sum::<f64>()
    }

    /// Returns the same for visits at random times.
    #[must_use]
    pub fn random_freshness(&self, pages: &[Demand]) -> f64 {
        let each = pages.iter().zip(&self.visits);
        let fresh: f64 = each.map(|(page, f)| page.mu * f / (f + page.rate)).sum();
        fresh / pages.iter().map(|page| page.mu).sum::<f64>()
    }
}

/// Allocates visits at fixed intervals, `budget` per day in total.
#[must_use]
pub fn fixed_intervals(value: Value, pages: &[Demand], budget: f64) -> Allocation {
    allocate(pages, budget, |page, threshold| {
        1.0 / interval(value, page, threshold)
    })
}

/// Returns the interval after which the value of a visit reaches the threshold; infinite if it
/// never does.
fn interval(value: Value, page: &Demand, threshold: f64) -> f64 {
    let worth = |t: f64| value.of(page.mu, page.rate, t);
    let most = 1e9;
    if worth(most) < threshold {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (1e-9_f64, most);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        match worth(middle) < threshold {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Allocates visits at random times, `budget` per day in total. [`Value::Age`] has no such solution
/// and is treated as harmonic.
#[must_use]
pub fn random_visits(value: Value, pages: &[Demand], budget: f64) -> Allocation {
    allocate(pages, budget, |page, threshold| {
        random(value, page, threshold)
    })
}

fn random(value: Value, page: &Demand, threshold: f64) -> f64 {
    let Demand { mu, rate } = *page;
    match value {
        Value::Binary => ((mu * rate / threshold).sqrt() - rate).max(0.0),
        _ => (-rate + (rate * rate + 4.0 * mu * rate / threshold).sqrt()) / 2.0,
    }
}

/// Allocates random visits for [`Value::Binary`] if hosts have separate caps. `hosts` has the host
/// of each page, if that host has a cap.
#[must_use]
pub fn capped(pages: &[Demand], hosts: &[Option<usize>], caps: &[f64], budget: f64) -> Allocation {
    let of_host = |host: usize| {
        let own = pages.iter().zip(hosts);
        let own: Vec<Demand> = own
            .filter(|(_, of)| **of == Some(host))
            .map(|(page, _)| *page)
            .collect();
        random_visits(Value::Binary, &own, caps[host]).threshold
    };
    let least: Vec<f64> = (0..caps.len()).map(of_host).collect();
    let mut numbered: Vec<(Demand, f64)> = Vec::with_capacity(pages.len());
    for (page, host) in pages.iter().zip(hosts) {
        numbered.push((*page, host.map_or(0.0, |host| least[host])));
    }
    let visits_at = |threshold: f64| -> Vec<f64> {
        let each = numbered.iter();
        each.map(|(page, least)| random(Value::Binary, page, threshold.max(*least)))
            .collect()
    };
    let threshold = bisect(|threshold| visits_at(threshold).iter().sum(), budget);
    Allocation {
        visits: visits_at(threshold),
        threshold,
    }
}

fn allocate(pages: &[Demand], budget: f64, visits: impl Fn(&Demand, f64) -> f64) -> Allocation {
    let visits_at =
        |threshold: f64| -> Vec<f64> { pages.iter().map(|page| visits(page, threshold)).collect() };
    let threshold = bisect(|threshold| visits_at(threshold).iter().sum(), budget);
    Allocation {
        visits: visits_at(threshold),
        threshold,
    }
}

/// Returns the threshold at which the number of visits, which falls with it, equals the budget.
fn bisect(visits: impl Fn(f64) -> f64, budget: f64) -> f64 {
    let (mut low, mut high) = (1e-12_f64, 1e12_f64);
    for _ in 0..120 {
        let middle = (low * high).sqrt();
        match visits(middle) > budget {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}
