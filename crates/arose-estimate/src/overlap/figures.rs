//! Computes estimates, warnings and refusals from sampled pages that were looked up.

use arose::estimate::bootstrap::Bootstrap;
use arose::estimate::joint::{self, EngineSet, Joint, Sampled, Samples};
use arose::estimate::overlap::relative_size;
use arose::estimate::{Method, Note};
use arose::mix::{SplitMix, mix};

use super::{MAX_CUT, Sampling, size_name};
use crate::Error;
use crate::engine::Panel;
use crate::{Figure, Findings, MAX_DOUBTFUL, ends};

/// Minimum number of remaining pages per search engine for length-corrected estimates.
const MIN_LENGTH_CORRECTED: usize = 20;

impl Sampling {
    pub(super) fn findings(mut self, panel: &Panel) -> Result<Findings, Error> {
        let n = self.n_rounds();
        for pages in self.accepted.iter_mut().chain(&mut self.strict) {
            pages.truncate(n);
        }
        let counted = match self.settings.checking.n_compared {
            0 => "pages, each URL counted separately",
            _ => "pages; a near duplicate in a search engine counts as the page",
        };
        let mut findings = Findings::new("overlap", counted, self.settings.seed);
        findings.figures = match self.refusal(panel) {
            Some(reason) => {
                let name = "the relative sizes";
                vec![Figure::refused(name, self.settings.form.method(), reason)]
            }
            None => self.figures(panel)?,
        };
        findings.series = std::mem::take(&mut self.series);
        findings.warnings = self.warnings(panel);
        Ok(findings.finished(panel))
    }

    /// The reason why no estimate is possible, if any.
    fn refusal(&self, panel: &Panel) -> Option<String> {
        let n_engines = panel.n_engines();
        for engine in 0..n_engines {
            let health = panel.health(engine);
            let name = panel.name(engine);
            if health.missing_rate() > MAX_DOUBTFUL {
                return Some(format!(
                    "{name} did not respond to {:.0}% of the searches",
                    100.0 * health.missing_rate()
                ));
            }
            if health.changed_rate() > MAX_DOUBTFUL {
                return Some(format!(
                    "{name} changed during the study: {} of {} repeated queries returned different \
                     results",
                    health.controls.n_changed, health.controls.n_repeated
                ));
            }
            let (n, n_found) = self.own[engine];
            if n > 0 && (n_found as f64) < MAX_DOUBTFUL * n as f64 {
                return Some(format!(
                    "{name} found only {n_found} of {n} of its own pages again: it does not search \
                     whole texts, or splits words differently"
                ));
            }
        }
        None
    }

    fn warnings(&self, panel: &Panel) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        for (engine, &(n, n_found)) in self.own.iter().enumerate() {
            if (n_found as f64) < 0.97 * n as f64 {
                warnings.push(format!(
                    "{} found {n_found} of {n} of its own pages again: it has more pages of other \
                     engines than were found, by about that factor",
                    panel.name(engine)
                ));
            }
        }
        for (engine, (&n, &n_cut)) in self.n_drawn.iter().zip(&self.n_cut).enumerate() {
            if n_cut as f64 > MAX_CUT * n as f64 {
                warnings.push(format!(
                    "{n_cut} of {n} pages of {} come from responses cut to at most {} results: pages \
                     that rank first are sampled too often",
                    panel.name(engine),
                    panel.health(engine).most_shown
                ));
            }
        }
        let n: usize = self.accepted.iter().map(Vec::len).sum();
        if self.n_weak > 0 {
            warnings.push(format!(
                "{} of {n} pages have fewer than {} words of the lexicon",
                self.n_weak, self.settings.checking.n_words
            ));
        }
        if self.n_unusable > 0 {
            warnings.push(format!(
                "{} further sampled pages have no text or no word of the lexicon, and were dropped",
                self.n_unusable
            ));
        }
        warnings
    }

    fn figures(&self, panel: &Panel) -> Result<Vec<Figure>, Error> {
        let bootstrap = Bootstrap::new(self.settings.seed);
        let estimate = |pages: Vec<Vec<Sampled>>| -> Result<Joint, arose::Error> {
            let samples = Samples::new(pages)?;
            joint::estimate(
                &samples,
                self.settings.reference,
                self.settings.form,
                &bootstrap,
            )
        };
        let names = |error: arose::Error| unrelated(panel, error);
        let joint = estimate(self.accepted.clone()).map_err(names)?;
        let variants = self.variants(panel);
        let mut figures = self.named(panel, &joint);
        for pages in &variants {
            if let Ok(extreme) = estimate(pages.clone()) {
                let others = self.named(panel, &extreme);
                figures = widened(figures, &others);
            }
        }
        if self.strict != self.accepted
            && let Ok(strict) = estimate(self.strict.clone())
        {
            let by_address = self.named(panel, &strict);
            for (figure, other) in figures.iter_mut().zip(&by_address) {
                if let (Some(value), Some(other)) = (figure.value, other.value)
                    && (value - other).abs() > 5e-4 * value.abs()
                {
                    figure.notes.push(format!("{other:.3} by URL only"));
                }
            }
        }
        figures.extend(self.pairs(panel)?);
        figures.extend(self.length_corrected_figures(panel, &variants, estimate));
        figures.extend(self.checker.figures(panel));
        Ok(figures)
    }

    /// Sizes and shares again, from pages that are about equally likely.
    fn length_corrected_figures(
        &self,
        panel: &Panel,
        variants: &[Vec<Vec<Sampled>>],
        estimate: impl Fn(Vec<Vec<Sampled>>) -> Result<Joint, arose::Error>,
    ) -> Vec<Figure> {
        let length_corrected = self.length_corrected(&self.accepted);
        if length_corrected
            .iter()
            .any(|pages| pages.len() < MIN_LENGTH_CORRECTED)
        {
            return Vec::new();
        }
        let Ok(joint) = estimate(length_corrected) else {
            return Vec::new();
        };
        let mut figures = self.named(panel, &joint);
        for pages in variants {
            if let Ok(extreme) = estimate(self.length_corrected(pages)) {
                let others = self.named(panel, &extreme);
                figures = widened(figures, &others);
            }
        }
        let sizes_and_shares = figures.into_iter().take(2 * panel.n_engines());
        let rename = |figure: Figure| Figure {
            name: format!("{}, length-corrected", figure.name),
            ..figure
        };
        sizes_and_shares.map(rename).collect()
    }

    /// The pages of each search engine, with long ones thinned so that all are about equally
    /// likely. Each page stays with a probability of its weight divided by a bound that a fifth of
    /// the weights exceed.
    fn length_corrected(&self, pages: &[Vec<Sampled>]) -> Vec<Vec<Sampled>> {
        let mut random = SplitMix::new(mix(self.settings.seed ^ 0xE7E4));
        let mut thin = |(pages, weights): (&Vec<Sampled>, &Vec<f64>)| -> Vec<Sampled> {
            let mut sorted = weights.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let bound = sorted.get(sorted.len() * 4 / 5).copied().unwrap_or(1.0);
            let both = pages.iter().zip(weights);
            let kept = both.filter(|(_, weight)| random.next_f64() * bound < **weight);
            kept.map(|(page, _)| *page).collect()
        };
        pages.iter().zip(&self.weights).map(&mut thin).collect()
    }

    /// All values of an estimate, by name.
    fn named(&self, panel: &Panel, joint: &Joint) -> Vec<Figure> {
        let reference = self.settings.reference;
        let name = |engine: usize| panel.name(engine);
        let mut figures = Vec::new();
        for (engine, size) in joint.sizes.iter().enumerate() {
            if engine == reference {
                continue;
            }
            let mut figure = Figure::new(size_name(panel, engine, reference), size);
            if size.notes.contains(&Note::FormsDiffer) {
                let other = joint.other_fit.sizes[engine];
                figure
                    .notes
                    .push(format!("the other form gives {other:.3}"));
            }
            figures.push(figure);
        }
        let union = format!("union / {}", name(reference));
        figures.push(Figure::new(union, &joint.union));
        for (engine, coverage) in joint.coverage.iter().enumerate() {
            figures.push(Figure::new(format!("{} / union", name(engine)), coverage));
        }
        for (fewer, share) in joint.held_by_exactly.iter().enumerate() {
            let name = format!("in exactly {} of them", fewer + 1);
            figures.push(Figure::new(name, share));
        }
        figures
    }

    /// The share of each search engine's pages that each other engine has.
    fn pairs(&self, panel: &Panel) -> Result<Vec<Figure>, Error> {
        let overlaps = Samples::new(self.accepted.clone())?.overlaps();
        let n = panel.n_engines();
        let mut figures = Vec::new();
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
            let there = overlaps.of(from, to);
            let Some((share, interval)) = there.share().filter(|_| from != to) else {
                continue;
            };
            let name = format!("{} in {}", panel.name(from), panel.name(to));
            let mut figure = Figure::plain(name, Method::Overlap, share, there.n_checked());
            figure.interval = Some(ends(interval));
            if there.n_missing > 0 {
                figure
                    .notes
                    .push(format!("{} without a response", there.n_missing));
            }
            if from < to && relative_size(&there, &overlaps.of(to, from)).is_err() {
                figure.notes.push("no common page was found".to_owned());
            }
            figures.push(figure);
        }
        Ok(figures)
    }

    /// The possible outcomes of the missing and doubtful lookups: for each search engine, those
    /// that make it as small and as large as possible.
    fn variants(&self, panel: &Panel) -> Vec<Vec<Vec<Sampled>>> {
        let changed: Vec<f64> = (0..panel.n_engines())
            .map(|engine| panel.health(engine).changed_rate())
            .collect();
        let doubtful = |pages: &Vec<Sampled>, own: usize| -> Vec<Sampled> {
            let pages = pages.iter().enumerate();
            pages
                .map(|(place, page)| with_doubts(*page, own, place, &changed))
                .collect()
        };
        let base: Vec<Vec<Sampled>> = self
            .accepted
            .iter()
            .enumerate()
            .map(|(own, pages)| doubtful(pages, own))
            .collect();
        if base.iter().flatten().all(|page| page.missing.is_empty()) {
            return Vec::new();
        }
        let mut variants = Vec::new();
        for engine in 0..panel.n_engines() {
            for [of_engine, in_engine] in [[true, false], [false, true]] {
                let settle = |(own, pages): (usize, &Vec<Sampled>)| -> Vec<Sampled> {
                    let settled = pages.iter().map(|page| {
                        let found = match own == engine {
                            true if of_engine => page.missing.0,
                            false if in_engine => page.missing.0 & (1 << engine),
                            _ => 0,
                        };
                        let open = match own == engine {
                            true => 0,
                            false => page.missing.0 & !(1 << engine),
                        };
                        Sampled {
                            held_by: EngineSet(page.held_by.0 | found),
                            missing: EngineSet(open),
                        }
                    });
                    settled.collect()
                };
                variants.push(base.iter().enumerate().map(settle).collect());
            }
        }
        variants
    }
}

/// The page, with lookups counted as missing in proportion to the share that each search engine
/// changed.
fn with_doubts(mut page: Sampled, own: usize, place: usize, changed: &[f64]) -> Sampled {
    for (engine, &share) in changed.iter().enumerate() {
        let chance = mix(mix(place as u64) ^ mix((own * 64 + engine) as u64 + 1)) >> 11;
        let is_doubtful = (chance as f64) < share * (1_u64 << 53) as f64;
        if engine != own && is_doubtful {
            page.held_by = EngineSet(page.held_by.0 & !(1 << engine));
            page.missing = page.missing.with(engine);
        }
    }
    page
}

fn widened(figures: Vec<Figure>, others: &[Figure]) -> Vec<Figure> {
    let both = figures.into_iter().zip(others);
    both.map(|(figure, other)| figure.widened(other.interval))
        .collect()
}

/// Replaces the numbers of search engines in errors of the formulas by names.
fn unrelated(panel: &Panel, error: arose::Error) -> Error {
    let names: Vec<String> = (0..panel.n_engines())
        .map(|engine| format!("{engine} is {}", panel.name(engine)))
        .collect();
    Error::Words {
        what: format!("{error} (engine {})", names.join(", ")),
    }
}
