//! The rival: tantivy on its own, with its index in memory.

use super::corpus::Corpus;
use super::{SHOWN, ShownDocument};
use anyhow::Context;
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{Field, STORED, STRING, Schema, TEXT, Value};
use tantivy::{Index, IndexReader, TantivyDocument};

/// How much its writer may take.
const WRITER: usize = 50_000_000;

/// An index of all pages.
pub(super) struct TheirSearch {
    reader: IndexReader,
    parser: QueryParser,
    path: Field,
    content: Field,
}

impl TheirSearch {
    /// Indexes all pages.
    pub(super) fn of(corpus: &Corpus) -> anyhow::Result<TheirSearch> {
        let mut schema = Schema::builder();
        let path = schema.add_text_field("path", STRING | STORED);
        let words_of_path = schema.add_text_field("words_of_path", TEXT);
        let title = schema.add_text_field("title", TEXT | STORED);
        let tags = schema.add_text_field("tags", TEXT | STORED);
        let content = schema.add_text_field("content", TEXT | STORED);
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, WRITER)?;
        for page in &corpus.pages {
            let mut document = TantivyDocument::default();
            document.add_text(path, &page.path);
            document.add_text(words_of_path, &page.path);
            document.add_text(title, &page.title);
            page.tags.iter().for_each(|tag| document.add_text(tags, tag));
            document.add_text(content, &page.content);
            writer.add_document(document)?;
        }
        writer.commit()?;
        let mut parser = QueryParser::for_index(&index, vec![title, tags, words_of_path, content]);
        for (field, weight) in [(title, 3.0), (tags, 2.0), (words_of_path, 2.0), (content, 1.0)] {
            parser.set_field_boost(field, weight);
        }
        Ok(TheirSearch { reader: index.reader()?, parser, path, content })
    }

    /// Its best documents, with the text they were stored with.
    pub(super) fn search(&self, question: &str) -> anyhow::Result<Vec<ShownDocument>> {
        let searcher = self.reader.searcher();
        let (query, _) = self.parser.parse_query_lenient(question);
        let best = searcher.search(&query, &TopDocs::with_limit(SHOWN).order_by_score())?;
        best.into_iter()
            .map(|(_, address)| {
                let document: TantivyDocument = searcher.doc(address)?;
                let text = |field| {
                    let value = document.get_first(field).and_then(|value| value.as_str().map(str::to_owned));
                    value.context("a stored text is missing")
                };
                Ok(ShownDocument { path: text(self.path)?, text: text(self.content)? })
            })
            .collect()
    }
}
