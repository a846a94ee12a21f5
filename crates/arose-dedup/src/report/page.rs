//! The page: sections in the order in which a reader asks.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::course;
use super::documents::Cluster;
use super::html::{Count, Plain, Text, bytes, clip, counted, percent};
use super::losses;
use super::pairs::{PairSample, ShownRange};
use super::plot;
use super::quality;
use super::rated;
use super::samples::Evidence;
use super::sites::Tally;
use crate::evaluate::ratings::Tables;
use crate::results::{Pair, Summary};

pub(crate) const STYLE: &str = include_str!("style.css");

/// Maximum number of inputs named at the top.
const MAX_INPUTS: usize = 5;

/// Maximum number of characters shown of a setting or an input.
pub(super) const MAX_VALUE: usize = 200;

/// The data of the page.
pub(super) struct ReportPage<'a> {
    pub(super) summary: &'a Summary,
    pub(super) cluster_sizes: &'a BTreeMap<u32, u64>,
    pub(super) clusters: &'a [Cluster],
    /// Groups of versions.
    pub(super) groups: &'a [Cluster],
    pub(super) sites: &'a [(String, Tally)],
    pub(super) pairs: &'a PairSample,
    pub(super) evidence: &'a Evidence,
    /// The ratings of sampled pairs, if there are any.
    pub(super) ratings: Option<&'a Tables>,
}

impl fmt::Display for ReportPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.put(&mut text)?;
        f.write_str(&text)
    }
}

impl ReportPage<'_> {
    fn put(&self, f: &mut String) -> fmt::Result {
        let headline = self.headline();
        write!(
            f,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            Plain(&headline)
        )?;
        write!(
            f,
            "<header>\n<p class=\"brand\">arose {}</p>\n<h1>{headline}</h1>\n",
            Text(&self.summary.version)
        )?;
        self.inputs(f)?;
        f.write_str(
            "<nav aria-label=\"Sections\"><a href=\"#found\">What was found</a> \
             <a href=\"#clusters\">Clusters</a> ",
        )?;
        if !self.groups.is_empty() {
            f.write_str("<a href=\"#versions\">Versions</a> ")?;
        }
        f.write_str("<a href=\"#sites\">Sites</a> ")?;
        if self.summary.quality.is_some() {
            f.write_str("<a href=\"#quality\">Quality</a> ")?;
        }
        f.write_str(
            "<a href=\"#pairs\">Pairs, side by side</a> <a href=\"#run\">The run</a></nav>\n\
             </header>\n<main>\n",
        )?;
        self.found(f)?;
        self.plots(f)?;
        self.largest_clusters(f)?;
        self.versions(f)?;
        self.share_by_site(f)?;
        quality::put(f, self.summary)?;
        self.sample_pairs(f)?;
        if let Some(tables) = self.ratings {
            rated::put(f, tables)?;
        }
        course::put(f, self.summary)?;
        f.write_str(
            "</main>\n<footer><p>Every decision is in the tables beside this file: \
             <code>documents.parquet</code> has a row per document, <code>pairs.parquet</code> a row \
             per pair. This page loads nothing and runs no scripts.</p></footer>\n</body>\n</html>\n",
        )
    }

    fn headline(&self) -> String {
        let counts = &self.summary.counts;
        let read = counted(counts.read, "document", "documents");
        let others = counts.dropped_filtered + counts.dropped_superseded;
        let copies = counts.dropped().saturating_sub(others);
        match (counts.read, copies) {
            (0, _) => "No documents to compare".to_owned(),
            (_, 0) => format!("No duplicates among {read}"),
            (all, 1) => format!("1 of {read} is a duplicate ({})", percent(1, all)),
            (all, n) => format!(
                "{} of {read} are duplicates ({})",
                Count(n),
                percent(n, all)
            ),
        }
    }

    fn inputs(&self, f: &mut String) -> fmt::Result {
        let inputs = &self.summary.inputs;
        if inputs.is_empty() {
            return Ok(());
        }
        f.write_str("<p class=\"inputs\">in ")?;
        for (i, input) in inputs.iter().take(MAX_INPUTS).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}<bdi>{}</bdi>", Text(&clip(input, MAX_VALUE)))?;
        }
        if let Some(more @ 1..) = inputs.len().checked_sub(MAX_INPUTS) {
            write!(f, " and {} more", Count(more as u64))?;
        }
        f.write_str("</p>\n")
    }

    fn found(&self, f: &mut String) -> fmt::Result {
        let counts = &self.summary.counts;
        section(f, "found", "What was found")?;
        self.in_words(f)?;
        let mut parts = vec![
            ("kept", counts.kept),
            ("exact", counts.dropped_exact),
            ("near", counts.dropped_near),
        ];
        let mut title = format!(
            "Kept {}, exact duplicates {}, near duplicates {}",
            percent(counts.kept, counts.read),
            percent(counts.dropped_exact, counts.read),
            percent(counts.dropped_near, counts.read)
        );
        if counts.dropped_known > 0 {
            parts.push(("known", counts.dropped_known));
            write!(
                title,
                ", held already {}",
                percent(counts.dropped_known, counts.read)
            )?;
        }
        if counts.dropped_empty > 0 {
            parts.push(("empty", counts.dropped_empty));
            write!(
                title,
                ", empty {}",
                percent(counts.dropped_empty, counts.read)
            )?;
        }
        if counts.dropped_filtered > 0 {
            parts.push(("filtered", counts.dropped_filtered));
            let share = percent(counts.dropped_filtered, counts.read);
            write!(title, ", rejected by the filter {share}")?;
        }
        if counts.dropped_superseded > 0 {
            parts.push(("superseded", counts.dropped_superseded));
            let share = percent(counts.dropped_superseded, counts.read);
            write!(title, ", superseded {share}")?;
        }
        plot::shares(f, &title, &parts)?;
        self.account(f)?;
        losses::put(f, self.summary)?;
        f.write_str("</section>\n")
    }

    fn in_words(&self, f: &mut String) -> fmt::Result {
        let counts = &self.summary.counts;
        write!(
            f,
            "<p class=\"lead\">Of {} read ({} of text), <strong>{} {} kept</strong>. ",
            counted(counts.read, "document", "documents"),
            bytes(counts.text_bytes),
            Count(counts.kept),
            if counts.kept == 1 { "was" } else { "were" }
        )?;
        if counts.dropped() > 0 {
            write!(
                f,
                "{} dropped: {} and {}{}{}{}{}. Each duplicate is itself similar to the document kept in \
                 its place. ",
                counted(counts.dropped(), "was", "were"),
                counted(counts.dropped_exact, "exact duplicate", "exact duplicates"),
                counted(counts.dropped_near, "near duplicate", "near duplicates"),
                match counts.dropped_known {
                    0 => String::new(),
                    n => format!(", and {} already in the index", Count(n)),
                },
                match counts.dropped_empty {
                    0 => String::new(),
                    n => format!(", and {} without text", Count(n)),
                },
                match counts.dropped_filtered {
                    0 => String::new(),
                    n => format!(", and {} rejected by the filter", Count(n)),
                },
                match counts.dropped_superseded {
                    0 => String::new(),
                    n => format!(", and {} fetched again later", Count(n)),
                }
            )?;
        }
        match counts.skipped.total {
            0 => f.write_str("No record was skipped.</p>\n"),
            n => writeln!(
                f,
                "{} skipped because they contain no document.</p>",
                counted(n, "record was", "records were")
            ),
        }
    }

    fn account(&self, f: &mut String) -> fmt::Result {
        let counts = &self.summary.counts;
        let (read, skipped) = (counts.read, counts.skipped.total);
        let records = read.saturating_add(skipped);
        f.write_str(
            "<table class=\"account\"><caption>Where every record went</caption><thead><tr>\
             <th scope=\"col\">Records</th><th scope=\"col\" class=\"n\">Number</th>\
             <th scope=\"col\" class=\"n\">Share</th></tr></thead><tbody>",
        )?;
        let mut row = |class: &str, name: &str, n: u64, whole: u64| {
            writeln!(
                f,
                "<tr class=\"{class}\"><th scope=\"row\">{}</th><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td></tr>",
                Text(&clip(name, MAX_VALUE)),
                Count(n),
                percent(n, whole)
            )
        };
        row("sum", "All records", records, records)?;
        row("in1", "Skipped", skipped, records)?;
        for (reason, &n) in &counts.skipped.by_reason {
            row("in2", reason, n, records)?;
        }
        row("in1 sum", "Documents read", read, records)?;
        row("in2 kept", "Kept", counts.kept, read)?;
        row(
            "in2 exact",
            "Dropped, exact duplicates",
            counts.dropped_exact,
            read,
        )?;
        row(
            "in2 near",
            "Dropped, near duplicates",
            counts.dropped_near,
            read,
        )?;
        if counts.dropped_known > 0 {
            row(
                "in2 known",
                "Already in the index",
                counts.dropped_known,
                read,
            )?;
        }
        if counts.dropped_empty > 0 {
            row("in2 empty", "Dropped, empty", counts.dropped_empty, read)?;
        }
        if counts.dropped_filtered > 0 {
            let n = counts.dropped_filtered;
            row("in2 filtered", "Dropped by the filter", n, read)?;
        }
        if counts.dropped_superseded > 0 {
            let n = counts.dropped_superseded;
            row("in2 superseded", "Superseded by a later version", n, read)?;
        }
        f.write_str("</tbody></table>\n")?;
        writeln!(
            f,
            "<p class=\"note\">Shares of kept and dropped are of the documents read. Among these, {} \
             empty and {} too short for shingles. Empty documents are never duplicates; \
             short ones only if exact.</p>",
            counted(counts.empty, "is", "are"),
            counted(counts.short, "is", "are")
        )
    }

    fn plots(&self, f: &mut String) -> fmt::Result {
        let counts = &self.summary.counts;
        section(f, "clusters", "Clusters")?;
        write!(
            f,
            "<p>{} compared as candidates. The run dropped documents from {}",
            counted(counts.candidates, "pair was", "pairs were"),
            counted(counts.clusters, "cluster", "clusters")
        )?;
        match counts.clusters {
            0 => f.write_str(".</p>\n")?,
            _ => writeln!(
                f,
                "; the largest has {}.</p>",
                Count(counts.largest_cluster)
            )?,
        }
        f.write_str(
            "<div class=\"plots\">\n<figure><figcaption>Cluster sizes, on logarithmic axes\
             </figcaption>",
        )?;
        if self.cluster_sizes.is_empty() {
            f.write_str("<p class=\"nothing\">There are no clusters to draw.</p>")?;
        } else {
            plot::cluster_sizes(f, self.cluster_sizes)?;
            self.size_table(f)?;
        }
        f.write_str("</figure>\n<figure><figcaption>Similarity of the pairs listed</figcaption>")?;
        if self.pairs.n_measured() == 0 {
            f.write_str("<p class=\"nothing\">There are no pairs with a similarity to draw.</p>")?;
        } else {
            plot::similarities(f, &self.pairs.histogram)?;
            self.similarity_table(f)?;
        }
        f.write_str("</figure>\n</div>\n")
    }

    /// Writes the values of the plot as a table, in powers of two.
    fn size_table(&self, f: &mut String) -> fmt::Result {
        let mut ranges: BTreeMap<u32, u64> = BTreeMap::new();
        for (size, count) in self.cluster_sizes {
            *ranges.entry(size.ilog2()).or_default() += count;
        }
        numbers(f, "Documents", "Clusters")?;
        for (power, count) in ranges {
            let (from, to) = (1_u64 << power, (2_u64 << power) - 1);
            let range = format!("{} to {}", Count(from), Count(to));
            write!(
                f,
                "<tr><th scope=\"row\">{range}</th><td class=\"n\">{}</td></tr>",
                Count(count)
            )?;
        }
        f.write_str("</tbody></table></details>")
    }

    fn similarity_table(&self, f: &mut String) -> fmt::Result {
        numbers(f, "Similarity", "Pairs")?;
        let bars = self.pairs.histogram.iter().enumerate();
        for (i, &count) in bars.filter(|(_, count)| **count > 0) {
            let range = match i + 1 == self.pairs.histogram.len() {
                true => "exactly 1".to_owned(),
                false => format!("{} to {}", plot::decimal(i), plot::decimal(i + 1)),
            };
            write!(
                f,
                "<tr><th scope=\"row\">{range}</th><td class=\"n\">{}</td></tr>",
                Count(count)
            )?;
        }
        f.write_str("</tbody></table></details>")
    }

    fn largest_clusters(&self, f: &mut String) -> fmt::Result {
        if self.clusters.is_empty() {
            return f.write_str("</section>\n");
        }
        f.write_str(
            "<h3>The largest clusters</h3>\n<p class=\"note\">A cluster is a kept document and the \
             documents dropped for it. Each table shows the kept document and a random sample of \
             the rest.</p>\n<div class=\"cards\">\n",
        )?;
        for (i, cluster) in self.clusters.iter().enumerate() {
            write!(
                f,
                "<article class=\"cluster\"><h4>{}. {}</h4>\n<table><thead><tr>\
                 <th scope=\"col\">Document</th><th scope=\"col\">Similarity</th>\
                 <th scope=\"col\">Decision</th></tr></thead><tbody>",
                i + 1,
                counted(cluster.size.into(), "document", "documents")
            )?;
            for doc in cluster.kept.iter().chain(cluster.members.winners()) {
                self.member(f, *doc)?;
            }
            f.write_str("</tbody></table></article>\n")?;
        }
        f.write_str("</div>\n</section>\n")
    }

    /// Writes the largest groups of versions, all of which are kept.
    fn versions(&self, f: &mut String) -> fmt::Result {
        if self.groups.is_empty() {
            return Ok(());
        }
        section(f, "versions", "Versions of the same content")?;
        let counts = &self.summary.counts;
        writeln!(
            f,
            "<p>{} in {} of two or more have the same content and differ too much to drop one: all \
             of them are kept. Each table shows the document that names the group and a random \
             sample of the others.</p>\n<div class=\"cards\">",
            counted(counts.versions, "kept document", "kept documents"),
            counted(counts.version_groups, "group", "groups"),
        )?;
        for (i, group) in self.groups.iter().enumerate() {
            writeln!(
                f,
                "<article class=\"cluster\"><h4>{}. {}</h4>\n<table><thead><tr>\
                 <th scope=\"col\">Document</th></tr></thead><tbody>",
                i + 1,
                counted(group.size.into(), "version", "versions")
            )?;
            for doc in group.kept.iter().chain(group.members.winners()) {
                f.write_str("<tr class=\"kept\"><td>")?;
                self.evidence.name(f, *doc)?;
                f.write_str("</td></tr>\n")?;
            }
            f.write_str("</tbody></table></article>\n")?;
        }
        f.write_str("</div>\n</section>\n")
    }

    fn member(&self, f: &mut String, doc: u64) -> fmt::Result {
        let detail = self.evidence.detail(doc);
        let kept = detail.is_some_and(|detail| detail.kept);
        write!(f, "<tr{}><td>", if kept { " class=\"kept\"" } else { "" })?;
        self.evidence.name(f, doc)?;
        f.write_str("</td><td>")?;
        match detail.and_then(|detail| detail.similarity) {
            Some(similarity) => write!(f, "{similarity:.3}")?,
            None => f.write_str("–")?,
        }
        f.write_str("</td><td>")?;
        match detail {
            Some(detail) if !detail.kept => {
                let rule = detail.rule.as_deref().unwrap_or("unknown");
                write!(f, "dropped by <code>{}</code>", Text(rule))?;
                if let Some(kept) = detail.kept_doc {
                    f.write_str(" for ")?;
                    self.evidence.short_name(f, kept)?;
                } else {
                    f.write_str(" for a document in the index")?;
                }
            }
            _ => f.write_str("kept")?,
        }
        f.write_str("</td></tr>\n")
    }

    fn share_by_site(&self, f: &mut String) -> fmt::Result {
        section(f, "sites", "Duplicates by site")?;
        if self.sites.is_empty() {
            return f.write_str(
                "<p class=\"nothing\">No document with a URL was dropped.</p></section>\n",
            );
        }
        f.write_str(
            "<p>Sites with the most dropped documents, and the share of each site's documents that \
             was dropped.</p>\n<table class=\"bars\"><thead><tr><th scope=\"col\">Site</th>\
             <th scope=\"col\" class=\"n\">Dropped</th><th scope=\"col\" class=\"n\">of</th>\
             <th scope=\"col\" class=\"n\">Share</th><td></td></tr></thead><tbody>",
        )?;
        for (site, tally) in self.sites {
            write!(
                f,
                "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td>",
                Text(&clip(site, 60)),
                Count(tally.dropped),
                Count(tally.documents),
                percent(tally.dropped, tally.documents)
            )?;
            plot::inline_bar(f, tally.dropped as f64 / tally.documents.max(1) as f64)?;
            f.write_str("</td></tr>\n")?;
        }
        f.write_str("</tbody></table>\n</section>\n")
    }

    fn sample_pairs(&self, f: &mut String) -> fmt::Result {
        section(f, "pairs", "Pairs, side by side")?;
        let mut levels = self.pairs.levels().peekable();
        if levels.peek().is_none() {
            return f.write_str("<p class=\"nothing\">There are no pairs to show.</p></section>\n");
        }
        f.write_str(
            "<p>A random sample of pairs from every similarity range. Text found in only one \
             document is <mark>marked</mark>; case, punctuation and whitespace are ignored.</p>\n",
        )?;
        if self.evidence.has_frames() {
            f.write_str(
                "<p><span class=\"frame\">Pale text with a dotted line</span> is frame: other \
                 pages of its site repeat it, so it counts less.</p>\n",
            )?;
        }
        for (level, count, pairs) in levels {
            level_heading(f, level, count)?;
            for pair in pairs {
                self.pair(f, pair)?;
            }
        }
        f.write_str("</section>\n")
    }

    fn pair(&self, f: &mut String, pair: &Pair) -> fmt::Result {
        write!(
            f,
            "<article class=\"pair\"><h4>Documents {} and {}</h4>\n<p class=\"scores\">",
            Count(pair.a),
            Count(pair.b)
        )?;
        if let Some(jaccard) = pair.jaccard {
            write!(f, "<span>Jaccard <b>{jaccard:.3}</b></span> ")?;
        }
        if let Some([weighted, unweighted]) = pair.content {
            write!(f, "<span>content <b>{weighted:.3}</b></span> ")?;
            write!(f, "<span>unweighted <b>{unweighted:.3}</b></span> ")?;
        }
        if let Some(b_sim) = pair.b_sim {
            write!(f, "<span>B-sim <b>{b_sim}</b> of 6</span> ")?;
        }
        if let Some(c_sim) = pair.c_sim {
            write!(f, "<span>C-sim <b>{c_sim}</b> of 384</span> ")?;
        }
        writeln!(
            f,
            "<span>rule <code>{}</code></span> <span>verified on {}</span></p>",
            Text(&pair.rule),
            match pair.verified.as_str() {
                "text" => "the texts",
                "sketch" => "sketches",
                _ => "nothing",
            }
        )?;
        self.evidence.compare(f, pair)?;
        f.write_str("</article>\n")
    }
}

/// Writes the start of a section.
pub(super) fn section(f: &mut String, id: &str, title: &str) -> fmt::Result {
    writeln!(
        f,
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{title}</h2>"
    )
}

fn level_heading(f: &mut String, level: ShownRange, count: u64) -> fmt::Result {
    writeln!(
        f,
        "<h3>Similarity {} <small>{}</small></h3>",
        level.name(),
        counted(count, "pair", "pairs")
    )
}

/// Writes the start of a table with the values of a plot.
fn numbers(f: &mut String, what: &str, of: &str) -> fmt::Result {
    write!(
        f,
        "<details><summary>Numbers</summary><table><thead><tr><th scope=\"col\">{what}</th>\
         <th scope=\"col\" class=\"n\">{of}</th></tr></thead><tbody>"
    )
}
