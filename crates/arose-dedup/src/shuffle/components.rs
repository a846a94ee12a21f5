//! Connected components of pairs, so that all pairs that affect each other are in one part. They
//! are found by rounds of large and small stars, or at once if all edges fit into one part. The
//! results contain only clusters.
//!
//! In a *large star*, every node connects its larger neighbours to the smallest node it knows. In a
//! *small star*, it connects its smaller neighbours and itself. Neither changes which nodes are
//! connected. After a number of rounds that grows with the logarithm of the nodes, every component
//! is a star around its smallest node, which further rounds do not change.

use arose::DocId;
use arose::cluster::Components;
use arose::mix::mix;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::spill::Scratch;
use super::wire::{Message, Sink};
use super::{Context, Step, kind};
use crate::Error;
use crate::record::Ordinal;
use crate::sorter::{Sorted, Sorter};
use crate::stage::cluster::Link;

/// A node and a neighbour of it, in the part of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Edge {
    pub(super) node: Ordinal,
    pub(super) other: Ordinal,
}

fn push_edge(
    context: &Context,
    node: Ordinal,
    other: Ordinal,
    out: &mut Sink,
) -> Result<(), Error> {
    let part = context.part_of(mix(node.into()));
    let edge = Edge { node, other };
    out.push(kind::EDGE, part, node.into(), &[bytemuck::bytes_of(&edge)])
}

fn push_both(context: &Context, a: Ordinal, b: Ordinal, out: &mut Sink) -> Result<(), Error> {
    push_edge(context, a, b, out)?;
    push_edge(context, b, a, out)
}

/// The step that turns pairs into edges.
pub(super) struct Edges(Context);

impl Edges {
    pub(super) fn new(context: Context) -> Self {
        Self(context)
    }
}

impl Step for Edges {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        for link in message.records::<Link>()? {
            push_both(&self.0, link.centre, link.other, out)?;
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// Gathers the edges of the current part.
pub(super) struct Nodes {
    scratch: Scratch,
    edges: Option<Sorter<Edge>>,
}

impl Nodes {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            scratch: Scratch::new(context),
            edges: None,
        }
    }

    pub(super) fn take(&mut self, message: &Message<'_>) -> Result<(), Error> {
        if self.edges.is_none() {
            self.edges = Some(self.scratch.sorter()?);
        }
        let edges = self.edges.as_mut().expect("just set");
        edges.extend(&message.records::<Edge>()?)
    }

    pub(super) fn end(&mut self) -> Result<InOrder, Error> {
        let sorted = self.edges.take().map(Sorter::finish).transpose()?;
        Ok(InOrder { sorted, last: None })
    }
}

/// Edges by node and neighbour, each once. The first edge of a node leads to its smallest
/// neighbour.
pub(super) struct InOrder {
    sorted: Option<Sorted<Edge>>,
    last: Option<Edge>,
}

impl InOrder {
    pub(super) fn next(&mut self) -> Result<Option<Edge>, Error> {
        let Some(sorted) = &mut self.sorted else {
            return Ok(None);
        };
        while let Some(edge) = sorted.next()? {
            if self.last.replace(edge) != Some(edge) {
                return Ok(Some(edge));
            }
        }
        Ok(None)
    }
}

type End = fn(&Context, InOrder, &mut Sink) -> Result<(), Error>;

/// A step over the edges of a part's nodes.
struct OfNodes {
    context: Context,
    nodes: Nodes,
    end: End,
}

fn of_nodes(context: Context, end: End) -> Box<dyn Step> {
    Box::new(OfNodes {
        nodes: Nodes::new(&context),
        context,
        end,
    })
}

impl Step for OfNodes {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.nodes.take(message)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        (self.end)(&self.context, self.nodes.end()?, out)
    }
}

/// The step that has all edges and turns them into stars. The driver ensures that there are few.
pub(super) fn whole(context: Context) -> Box<dyn Step> {
    of_nodes(context, |context, mut in_order, out| {
        let mut edges = Vec::new();
        while let Some(edge) = in_order.next()? {
            edges.push(edge);
        }
        let mut nodes: Vec<Ordinal> = edges.iter().map(|edge| edge.node).collect();
        nodes.dedup();
        let components = Components::new(nodes.len())?;
        for (node, edges) in (0..).zip(edges.chunk_by(|a, b| a.node == b.node)) {
            // Both nodes of an edge have it. That of the larger one is sufficient.
            for edge in edges.iter().take_while(|edge| edge.other < edge.node) {
                let other = nodes.partition_point(|node| *node < edge.other);
                components.union(DocId(node), DocId(other as u64))?;
            }
        }
        for (&node, label) in nodes.iter().zip(components.labels()) {
            let least = nodes[label.0 as usize];
            if least < node {
                push_both(context, node, least, out)?;
            }
        }
        Ok(())
    })
}

/// A node while its neighbours are processed.
struct Star {
    node: Ordinal,
    /// The smallest of the node and its neighbours.
    least: Ordinal,
    n_smaller: u64,
    n_larger: u64,
}

impl Star {
    /// In a star, a node is the centre or a leaf of it.
    fn is_settled(&self) -> bool {
        self.n_smaller == 0 || (self.n_smaller == 1 && self.n_larger == 0)
    }
}

/// The first half of a round.
pub(super) fn large_star(context: Context) -> Box<dyn Step> {
    of_nodes(context, |context, mut edges, out| {
        let mut n_unsettled = 0_u64;
        let mut star: Option<Star> = None;
        while let Some(edge) = edges.next()? {
            let star = match &mut star {
                Some(star) if star.node == edge.node => star,
                last => {
                    let is_settled = last.as_ref().is_none_or(Star::is_settled);
                    n_unsettled += u64::from(!is_settled);
                    last.insert(Star {
                        node: edge.node,
                        least: edge.other.min(edge.node),
                        n_smaller: 0,
                        n_larger: 0,
                    })
                }
            };
            if edge.other < edge.node {
                star.n_smaller += 1;
            } else {
                star.n_larger += 1;
                push_edge(context, edge.other, star.least, out)?;
            }
        }
        n_unsettled += u64::from(star.is_some_and(|star| !star.is_settled()));
        out.note(&json!({ "unsettled": n_unsettled }))
    })
}

/// The second half of a round.
pub(super) fn small_star(context: Context) -> Box<dyn Step> {
    of_nodes(context, |context, mut edges, out| {
        // All neighbours are smaller, since they come from a large star.
        let mut last: Option<Edge> = None;
        while let Some(edge) = edges.next()? {
            match last {
                Some(first) if first.node == edge.node => {
                    push_both(context, edge.other, first.other, out)?;
                }
                _ => {
                    push_both(context, edge.node, edge.other, out)?;
                    last = Some(edge);
                }
            }
        }
        Ok(())
    })
}
