//! What the index holds of a document.

use tantivy::Index;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TextAnalyzer;

use crate::words::{self, Words};

/// The fields of the index, by what they are for.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// Words of title and text, with positions.
    pub(crate) body: Field,
    /// Words of the title.
    pub(crate) title_words: Field,
    /// Words of the address.
    pub(crate) url_words: Field,
    /// The host and each domain it is in.
    pub(crate) site: Field,
    /// The language and what it is a kind of.
    pub(crate) language: Field,
    /// The ordinal of the document.
    pub(crate) doc: Field,
    /// The ordinal of its cluster.
    pub(crate) cluster: Field,
    /// Where it stands in its cluster; see [`crate::columns::Group`].
    pub(crate) group: Field,
    /// When it was fetched.
    pub(crate) time: Field,
    /// What is known of it, in 64 bits: if these are the same, nothing has changed.
    pub(crate) row: Field,
    /// For showing.
    pub(crate) id: Field,
    /// For showing.
    pub(crate) url: Field,
    /// For showing.
    pub(crate) title: Field,
    /// For showing.
    pub(crate) text: Field,
    /// For showing.
    pub(crate) stated_language: Field,
}

/// The names of the columns.
pub(crate) const DOC: &str = "doc";
pub(crate) const CLUSTER: &str = "cluster";
pub(crate) const GROUP: &str = "group";
pub(crate) const TIME: &str = "time";
pub(crate) const ROW: &str = "row";

impl Fields {
    /// The layout of an index.
    pub(crate) fn schema() -> Schema {
        Self::build().0
    }

    pub(crate) fn new() -> Self {
        Self::build().1
    }

    fn build() -> (Schema, Self) {
        let words = |record| {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(words::NAME)
                .set_index_option(record);
            TextOptions::default().set_indexing_options(indexing)
        };
        let positions = || words(IndexRecordOption::WithFreqsAndPositions);
        let mut schema = Schema::builder();
        let fields = Self {
            body: schema.add_text_field("body", positions()),
            title_words: schema.add_text_field("title_words", positions()),
            url_words: schema.add_text_field("url_words", positions()),
            site: schema.add_text_field("site", STRING),
            language: schema.add_text_field("language", STRING),
            doc: schema.add_u64_field(DOC, FAST | INDEXED),
            cluster: schema.add_u64_field(CLUSTER, FAST | INDEXED),
            group: schema.add_u64_field(GROUP, FAST),
            time: schema.add_i64_field(TIME, FAST),
            row: schema.add_u64_field(ROW, FAST | INDEXED),
            id: schema.add_text_field("id", STORED),
            url: schema.add_text_field("url", STORED),
            title: schema.add_text_field("title", STORED),
            text: schema.add_text_field("text", STORED),
            stated_language: schema.add_text_field("stated_language", STORED),
        };
        (schema.build(), fields)
    }
}

/// Teaches an index how texts are cut.
pub(crate) fn register(index: &Index) {
    let analyzer = TextAnalyzer::from(Words::default());
    index.tokenizers().register(words::NAME, analyzer);
}
