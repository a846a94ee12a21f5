//! The correlation of B-sim and C-sim, as text and as JSON.

use std::io::{self, Write};

use arose::judgement::Correlation;
use serde_json::{Value, json};

use super::share;

/// Writes a table by B-sim, and the counts of similar pairs by each score.
pub(super) fn write(out: &mut impl Write, correlation: &Correlation) -> io::Result<()> {
    writeln!(out, "\n  B-sim      pairs  mean C-sim")?;
    for b_sim in 0..=6 {
        let mean = correlation.mean_c_sim(b_sim);
        let mean = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
        let n_pairs = correlation.n_pairs(b_sim);
        writeln!(out, "  {b_sim:<5}  {n_pairs:>9}  {mean:>10}")?;
    }
    let coefficient = share(correlation.coefficient());
    writeln!(out, "  correlation of B-sim and C-sim: {coefficient}")?;
    writeln!(
        out,
        "  B-similar pairs: {}, also C-similar: {}",
        correlation.n_b_similar(),
        correlation.n_both_similar()
    )?;
    writeln!(
        out,
        "  C-similar pairs: {}, also B-similar: {}, with B-sim 0: {}",
        correlation.n_c_similar(),
        correlation.n_both_similar(),
        correlation.n_c_alone()
    )
}

pub(super) fn as_json(correlation: &Correlation) -> Value {
    let rows = (0..=6).map(|b_sim| {
        json!({
            "b_sim": b_sim,
            "pairs": correlation.n_pairs(b_sim),
            "mean_c_sim": correlation.mean_c_sim(b_sim),
        })
    });
    json!({
        "coefficient": correlation.coefficient(),
        "by_b_sim": rows.collect::<Vec<_>>(),
        "b_similar": correlation.n_b_similar(),
        "c_similar": correlation.n_c_similar(),
        "both_similar": correlation.n_both_similar(),
        "c_similar_with_b_sim_0": correlation.n_c_alone(),
    })
}
