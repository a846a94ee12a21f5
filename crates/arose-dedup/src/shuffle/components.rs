//! Components of pairs, which bring those together that decide about each other: by rounds of large
//! and small stars, or at once if all edges fit one part. Results know clusters only.
//!
//! In a *large star* every node ties its larger neighbours to the smallest node it knows, in a
//! *small star* its smaller ones and itself. Neither changes what is connected, and after a number
//! of rounds that grows with the logarithm of the nodes every component is a star around its
//! smallest node, which no round changes any more.

use arose::DocId;
use arose::cluster::Components;
use arose::mix::mix;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::wire::{Message, Sink};
use super::{Context, Step, kind};
use crate::Error;
use crate::record::Ordinal;
use crate::stage::cluster::Link;

/// A node and a neighbour of it, in the part of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Edge {
    pub(super) node: Ordinal,
    pub(super) other: Ordinal,
}

fn push_edge(context: &Context, node: Ordinal, other: Ordinal, out: &mut Sink) {
    let part = context.part_of(mix(node.into()));
    let edge = Edge { node, other };
    out.push(kind::EDGE, part, node.into(), &[bytemuck::bytes_of(&edge)]);
}

fn push_both(context: &Context, a: Ordinal, b: Ordinal, out: &mut Sink) {
    push_edge(context, a, b, out);
    push_edge(context, b, a, out);
}

/// The step that makes edges of pairs.
pub(super) struct Edges(Context);

impl Edges {
    pub(super) fn new(context: Context) -> Self {
        Self(context)
    }
}

impl Step for Edges {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        for link in message.records::<Link>()? {
            push_both(&self.0, link.centre, link.other, out);
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// Edges of the current part, each once, by node.
#[derive(Default)]
pub(super) struct Nodes(Vec<Edge>);

impl Nodes {
    pub(super) fn take(&mut self, message: &Message<'_>) -> Result<(), Error> {
        self.0.extend(message.records::<Edge>()?);
        Ok(())
    }

    pub(super) fn end(&mut self) -> Vec<Edge> {
        let mut edges = std::mem::take(&mut self.0);
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}

/// A step over the edges of a part's nodes.
struct OfNodes {
    context: Context,
    nodes: Nodes,
    end: fn(&Context, &[Edge], &mut Sink) -> Result<(), Error>,
}

fn of_nodes(
    context: Context,
    end: fn(&Context, &[Edge], &mut Sink) -> Result<(), Error>,
) -> Box<dyn Step> {
    Box::new(OfNodes {
        context,
        nodes: Nodes::default(),
        end,
    })
}

impl Step for OfNodes {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.nodes.take(message)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        (self.end)(&self.context, &self.nodes.end(), out)
    }
}

/// The step that has all edges, and makes stars of them.
pub(super) fn whole(context: Context) -> Box<dyn Step> {
    of_nodes(context, |context, edges, out| {
        let mut nodes: Vec<Ordinal> = edges.iter().map(|edge| edge.node).collect();
        nodes.dedup();
        let components = Components::new(nodes.len())?;
        for (node, edges) in (0..).zip(edges.chunk_by(|a, b| a.node == b.node)) {
            // Both nodes of an edge have it; that of the larger one is enough.
            for edge in edges.iter().take_while(|edge| edge.other < edge.node) {
                let other = nodes.partition_point(|node| *node < edge.other);
                components.union(DocId(node), DocId(other as u64))?;
            }
        }
        for (&node, label) in nodes.iter().zip(components.labels()) {
            let least = nodes[label.0 as usize];
            if least < node {
                push_both(context, node, least, out);
            }
        }
        Ok(())
    })
}

/// The first half of a round.
pub(super) fn large_star(context: Context) -> Box<dyn Step> {
    of_nodes(context, |context, edges, out| {
        let mut n_unsettled = 0;
        for edges in edges.chunk_by(|a, b| a.node == b.node) {
            let node = edges[0].node;
            let n_smaller = edges.partition_point(|edge| edge.other < node);
            let larger = &edges[n_smaller..];
            let least = edges[0].other.min(node);
            for edge in larger {
                push_edge(context, edge.other, least, out);
            }
            // In a star a node is the centre, or a leaf of it.
            let is_settled = n_smaller == 0 || (n_smaller == 1 && larger.is_empty());
            n_unsettled += u64::from(!is_settled);
        }
        out.note(&json!({ "unsettled": n_unsettled }));
        Ok(())
    })
}

/// The second half of a round.
pub(super) fn small_star(context: Context) -> Box<dyn Step> {
    of_nodes(context, |context, edges, out| {
        // All neighbours are smaller: they come from a large star.
        for edges in edges.chunk_by(|a, b| a.node == b.node) {
            let least = edges[0].other;
            for edge in &edges[1..] {
                push_both(context, edge.other, least, out);
            }
            push_both(context, edges[0].node, least, out);
        }
        Ok(())
    })
}
