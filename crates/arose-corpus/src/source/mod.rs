//! Sources of bytes: files, directories and pipes (`input`, `walk`, `raw`), decompressed into one
//! stream that survives damage (`member`, `stream`), in several threads where that helps (`ahead`).

pub(crate) mod ahead;
pub(crate) mod input;
pub(crate) mod member;
pub(crate) mod raw;
pub(crate) mod stream;
pub(crate) mod walk;
