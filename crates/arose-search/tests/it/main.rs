//! Tests of complete directories: indexed, queried, changed, damaged.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod damage;
mod oracle;
mod quotes;
mod support;
mod updates;
