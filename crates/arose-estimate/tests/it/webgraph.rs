//! Tests of walks on a real web graph: 325,557 pages and 3,216,152 links.

use std::path::Path;

use arose::estimate::links::Links;
use arose::estimate::normal::student_quantile;
use arose_estimate::Figure;
use arose_estimate::graph::{Form, Graph};
use arose_estimate::walk::{Direction, GraphMeasure, WalkSettings, run};

/// In-degrees at which the distribution is compared.
const DEGREES: [u64; 9] = [1, 2, 3, 5, 10, 20, 50, 100, 500];

#[expect(clippy::print_stdout, reason = "a skipped test must say so")]
fn graph() -> Option<Graph> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/webgraph-cnr2000/adjacency.txt.zst");
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    let graph = Graph::open(&path, Form::Gaps).unwrap();
    assert_eq!(graph.links.n_pages(), 325_557);
    assert_eq!(graph.links.n_links(), 3_216_152);
    Some(graph)
}

/// The first pages of the graph. Numbers follow the order of URLs, so these are complete sites.
fn first_pages(graph: &Graph, n: u32) -> Graph {
    let rows = graph.links.rows().take(n as usize);
    let cut = |row: &[u32]| -> Vec<u32> { row.iter().copied().filter(|&to| to < n).collect() };
    Graph {
        links: rows.map(cut).collect::<Links>(),
        hosts: (0..n).collect(),
        names: Vec::new(),
    }
}

fn settings(n_steps: usize) -> WalkSettings {
    WalkSettings {
        n_walks: 5,
        n_steps,
        seeds: Vec::new(),
        measures: DEGREES.map(GraphMeasure::InDegree).to_vec(),
        direction: Direction::Forwards,
        n_drawn: 0,
        seed: 1,
    }
}

fn error(figure: &Figure) -> f64 {
    figure.value.unwrap() - figure.truth.unwrap()
}

/// Sixteen million steps each, fifty per page. The distribution of in-degrees is within 0.01 of
/// that of the reachable pages, since the walks agree and know nearly all pages.
#[test]
fn the_distribution_of_in_degrees() {
    let Some(graph) = graph() else {
        return;
    };
    let mut settings = settings(16_000_000);
    settings.measures.push(GraphMeasure::OutDegree(20));
    let findings = run(&graph, &settings).unwrap().findings;
    for figure in &findings.figures {
        assert!(error(figure).abs() <= 0.01, "{figure:?}");
        let is_always = figure.truth == Some(1.0);
        let has_converged = |note: &String| note.starts_with("R-hat 1.0");
        assert!(
            is_always || figure.notes.iter().any(has_converged),
            "{figure:?}"
        );
    }
    // Without correction the walk is far off: most visits are to pages with many links.
    let popular = &findings.figures[3];
    let raw: f64 = popular
        .notes
        .iter()
        .find_map(|note| note.strip_suffix(" uncorrected"))
        .unwrap()
        .parse()
        .unwrap();
    assert!(raw > popular.truth.unwrap() + 0.2, "{popular:?}");
    assert_eq!(findings.warnings, [""; 0]);
}

#[test]
fn a_short_walk_says_so() {
    let Some(graph) = graph() else {
        return;
    };
    let findings = run(&graph, &settings(100_000)).unwrap().findings;
    let said = findings.warnings.join("\n");
    assert!(said.contains("walk longer"), "{said}");
}

/// In both directions, visits are proportional to the number of links, and no jump is needed.
/// Without jumps, a walk leaves a site only by the few links that lead out of it, so many steps are
/// worth one. The shares must be within four standard errors; the interval over ten walks has 2.26
/// on each side.
#[test]
fn both_ways() {
    let Some(graph) = graph() else {
        return;
    };
    let settings = WalkSettings {
        n_walks: 10,
        direction: Direction::BothWays,
        ..settings(20_000_000)
    };
    let findings = run(&first_pages(&graph, 30_000), &settings)
        .unwrap()
        .findings;
    let varies = |figure: &&Figure| figure.truth.is_some_and(|truth| 0.0 < truth && truth < 1.0);
    assert!(findings.figures.iter().filter(varies).count() >= 6);
    for figure in findings.figures.iter().filter(varies) {
        let [low, high] = figure.interval.unwrap();
        let standard_error = (high - low) / (2.0 * student_quantile(0.975, 9));
        assert!(error(figure).abs() <= 4.0 * standard_error, "{figure:?}");
        assert!(standard_error < 0.005, "{figure:?}");
    }
}
