//! Estimates of the freshness of pages: how many are up to date, and how often they change.

use std::collections::BTreeMap;

use arose::freshness::Posterior;

use super::recrawl::DAY;
use super::*;
use crate::frontier::SiteId;
use crate::pages::NO_SITE;

/// Estimates for the pages that are visited again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Freshness {
    /// The number of pages.
    pub n_pages: u64,
    /// The estimated share of them that is up to date.
    pub fresh: f64,
    /// By time since the last visit: upper bound in days, number of pages, and the share up to
    /// date.
    pub by_age: Vec<(f64, u64, f64)>,
    /// By changes per day: upper bound, and number of pages.
    pub by_rate: Vec<(f64, u64)>,
    /// The sites with the most pages: name, pages, the share up to date, and changes of a page per
    /// day.
    pub sites: Vec<(String, u64, f64, f64)>,
}

/// Upper bounds of the classes of days since the last visit, and of changes per day.
const AGES: [f64; 6] = [1.0, 7.0, 30.0, 90.0, 365.0, f64::INFINITY];
const RATES: [f64; 6] = [0.001, 0.01, 0.03, 0.1, 1.0, f64::INFINITY];

/// Number of sampled pages, and number of listed sites.
const SAMPLE: usize = 2000;
const N_SITES: usize = 10;

/// Seconds between two estimates.
const EVERY: u32 = 60;

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    n: f64,
    fresh: f64,
    rate: f64,
}

impl Sum {
    fn add(&mut self, fresh: f64, rate: f64) {
        self.n += 1.0;
        self.fresh += fresh;
        self.rate += rate;
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.n.max(1.0)
    }
}

impl Crawl {
    /// Returns the estimates, at most one minute old; `None` if no page is visited again.
    pub(super) fn believed(&mut self) -> Option<Freshness> {
        let date = self.date();
        if self.recrawl.believed.0.abs_diff(date) >= EVERY {
            let believed = self.believe(date);
            self.recrawl.believed = (date, believed);
        }
        self.recrawl.believed.1.clone()
    }

    fn believe(&self, date: u32) -> Option<Freshness> {
        let sample = self.recrawl.known.sample(SAMPLE);
        if sample.is_empty() {
            return None;
        }
        let mut all = Sum::default();
        let (mut by_age, mut by_rate) = ([Sum::default(); 6], [Sum::default(); 6]);
        let mut by_site: BTreeMap<SiteId, Sum> = BTreeMap::new();
        let class = |bounds: &[f64; 6], value: f64| bounds.partition_point(|bound| *bound < value);
        for (statistics, prior, site) in &sample {
            let posterior = Posterior::new(prior, &statistics.history());
            let days = f64::from(date.saturating_sub(statistics.last)) / f64::from(DAY);
            let (fresh, rate) = (posterior.freshness(days), posterior.rate());
            let site = by_site.entry(*site).or_default();
            let (age, rates) = (class(&AGES, days), class(&RATES, rate));
            for sum in [&mut all, site, &mut by_age[age], &mut by_rate[rates]] {
                sum.add(fresh, rate);
            }
        }
        let n_pages = self.recrawl.known.n_visited() as u64;
        let scaled = |sum: &Sum| (sum.n / all.n * n_pages as f64).round() as u64;
        let by_age = AGES.iter().zip(&by_age);
        let by_rate = RATES.iter().zip(&by_rate);
        Some(Freshness {
            n_pages,
            fresh: all.mean(all.fresh),
            by_age: by_age
                .map(|(days, sum)| (*days, scaled(sum), sum.mean(sum.fresh)))
                .collect(),
            by_rate: by_rate.map(|(rate, sum)| (*rate, scaled(sum))).collect(),
            sites: self.largest(by_site, scaled),
        })
    }

    /// Returns the sites with the most pages.
    fn largest(
        &self,
        by_site: BTreeMap<SiteId, Sum>,
        scaled: impl Fn(&Sum) -> u64,
    ) -> Vec<(String, u64, f64, f64)> {
        let known = by_site.into_iter().filter(|(site, _)| *site != NO_SITE);
        let mut sites: Vec<(SiteId, Sum)> = known.collect();
        sites.sort_by(|a, b| b.1.n.total_cmp(&a.1.n).then(a.0.cmp(&b.0)));
        sites.truncate(N_SITES);
        let row = |(site, sum): &(SiteId, Sum)| {
            let name = self.frontier.site_standing(*site).name;
            (name, scaled(sum), sum.mean(sum.fresh), sum.mean(sum.rate))
        };
        sites.iter().map(row).collect()
    }
}
