//! What the server knows: the folder, its index, and the run in it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use arose_dedup::evaluate::ratings::Ratings;
use arose_dedup::results::Summary;
use arose_search::{Folder, Index, Kind};
use axum::http::StatusCode;
use tokio::sync::Semaphore;

use crate::answer::Refusal;
use crate::catalog::Catalog;
use crate::sample::Sample;
use crate::{Config, Error};

/// Answers that are worked on at a time for each core; further requests wait. One of the two may
/// wait for the disk.
const MAX_AT_WORK_PER_CORE: usize = 2;

/// Requests that may wait for their turn, beyond which they are turned away.
const MAX_WAITING: usize = 512;

/// What every handler gets.
pub(crate) type Shared = Arc<Site>;

/// Everything that is served.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) index: Index,
    pub(crate) token: Option<String>,
    /// What `arose dedup` has found; none in a folder of archives.
    pub(crate) run: Option<Run>,
    turns: Semaphore,
    places: Semaphore,
}

/// The output of `arose dedup`.
pub(crate) struct Run {
    pub(crate) summary: Summary,
    pub(crate) documents: PathBuf,
    pub(crate) pairs: PathBuf,
    pub(crate) catalog: Catalog,
    pub(crate) sample: Sample,
    pub(crate) ratings: Ratings,
}

impl Site {
    /// Reads what is needed from the folder.
    pub(crate) fn open(folder: Folder, index: Index, config: &Config) -> Result<Shared, Error> {
        let run = match &folder.kind {
            Kind::Run(summary) => Some(Run::open(&folder, summary, config)?),
            Kind::Archives(_) => None,
        };
        let n_cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let max_at_work = MAX_AT_WORK_PER_CORE * n_cores.max(2);
        Ok(Arc::new(Self {
            folder,
            index,
            token: config.token.clone(),
            run,
            turns: Semaphore::new(max_at_work),
            places: Semaphore::new(max_at_work + MAX_WAITING),
        }))
    }

    /// The run, or a page that says there is none.
    pub(crate) fn run(&self) -> Result<&Run, Refusal> {
        self.run.as_ref().ok_or_else(|| {
            Refusal::not_found(
                "This folder holds web archives and no run of `arose dedup`, so there are no \
                 clusters, pairs or ratings. Search works.",
            )
        })
    }
}

impl Run {
    fn open(folder: &Folder, summary: &Summary, config: &Config) -> Result<Self, Error> {
        let documents = folder.path.join("documents.parquet");
        let pairs = folder.path.join("pairs.parquet");
        Ok(Self {
            summary: summary.clone(),
            catalog: Catalog::open(&documents)?,
            sample: Sample::draw(&pairs, &documents, config.seed, config.n_per_stratum)?,
            ratings: Ratings::of_run(&folder.path)?,
            documents,
            pairs,
        })
    }
}

/// Does work that reads files, off the threads that talk to browsers, when its turn comes.
pub(crate) async fn work<T: Send + 'static>(
    site: &Shared,
    work: impl FnOnce(&Site) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let busy = || Refusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        title: "Too many requests",
        detail: "The server has more to do than it can; try again in a moment.".to_owned(),
    };
    let _place = site.places.try_acquire().map_err(|_| busy())?;
    let _turn = site.turns.acquire().await.map_err(|_| busy())?;
    let site = Arc::clone(site);
    let result = tokio::task::spawn_blocking(move || work(&site)).await;
    result.unwrap_or_else(|_| {
        Err(Refusal {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            title: "That went wrong",
            detail: "The program made a mistake over this request.".to_owned(),
        })
    })
}
