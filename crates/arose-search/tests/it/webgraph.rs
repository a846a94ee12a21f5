//! Walks on a real web graph, cut to its first pages so that the test is quick.

use std::path::Path;

use arose_search::estimate::graph::{Form, Graph};
use arose_search::estimate::walk::{Direction, Measure, Settings, run};

/// Pages kept; their numbers follow the order of addresses, so these are whole sites.
const N_PAGES: usize = 30_000;

#[expect(clippy::print_stdout, reason = "a skipped test must say so")]
fn graph() -> Option<Graph> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/webgraph-cnr2000/adjacency.txt.zst");
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    let mut graph = Graph::open(&path, Form::Gaps).unwrap();
    assert_eq!(graph.links.len(), 325_557);
    assert_eq!(graph.links.iter().map(Vec::len).sum::<usize>(), 3_216_152);
    graph.links.truncate(N_PAGES);
    graph.hosts.truncate(N_PAGES);
    for own in &mut graph.links {
        own.retain(|&target| target < N_PAGES);
    }
    Some(graph)
}

fn settings(n_steps: usize) -> Settings {
    Settings {
        n_walks: 5,
        n_steps,
        seeds: Vec::new(),
        measures: vec![Measure::InDegree(5), Measure::OutDegree(20)],
        direction: Direction::Forwards,
        seed: 1,
    }
}

#[test]
fn corrected_shares_are_those_of_the_reachable_pages() {
    let Some(graph) = graph() else {
        return;
    };
    let findings = run(&graph, &settings(600_000)).unwrap();
    for figure in &findings.figures {
        let (value, truth) = (figure.value.unwrap(), figure.truth.unwrap());
        assert!((value - truth).abs() <= 0.01, "{figure:?}");
        assert!(
            figure
                .notes
                .iter()
                .any(|note| note.starts_with("R-hat 1.0")),
            "{figure:?}"
        );
    }
    assert_eq!(findings.doubts, [""; 0]);
}

#[test]
fn a_short_walk_says_so() {
    let Some(graph) = graph() else {
        return;
    };
    let findings = run(&graph, &settings(3000)).unwrap();
    let said = findings.doubts.join("\n");
    assert!(said.contains("walk longer"), "{said}");
}

/// Both ways, pages come by their number of links, and no jump is needed.
#[test]
fn both_ways() {
    let Some(graph) = graph() else {
        return;
    };
    let settings = Settings {
        direction: Direction::BothWays,
        ..settings(300_000)
    };
    let findings = run(&graph, &settings).unwrap();
    let figure = &findings.figures[0];
    let (value, truth) = (figure.value.unwrap(), figure.truth.unwrap());
    assert!((value - truth).abs() <= 0.1, "{figure:?}");
}
