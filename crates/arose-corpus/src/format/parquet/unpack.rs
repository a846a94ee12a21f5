//! Reads a row group and limits each page to the decompressed size that its header declares.
//!
//! The Parquet library lets gzip and Brotli write as much as the compressed bytes give, and
//! compares the size afterwards. This module declares pages of these codecs as uncompressed, so the
//! library returns them unchanged. [`Unpacked`] then decodes each page once, into memory of the
//! size that [`pages`] has checked. For other codecs, the library itself bounds the pages.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use flate2::read::MultiGzDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, RowGroups, RowSelection,
};
use parquet::arrow::parquet_to_arrow_field_levels;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use super::lists::Lists;
use super::pages::{self, Checked, Values};
use crate::config::Limits;
use crate::document::Reason;

/// Why a page was rejected. The library turns errors into text, so the reason is also kept here.
pub(crate) type Refusal = Arc<OnceLock<(Reason, String)>>;

/// The selected parts of a file.
pub(crate) struct Selected<'a> {
    pub(crate) metadata: &'a ArrowReaderMetadata,
    pub(crate) group: usize,
    /// Columns by their number.
    pub(crate) columns: Vec<usize>,
    pub(crate) rows: Option<RowSelection>,
    pub(crate) values: Values,
}

impl Selected<'_> {
    /// Checks the pages of all selected columns, or returns why none of them may be decoded.
    pub(crate) fn check(
        &self,
        file: &File,
        block_bytes: usize,
        limits: &Limits,
    ) -> Result<Vec<Checked>, (Reason, String)> {
        let group = self.metadata.metadata().row_group(self.group);
        let n_rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let check = |&column: &usize| {
            let mut file = file
                .try_clone()
                .map_err(|error| (Reason::Unreadable, error.to_string()))?;
            let column = group.column(column);
            let checked = super::guarded(|| {
                let values = self.values;
                let checked = pages::check(&mut file, column, n_rows, values, block_bytes, limits);
                Ok(checked)
            });
            checked.map_err(|error| super::damage(&error))?
        };
        self.columns.iter().map(check).collect()
    }

    /// Opens the row group to decode a number of rows at a time, or returns why it may not be
    /// decoded.
    pub(crate) fn open(
        self,
        file: File,
        checked: Vec<Checked>,
        rows_at_once: usize,
        limits: &Limits,
    ) -> Result<(ParquetRecordBatchReader, Refusal), (Reason, String)> {
        let metadata = self.metadata.metadata();
        let refusal = Refusal::default();
        let pages = Pages {
            file: Arc::new(file),
            metadata: Arc::clone(metadata),
            group: self.group,
            columns: self.columns.iter().copied().zip(checked).collect(),
            row_bytes: (limits.page_bytes / rows_at_once.max(1)) as u64,
            refusal: Arc::clone(&refusal),
        };
        super::guarded(|| {
            let schema = metadata.file_metadata().schema_descr();
            let mask = ProjectionMask::leaves(schema, self.columns);
            let hint = self.metadata.schema().fields();
            let levels = parquet_to_arrow_field_levels(schema, mask, Some(hint))?;
            let rows = self.rows;
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, rows_at_once, rows)
        })
        .map(|reader| (reader, refusal))
        .map_err(|error| super::damage(&error))
    }
}

/// The wanted columns of one row group, with the result of checking their pages.
struct Pages {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    group: usize,
    columns: Vec<(usize, Checked)>,
    /// Maximum bytes of the lists of a row.
    row_bytes: u64,
    refusal: Refusal,
}

impl RowGroups for Pages {
    fn num_rows(&self) -> usize {
        usize::try_from(self.metadata.row_group(self.group).num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, i: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let column = self.metadata.row_group(self.group).column(i);
        let codec = Codec::of(column.compression());
        let checked = self.columns.iter().find(|(column, _)| *column == i);
        let checked = checked.map(|(_, checked)| checked);
        let stored = match codec {
            None => column.clone(),
            Some(_) => {
                let column = column.clone().into_builder();
                column.set_compression(Compression::UNCOMPRESSED).build()?
            }
        };
        let file = Arc::clone(&self.file);
        let pages = SerializedPageReader::new(file, &stored, self.num_rows(), None)?;
        let reader: Box<dyn PageReader> = match codec {
            None => Box::new(pages),
            Some(codec) => Box::new(Unpacked {
                pages,
                codec,
                sizes: checked
                    .map(|checked| checked.sizes.clone())
                    .unwrap_or_default(),
                refusal: Arc::clone(&self.refusal),
            }),
        };
        let value_bytes = checked.map_or(u64::MAX, |checked| checked.value_bytes);
        let reader: Box<dyn PageReader> = match column.column_descr().max_rep_level() {
            0 => reader,
            max_level => Box::new(Lists {
                pages: reader,
                max_level,
                most_values: self.row_bytes / value_bytes.max(1),
                n_values: 0,
                refusal: Arc::clone(&self.refusal),
            }),
        };
        Ok(Box::new(Once(Some(reader))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of the only row group.
struct Once(Option<Box<dyn PageReader>>);

impl Iterator for Once {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Once {}

/// A codec that writes its whole output, whatever size is requested.
#[derive(Clone, Copy)]
enum Codec {
    Gzip,
    Brotli,
}

impl Codec {
    fn of(compression: Compression) -> Option<Self> {
        match compression {
            Compression::GZIP(_) => Some(Self::Gzip),
            Compression::BROTLI(_) => Some(Self::Brotli),
            _ => None,
        }
    }

    /// Appends the decompressed bytes of `packed`, up to `most` bytes.
    fn unpack(self, packed: &[u8], most: usize, out: &mut Vec<u8>) -> std::io::Result<usize> {
        /// Input that Brotli reads at once.
        const BUFFER: usize = 64 << 10;
        let most = most as u64;
        match self {
            Self::Gzip => MultiGzDecoder::new(packed).take(most).read_to_end(out),
            Self::Brotli => brotli_decompressor::Decompressor::new(packed, BUFFER)
                .take(most)
                .read_to_end(out),
        }
    }
}

/// Pages that are decompressed on request.
struct Unpacked {
    pages: SerializedPageReader<File>,
    codec: Codec,
    /// The decompressed sizes of the remaining pages.
    sizes: VecDeque<usize>,
    refusal: Refusal,
}

impl Unpacked {
    fn refuse(&self, reason: Reason, detail: String) -> ParquetError {
        // The first reason counts.
        let _ = self.refusal.set((reason, detail.clone()));
        ParquetError::General(detail)
    }

    /// Decompresses all bytes of a page of `size` bytes except the first `n_levels`.
    fn unpack(&self, page: &[u8], n_levels: usize, size: usize) -> Result<Vec<u8>, ParquetError> {
        let (Some((levels, packed)), Some(rest)) =
            (page.split_at_checked(n_levels), size.checked_sub(n_levels))
        else {
            let detail = format!("levels of {n_levels} bytes in a page of {size}");
            return Err(self.refuse(Reason::BadParquet, detail));
        };
        // One byte more, so that the end is detected without growing the buffer.
        let mut out = Vec::with_capacity(size + 1);
        out.extend_from_slice(levels);
        // A page with only nulls has nothing to decompress.
        if rest > 0 {
            let unpacked = self.codec.unpack(packed, rest + 1, &mut out);
            unpacked.map_err(|error| self.refuse(Reason::BadParquet, error.to_string()))?;
        }
        match out.len() {
            n if n > size => {
                let detail = format!("a page of more than the {size} bytes declared");
                Err(self.refuse(Reason::Expansion, detail))
            }
            n if n < size => {
                let detail = format!("a page of {n} bytes that declares {size}");
                Err(self.refuse(Reason::BadParquet, detail))
            }
            _ => Ok(out),
        }
    }
}

impl PageReader for Unpacked {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(mut page) = self.pages.get_next_page()? else {
            return Ok(None);
        };
        let size = self.sizes.pop_front().unwrap_or(0);
        let (buf, n_levels) = match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
            Page::DataPageV2 { is_compressed, .. } if !*is_compressed => return Ok(Some(page)),
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let n = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                (buf, usize::try_from(n).unwrap_or(usize::MAX))
            }
        };
        *buf = self.unpack(buf, n_levels, size)?.into();
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.sizes.pop_front();
        self.pages.skip_next_page()
    }
}

impl Iterator for Unpacked {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
