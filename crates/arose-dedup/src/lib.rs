//! Finds exact and near duplicates in files and writes the kept documents with evidence.
//!
//! [`run`] does the whole job: it reads a corpus, finds similar documents, keeps one of each
//! cluster and writes the results to a directory. The job is a sequence of stages over immutable
//! files, so its memory is a setting, and an interrupted run resumes:
//!
//! ```text
//! read ─► exact ─► candidates ─► verify ─► cluster ─► write
//! ```
//!
//! The result depends on the input and on [`Config`], but not on the number of threads or the
//! memory.
#![forbid(unsafe_code)]

mod background;
mod column;
mod config;
mod dictionary;
pub mod disk;
mod error;
pub mod evaluate;
pub mod explain;
pub mod index;
mod inputs;
mod job;
mod lookup;
mod losses;
mod marks;
mod memory;
mod names;
pub mod passages;
mod plan;
mod products;
mod progress;
mod record;
mod repeats;
pub mod report;
pub mod results;
mod scheme;
mod score;
pub mod shuffle;
mod sorter;
mod source;
mod stage;
mod table;
mod work;

pub use config::{
    Against, Config, DroppedAs, Empty, Exact, Keep, KeptAs, ListedPairs, OnLoss, Output, Quality,
    SiteCounts, Update, Verify, Versions,
};
pub use error::{Error, InputChange};
pub use inputs::Moved;
pub use job::{method, promise, run, run_moved};
pub use losses::IncompleteFile;
pub use memory::default_memory;
pub use plan::{ResourceNeeds, plan};
pub use progress::{Progress, STAGES, Snapshot};
pub use repeats::{RepeatCounter, Repeats};
pub use source::path_of;
pub use stage::read::tokens;
pub use work::Start;
