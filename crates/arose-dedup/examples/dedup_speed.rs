//! Times the stages of a run: `dedup_speed INPUT OUT POLICY THREADS [MEMORY_MIB [ids]]`.
//!
//! Uses the visible text of web pages, and lists all pairs if `AROSE_ALL_PAIRS` is set. With `ids`,
//! kept documents are listed, not copied.
//!
//! In place of a policy, `passages` searches for repeated passages; `line` and `sentence` remove
//! the later ones of lines, or of three sentences.

use std::path::{Path, PathBuf};

use arose::passage::Unit;
use arose::rule::{Criterion, Remove};
use arose_dedup::passages::{self, PassagesConfig};
use arose_dedup::{Config, KeptAs, Progress, Start, run};
use serde_json::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, out, policy, threads, more @ ..] = &args[..] else {
        return Err("arguments: INPUT OUT POLICY THREADS [MEMORY_MIB [ids]]".into());
    };
    let mut config = Config::default();
    let searched = match policy.as_str() {
        "passages" => Some(PassagesConfig::default()),
        "line" => Some(units(Unit::Line)),
        "sentence" => Some(units(Unit::Sentence)),
        _ => None,
    };
    if let Some(mut config) = searched {
        config.corpus.threads = threads.parse()?;
        if let Some(mebibytes) = more.first() {
            config.memory = mebibytes.parse::<u64>()? << 20;
        }
        let inputs = [PathBuf::from(input)];
        let progress = Progress::default();
        let summary = passages::run(&inputs, &config, Path::new(out), Start::Anew, &progress)?;
        print(&summary);
        return Ok(());
    }
    match policy.as_str() {
        "content" => config.policy.criterion = Criterion::Content(Remove::Same),
        "jaccard" => config.policy.criterion = Criterion::Jaccard(arose::Threshold::new(0.8)?),
        _ => return Err("policies: content, jaccard".into()),
    }
    config.corpus.threads = threads.parse()?;
    config.corpus.html.mode = arose_corpus::html::Mode::Visible;
    if let Some(mebibytes) = more.first() {
        config.memory = mebibytes.parse::<u64>()? << 20;
    }
    if more.get(1).is_some_and(|kept| kept == "ids") {
        config.output.kept = KeptAs::Ids;
    }
    if std::env::var_os("AROSE_ALL_PAIRS").is_some() {
        config.pairs = arose_dedup::ListedPairs::All;
    }
    let inputs = [PathBuf::from(input)];
    let summary = run(
        &inputs,
        &config,
        Path::new(out),
        Start::Anew,
        &Progress::default(),
    )?;
    print(&summary);
    Ok(())
}

/// Settings as of `arose passages --unit UNIT --remove later`.
fn units(unit: Unit) -> PassagesConfig {
    let (min, min_words) = match unit {
        Unit::Sentence => (3, 0),
        Unit::Line | Unit::Paragraph => (1, 10),
    };
    PassagesConfig {
        text: passages::TextElements::Units {
            unit,
            min_words,
            digits: passages::Digits::Keep,
        },
        min,
        remove: Some(passages::Remove::default()),
        ..PassagesConfig::default()
    }
}

#[expect(clippy::print_stdout, reason = "an example")]
fn print(summary: &Value) {
    for stage in summary["stages"].as_array().into_iter().flatten() {
        println!("{stage}");
    }
    println!("{}", summary["counts"]);
    println!("{}", summary["peak_memory_bytes"]);
}
