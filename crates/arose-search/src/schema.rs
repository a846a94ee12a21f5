//! The schema of the index.

use tantivy::Index;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TextAnalyzer;

use crate::words::{self, Words};

/// The fields of the index, by purpose.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// Words of title and text, with positions.
    pub(crate) body: Field,
    /// Words of the title.
    pub(crate) title_words: Field,
    /// Words of the URL.
    pub(crate) url_words: Field,
    /// The host and every domain that contains it.
    pub(crate) domain: Field,
    /// The language and its base language.
    pub(crate) language: Field,
    /// The ordinal of the document.
    pub(crate) doc: Field,
    /// The ordinal of the kept document of its cluster.
    pub(crate) cluster: Field,
    /// The ordinal of the kept document that its versions are grouped under.
    pub(crate) group: Field,
    /// 1 if the document is kept, otherwise 0.
    pub(crate) kept: Field,
    /// 1 if the document is an exact duplicate of the kept one, otherwise 0.
    pub(crate) exact: Field,
    /// When it was fetched.
    pub(crate) time: Field,
    /// Its site, for counts.
    pub(crate) site: Field,
    /// Its language without the region, for counts.
    pub(crate) main_language: Field,
    /// A hash of all its data: if it is the same, nothing has changed.
    pub(crate) row: Field,
    /// Key that identifies it before it is read; see [`crate::rows`].
    pub(crate) key: Field,
    /// A hash of its URL, by which captures of a page are compared; see [`crate::current`].
    pub(crate) page: Field,
    /// The key of the capture whose text it has.
    pub(crate) version: Field,
    /// When it was fetched, even if its text is unknown.
    pub(crate) fetched: Field,
    /// For display.
    pub(crate) id: Field,
    /// For display.
    pub(crate) url: Field,
    /// For display.
    pub(crate) title: Field,
    /// For display.
    pub(crate) text: Field,
    /// For display.
    pub(crate) stated_language: Field,
    /// The file it was read from.
    pub(crate) source: Field,
    /// The position in that file.
    pub(crate) position: Field,
    /// The ordinal of the document that this one shares its text with, where the text is stored.
    pub(crate) original: Field,
}

/// The names of the columns.
pub(crate) const DOC: &str = "doc";
pub(crate) const CLUSTER: &str = "cluster";
pub(crate) const GROUP: &str = "group";
pub(crate) const KEPT: &str = "kept";
pub(crate) const EXACT: &str = "exact";
pub(crate) const TIME: &str = "time";
pub(crate) const SITE: &str = "site";
pub(crate) const MAIN_LANGUAGE: &str = "main_language";
pub(crate) const ROW: &str = "row";
pub(crate) const KEY: &str = "key";
pub(crate) const PAGE: &str = "page";
pub(crate) const VERSION: &str = "version";
pub(crate) const FETCHED: &str = "fetched";

impl Fields {
    /// The schema of an index.
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
        let column = || TextOptions::default() | FAST;
        let mut schema = Schema::builder();
        let fields = Self {
            body: schema.add_text_field("body", positions()),
            title_words: schema.add_text_field("title_words", positions()),
            url_words: schema.add_text_field("url_words", positions()),
            domain: schema.add_text_field("domain", STRING),
            language: schema.add_text_field("language", STRING),
            doc: schema.add_u64_field(DOC, FAST | INDEXED),
            cluster: schema.add_u64_field(CLUSTER, FAST | INDEXED),
            group: schema.add_u64_field(GROUP, FAST | INDEXED),
            kept: schema.add_u64_field(KEPT, FAST | INDEXED),
            exact: schema.add_u64_field(EXACT, FAST),
            time: schema.add_i64_field(TIME, FAST),
            site: schema.add_text_field(SITE, column()),
            main_language: schema.add_text_field(MAIN_LANGUAGE, column()),
            row: schema.add_u64_field(ROW, FAST | INDEXED),
            key: schema.add_u64_field(KEY, FAST),
            page: schema.add_u64_field(PAGE, FAST),
            version: schema.add_u64_field(VERSION, FAST),
            fetched: schema.add_i64_field(FETCHED, FAST),
            id: schema.add_text_field("id", STORED),
            url: schema.add_text_field("url", STORED),
            title: schema.add_text_field("title", STORED),
            text: schema.add_text_field("text", STORED),
            stated_language: schema.add_text_field("stated_language", STORED),
            source: schema.add_text_field("source", STORED),
            position: schema.add_text_field("position", STORED),
            original: schema.add_u64_field("original", STORED),
        };
        (schema.build(), fields)
    }
}

/// Registers the tokenizer of texts with an index.
pub(crate) fn register(index: &Index) {
    let analyzer = TextAnalyzer::from(Words::default());
    index.tokenizers().register(words::NAME, analyzer);
}
