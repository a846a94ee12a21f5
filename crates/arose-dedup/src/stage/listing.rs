//! All pairs, including pairs of exact duplicates.
//!
//! Inside the run, one document represents all exact duplicates. Here every pair is expanded: a
//! pair of contents with `x` and `y` documents becomes `x y` pairs. There may be far too many (a
//! million exact duplicates of one page are half a trillion pairs). So products above a limit are
//! listed only from first to first, and exact duplicates beyond it from the first to each. The
//! limit is the largest power of two with which about 64 pairs per document are listed
//! ([`Products`]), so it has no effect on most corpora.
//!
//! Under the policy `site`, contents are compared by the sites of their first documents. Exact
//! duplicates on other sites share that decision, but a pair of them is listed only if the rule
//! matches for their own sites.

use std::path::{Path, PathBuf};

use arose::rule::{Criterion, Evidence, Policy, decide};

use crate::Error;
use crate::column::{Column, Scan, Writer};
use crate::config::{Config, Verify};
use crate::products::Products;
use crate::record::{Accepted, Copied, DocRecord, Ordinal, Scores, Vectors, rule_index};
use crate::scheme::site_relation;
use crate::sorter::Sorter;
use crate::stage::candidates::ALL;
use crate::stage::columns::{DOCS, VECTORS};
use crate::stage::exact::COPIES;
use crate::stage::tables::{Rows, Stages};
use crate::stage::verify::PAIRS;

/// Lists every accepted pair of the run.
pub(crate) fn list_all(
    stages: &Stages<'_>,
    n_docs: u64,
    config: &Config,
    scratch: &Path,
    rows: &mut Rows,
    sorter: &mut Sorter<Accepted>,
) -> Result<(), Error> {
    let classes = Classes::load(stages)?;
    let sites = OwnSites::open(stages, config)?;
    let accepted = gather(stages, config, scratch)?;
    let limit = classes.limit(&accepted, n_docs)?;
    classes.list_copies(stages, limit, rows, sorter)?;
    let mut pairs = Scan::<Accepted>::open(&accepted)?;
    while let Some(pair) = pairs.next()? {
        classes.list_pair(&pair, limit, sites.as_ref(), rows, sorter)?;
    }
    Ok(())
}

/// Writes every accepted pair once: those that decided and those that did not. Returns the path.
fn gather(stages: &Stages<'_>, config: &Config, scratch: &Path) -> Result<PathBuf, Error> {
    let all = stages.verify.join(ALL).join(PAIRS);
    let mut sorter = Sorter::new(&scratch.join("gathered"), config.part(4));
    for path in stages.accepted().chain([all]) {
        let mut pairs = Scan::<Accepted>::open(&path)?;
        while let Some(pair) = pairs.next()? {
            sorter.push(pair)?;
        }
    }
    let mut sorted = sorter.finish()?;
    let path = scratch.join("accepted");
    let mut out = Writer::create(&path)?;
    let mut last = None;
    while let Some(pair) = sorted.next()? {
        if last.replace(pair) != Some(pair) {
            out.push(&pair)?;
        }
    }
    out.finish()?;
    Ok(path)
}

/// The exact duplicates of each content.
struct Classes {
    /// Sorted by first document.
    copies: Vec<Copied>,
}

impl Classes {
    fn load(stages: &Stages<'_>) -> Result<Self, Error> {
        let mut scan = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
        let mut copies = Vec::with_capacity(scan.left() as usize);
        while let Some(copy) = scan.next()? {
            copies.push(copy);
        }
        copies.sort_unstable_by_key(|copy| (copy.first, copy.doc));
        Ok(Self { copies })
    }

    /// Returns the exact duplicates of the document `first`, which is the first of its content,
    /// without itself.
    fn copies_of(&self, first: Ordinal) -> &[Copied] {
        let start = self.copies.partition_point(|copy| copy.first < first);
        let n = self.copies[start..].partition_point(|copy| copy.first == first);
        &self.copies[start..start + n]
    }

    /// Returns the documents of a content.
    fn members(&self, first: Ordinal) -> impl Iterator<Item = Ordinal> + Clone {
        let copies = self.copies_of(first).iter().map(|copy| copy.doc);
        std::iter::once(first).chain(copies)
    }

    fn size(&self, first: Ordinal) -> u64 {
        self.copies_of(first).len() as u64 + 1
    }

    /// Returns the largest product of exact duplicates that is listed in full.
    fn limit(&self, accepted: &Path, n_docs: u64) -> Result<u64, Error> {
        let mut products = Products::default();
        for class in self.copies.chunk_by(|a, b| a.first == b.first) {
            let n = class.len() as u64 + 1;
            products.count(n * (n - 1) / 2);
        }
        let mut pairs = Scan::<Accepted>::open(accepted)?;
        while let Some(pair) = pairs.next()? {
            products.count(self.size(pair.a) * self.size(pair.b));
        }
        Ok(products.limit(n_docs))
    }

    /// Lists the pairs of exact duplicates. Pairs of documents without tokens have no scores.
    fn list_copies(
        &self,
        stages: &Stages<'_>,
        limit: u64,
        rows: &mut Rows,
        sorter: &mut Sorter<Accepted>,
    ) -> Result<(), Error> {
        let docs = Column::<DocRecord>::open(&stages.read.join(DOCS), 0)?;
        for class in self.copies.chunk_by(|a, b| a.first == b.first) {
            let first = class[0].first;
            let exact = Scores::equal(docs.get(first)?.n_tokens);
            let n = class.len() as u64 + 1;
            if n * (n - 1) / 2 > limit {
                rows.pairs_not_listed += n * (n - 1) / 2 - class.len() as u64;
                for copy in class {
                    sorter.push(Accepted::new(first, copy.doc, exact))?;
                }
                continue;
            }
            let members: Vec<Ordinal> = self.members(first).collect();
            for (i, &a) in members.iter().enumerate() {
                for &b in &members[i + 1..] {
                    sorter.push(Accepted::new(a, b, exact))?;
                }
            }
        }
        Ok(())
    }

    fn list_pair(
        &self,
        pair: &Accepted,
        limit: u64,
        sites: Option<&OwnSites>,
        rows: &mut Rows,
        sorter: &mut Sorter<Accepted>,
    ) -> Result<(), Error> {
        if self.copies.is_empty() {
            return sorter.push(*pair);
        }
        let product = self.size(pair.a) * self.size(pair.b);
        if product > limit {
            rows.pairs_not_listed += product - 1;
            return sorter.push(*pair);
        }
        for a in self.members(pair.a) {
            for b in self.members(pair.b) {
                let rule = match sites {
                    None => Some(pair.scores.rule),
                    Some(sites) => sites.rule(a, b, &pair.scores)?,
                };
                if let Some(rule) = rule {
                    let scores = Scores {
                        rule,
                        ..pair.scores
                    };
                    sorter.push(Accepted::new(a, b, scores))?;
                }
            }
        }
        Ok(())
    }
}

/// Decides on pairs of exact duplicates by their own sites.
struct OwnSites {
    policy: Policy,
    vectors: Column<Vectors>,
}

impl OwnSites {
    /// None if sites do not matter.
    fn open(stages: &Stages<'_>, config: &Config) -> Result<Option<Self>, Error> {
        if !has_site_rule(config) {
            return Ok(None);
        }
        Ok(Some(Self {
            policy: config.policy,
            vectors: Column::open(&stages.read.join(VECTORS), config.part(8))?,
        }))
    }

    fn rule(&self, a: Ordinal, b: Ordinal, scores: &Scores) -> Result<Option<u32>, Error> {
        let sites = [self.vectors.get(a)?.site, self.vectors.get(b)?.site];
        Ok(site_rule(&self.policy, sites, scores))
    }
}

/// Returns whether exact duplicates are decided by their own sites.
fn has_site_rule(config: &Config) -> bool {
    matches!(config.policy.criterion, Criterion::Site { .. }) && config.verify != Verify::None
}

/// Returns the rule under which documents of these sites are duplicates, given the scores of their
/// contents.
fn site_rule(policy: &Policy, sites: [u64; 2], scores: &Scores) -> Option<u32> {
    let evidence = Evidence {
        site: site_relation(sites),
        b_sim: scores.b_sim.into(),
        c_sim: scores.c_sim.into(),
        jaccard: None,
        level: None,
        same_content: false,
        either_short: false,
    };
    decide(policy, &evidence).map(rule_index)
}
