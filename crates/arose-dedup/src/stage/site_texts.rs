//! The texts of all documents in blocks, for the stage that counts repeated text of sites.

use std::ops::Range;
use std::path::Path;

use bytemuck::Zeroable;

use crate::Error;
use crate::column::{Column, Scan};
use crate::dictionary::TokenColumn;
use crate::record::{DocRecord, Ordinal};
use crate::stage::columns::{DOCS, SITES};

/// Number of tokens of documents that a thread processes at once.
const BLOCK_TOKENS: u64 = 1 << 17;

/// The texts of all documents in blocks.
pub(super) struct Texts {
    records: Column<DocRecord>,
    sites: Column<u64>,
    tokens: TokenColumn,
    docs: Scan<DocRecord>,
    /// The next document, already read.
    next: Option<DocRecord>,
    doc: Ordinal,
}

/// Blocks of documents in order.
pub(super) struct Blocks {
    pub(super) blocks: Vec<Block>,
    pub(super) end: Ordinal,
}

impl Blocks {
    pub(super) fn n_docs(&self) -> u64 {
        let lengths = self.blocks.iter().map(|block| block.docs.len() as u64);
        lengths.sum()
    }
}

/// Consecutive documents.
pub(super) struct Block {
    pub(super) docs: Range<Ordinal>,
}

/// The tokens and sites of a block.
pub(super) struct BlockText {
    start: Ordinal,
    records: Vec<DocRecord>,
    sites: Vec<u64>,
    tokens: Vec<u64>,
    /// The end of the tokens of each document.
    ends: Vec<usize>,
}

impl BlockText {
    pub(super) fn tokens(&self, doc: Ordinal) -> &[u64] {
        let place = (doc - self.start) as usize;
        let n_tokens = self.records[place].n_tokens as usize;
        &self.tokens[self.ends[place] - n_tokens..self.ends[place]]
    }

    pub(super) fn tokens_at(&self, doc: Ordinal) -> u64 {
        self.records[(doc - self.start) as usize].tokens_at
    }

    pub(super) fn site(&self, doc: Ordinal) -> u64 {
        self.sites[(doc - self.start) as usize]
    }
}

impl Texts {
    pub(super) fn open(read: &Path) -> Result<Self, Error> {
        let mut docs = Scan::open(&read.join(DOCS))?;
        Ok(Self {
            records: Column::open(&read.join(DOCS), 0)?,
            sites: Column::open(&read.join(SITES), 0)?,
            tokens: TokenColumn::open(read)?,
            next: docs.next()?,
            docs,
            doc: 0,
        })
    }

    /// Returns the next blocks, two for each thread; none at the end.
    pub(super) fn next_blocks(&mut self) -> Result<Option<Blocks>, Error> {
        let n_blocks = 2 * rayon::current_num_threads();
        let mut blocks = Vec::with_capacity(n_blocks);
        while blocks.len() < n_blocks && self.next.is_some() {
            let start = self.doc;
            let mut n_tokens = 0;
            while let Some(record) = self.next
                && n_tokens < BLOCK_TOKENS
                && (self.doc - start) < BLOCK_TOKENS as Ordinal
            {
                n_tokens += u64::from(record.n_tokens);
                self.next = self.docs.next()?;
                self.doc += 1;
            }
            blocks.push(Block {
                docs: start..self.doc,
            });
        }
        let end = self.doc;
        Ok((!blocks.is_empty()).then_some(Blocks { blocks, end }))
    }

    pub(super) fn load(&self, block: &Block) -> Result<BlockText, Error> {
        let (start, n) = (block.docs.start, block.docs.len());
        let mut text = BlockText {
            start,
            records: vec![DocRecord::zeroed(); n],
            sites: vec![0; n],
            tokens: Vec::new(),
            ends: Vec::with_capacity(n),
        };
        self.records.read_into(start.into(), &mut text.records)?;
        self.sites.read_into(start.into(), &mut text.sites)?;
        let n_tokens = text.records.iter().map(|record| record.n_tokens as usize);
        text.tokens.reserve_exact(n_tokens.sum());
        for record in &text.records {
            self.tokens.read(&record.tokens(), &mut text.tokens)?;
            text.ends.push(text.tokens.len());
        }
        Ok(text)
    }
}
