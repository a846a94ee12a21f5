//! Lines of the input, read again for their tokens.
//!
//! Most documents are never verified. So the tokens of long lines of uncompressed files are not
//! stored: writing them for all documents takes longer than making them twice for some. Both times
//! the same code makes them from the same bytes. A file that has changed is an error, so it cannot
//! affect a decision: its size and modification time are checked when it is opened, and when its
//! last line has been read.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arose::token::Tokenizer;
use arose_corpus::Position;

use crate::Error;
use crate::config::Config;
use crate::error::InputChange;
use crate::source::InputFile;
use crate::stage::columns::SOURCES;

/// Maximum number of files that stay open. Others are opened for each line.
const MAX_OPEN: usize = 256;

/// The position of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinePlace {
    /// The number of its source.
    pub(crate) source: u32,
    pub(crate) offset: u64,
    pub(crate) n_bytes: u32,
    /// Number of tokens that were found in it.
    pub(crate) n_tokens: u32,
}

/// The input files of a run.
pub(crate) struct SourceLines {
    /// The file with the list of sources, which is read when the first line is.
    list: PathBuf,
    inputs: OnceLock<Vec<OpenSource>>,
    n_open: AtomicUsize,
    config: arose_corpus::Config,
    tokenizer: Tokenizer,
}

struct OpenSource {
    source: InputFile,
    /// The file, if it stays open.
    file: OnceLock<File>,
    is_used: AtomicBool,
}

/// Longer lines are not held until the next one.
const LARGE: usize = 1 << 20;

thread_local! {
    /// Memory that a worker reuses.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl SourceLines {
    /// For the sources listed in the directory `read`.
    pub(crate) fn new(read: &Path, config: &Config) -> Self {
        Self {
            list: read.join(SOURCES),
            inputs: OnceLock::new(),
            n_open: AtomicUsize::new(0),
            config: config.corpus.clone(),
            tokenizer: Tokenizer::default(),
        }
    }

    /// Appends the tokens of the line at `place`.
    pub(crate) fn read(&self, place: &LinePlace, tokens: &mut Vec<u64>) -> Result<(), Error> {
        let input = self.input(place.source)?;
        LINE.with_borrow_mut(|line| {
            let n_bytes = place.n_bytes as usize;
            if line.len() < n_bytes {
                line.resize(n_bytes, 0);
            }
            let found = self.read_tokens(input, place, &mut line[..n_bytes], tokens);
            if line.len() > LARGE {
                *line = Vec::new();
            }
            found
        })
    }

    fn read_tokens(
        &self,
        input: &OpenSource,
        place: &LinePlace,
        line: &mut [u8],
        tokens: &mut Vec<u64>,
    ) -> Result<(), Error> {
        self.read_bytes(input, place.offset, line)?;
        let position = Position {
            offset: place.offset,
            inner: 0,
        };
        let text = arose_corpus::read_line_text(line, position, &self.config);
        let text = text.ok_or_else(|| input.changed())?;
        let n_before = tokens.len();
        self.tokenizer.fingerprints_into(&text, tokens);
        match tokens.len() - n_before == place.n_tokens as usize {
            true => Ok(()),
            false => Err(input.changed()),
        }
    }

    /// Returns an error if a file of which lines were read has changed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let inputs = self.inputs.get().into_iter().flatten();
        let mut used = inputs.filter(|input| input.is_used.load(Ordering::Relaxed));
        used.try_for_each(|input| input.source.check())
    }

    fn input(&self, number: u32) -> Result<&OpenSource, Error> {
        let inputs = match self.inputs.get() {
            Some(inputs) => inputs,
            None => {
                // Two threads may both read the list, which does no harm.
                let inputs = self.load()?;
                self.inputs.get_or_init(|| inputs)
            }
        };
        inputs
            .get(number as usize)
            .ok_or_else(|| self.damaged(format!("source {number} is missing")))
    }

    fn load(&self) -> Result<Vec<OpenSource>, Error> {
        let bytes = fs::read(&self.list).map_err(Error::io("read", &self.list))?;
        let sources = serde_json::Deserializer::from_slice(&bytes).into_iter::<InputFile>();
        let inputs = sources.map(|source| {
            let source = source.map_err(|error| self.damaged(error.to_string()))?;
            Ok(OpenSource {
                source,
                file: OnceLock::new(),
                is_used: AtomicBool::new(false),
            })
        });
        inputs.collect()
    }

    fn damaged(&self, detail: String) -> Error {
        Error::Damaged {
            path: self.list.clone(),
            detail,
        }
    }

    fn read_bytes(&self, input: &OpenSource, offset: u64, line: &mut [u8]) -> Result<(), Error> {
        let opened = match input.file.get() {
            Some(file) => return input.read_at(file, offset, line),
            None => input.open()?,
        };
        input.read_at(&opened, offset, line)?;
        if self.n_open.fetch_add(1, Ordering::Relaxed) < MAX_OPEN {
            // Another thread may have been faster.
            let _ = input.file.set(opened);
        }
        Ok(())
    }
}

impl OpenSource {
    fn open(&self) -> Result<File, Error> {
        self.source.check()?;
        self.is_used.store(true, Ordering::Relaxed);
        File::open(&self.source.path).map_err(Error::io("open", &self.source.path))
    }

    fn read_at(&self, file: &File, offset: u64, line: &mut [u8]) -> Result<(), Error> {
        match file.read_exact_at(line, offset) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.changed()),
            read => read.map_err(Error::io("read", &self.source.path)),
        }
    }

    fn changed(&self) -> Error {
        Error::InputChanged {
            path: self.source.path.clone(),
            change: InputChange::Content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    const LINE: &str = "{\"text\": \"a rose is a rose\"}";

    /// Lines of a file with [`LINE`] after ten other bytes.
    fn lines(folder: &Path) -> (SourceLines, PathBuf) {
        let path = folder.join("input.jsonl");
        fs::write(&path, format!("123456789\n{LINE}\n")).unwrap();
        let source = InputFile::of(&path).unwrap();
        let list = serde_json::to_string(&source).unwrap();
        fs::write(folder.join(SOURCES), format!("{list}\n")).unwrap();
        (SourceLines::new(folder, &Config::default()), path)
    }

    fn place(offset: u64, n_tokens: u32) -> LinePlace {
        LinePlace {
            source: 0,
            offset,
            n_bytes: LINE.len() as u32,
            n_tokens,
        }
    }

    #[test]
    fn tokens_of_a_line_are_appended() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, _) = lines(folder.path());
        let mut tokens = vec![7];
        lines.read(&place(10, 5), &mut tokens).unwrap();
        let expected = Tokenizer::default().tokens("a rose is a rose");
        assert_eq!(tokens[0], 7);
        assert_eq!(tokens[1..], expected.fingerprints);
        lines.check().unwrap();
    }

    #[test]
    fn another_source_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, _) = lines(folder.path());
        let other = LinePlace {
            source: 1,
            ..place(10, 5)
        };
        let failed = lines.read(&other, &mut Vec::new());
        assert!(matches!(failed, Err(Error::Damaged { .. })), "{failed:?}");
    }

    /// Neither another line, nor another number of tokens, nor a file with a later time passes.
    #[test]
    fn issue_20_a_file_that_changes_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, path) = lines(folder.path());
        for place in [place(9, 5), place(10, 6), place(11, 5), place(9999, 5)] {
            let failed = lines.read(&place, &mut Vec::new());
            assert!(
                matches!(failed, Err(Error::InputChanged { .. })),
                "{failed:?}"
            );
        }
        lines.check().unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let later = SystemTime::now() + Duration::from_secs(9);
        file.set_modified(later).unwrap();
        let changed = lines.check();
        assert!(
            matches!(changed, Err(Error::InputChanged { .. })),
            "{changed:?}"
        );
        // It is not opened either.
        let again = SourceLines::new(folder.path(), &Config::default());
        let failed = again.read(&place(10, 5), &mut Vec::new());
        assert!(
            matches!(failed, Err(Error::InputChanged { .. })),
            "{failed:?}"
        );
    }
}
