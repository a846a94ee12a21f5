//! The state of the server: the directory, its index and its run, kept up to date.
//!
//! All of it is one immutable [`View`]. A thread checks the files every few seconds. If they have
//! changed, it updates the index, reads the results, and replaces the old view with a new one.
//! Requests keep the view they started with. If the directory cannot be read at the time, for
//! example while a run is being repeated, the old view stays and the pages say so.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use arose_crawl::GonePages;
use arose_dedup::evaluate::ratings::Ratings;
use arose_dedup::results::Summary;
use arose_search::{Config as Indexing, Hit, Index, Kind, Progress, SearchDir, State, Versions};

use crate::answer::Refusal;
use crate::catalog::Catalog;
use crate::lanes::Lanes;
use crate::sample::Sample;
use crate::{Config, Error};

/// The pause between two checks is at least this many times the duration of a check.
const PAUSE_FACTOR: u32 = 10;

/// The argument of every handler.
pub(crate) type Shared = Arc<Site>;

/// Everything that is served.
pub(crate) struct Site {
    config: Config,
    /// Always replaced as a whole.
    view: RwLock<Arc<View>>,
    pub(crate) lanes: Lanes,
}

/// A snapshot of the directory.
pub(crate) struct View {
    pub(crate) folder: SearchDir,
    pub(crate) index: Arc<Index>,
    /// The results of `arose dedup`; none in a directory of archives.
    pub(crate) run: Option<Arc<Run>>,
    /// Which captures of a page are searched unless a request says otherwise.
    versions: Versions,
    /// The pages of a crawl that are gone.
    pub(crate) gone: Arc<GonePages>,
    /// Why later changes of the directory are not shown.
    pub(crate) trouble: Option<String>,
    files: State,
}

/// The output of `arose dedup`.
pub(crate) struct Run {
    pub(crate) summary: Summary,
    pub(crate) directory: PathBuf,
    pub(crate) documents: PathBuf,
    pub(crate) pairs: PathBuf,
    pub(crate) catalog: Catalog,
    pub(crate) sample: Sample,
    pub(crate) ratings: Ratings,
}

impl Site {
    /// Reads the directory, and keeps the result up to date.
    pub(crate) fn open(folder: SearchDir, index: Index, config: &Config) -> Result<Shared, Error> {
        let view = View::open(folder, index, config)?;
        let site = Arc::new(Self {
            config: config.clone(),
            view: RwLock::new(Arc::new(view)),
            lanes: Lanes::new(),
        });
        let watched = Arc::downgrade(&site);
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let spawned = thread.spawn(move || watch(&watched));
        spawned.map_err(Error::Runtime)?;
        Ok(site)
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.config.token.as_deref()
    }

    /// The current snapshot of the directory.
    pub(crate) fn view(&self) -> Arc<View> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&view)
    }

    fn set_view(&self, view: View) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// Replaces the view if the files have changed.
    fn look(&self) {
        let view = self.view();
        if view.files.is_current(&view.folder) && view.trouble.is_none() {
            return;
        }
        match View::renew(&view.folder, &self.config) {
            Ok(fresh) => self.set_view(fresh),
            Err(error) => {
                let trouble = Refusal::failed(&error).detail;
                if view.trouble.as_ref() != Some(&trouble) {
                    self.set_view(view.with_trouble(trouble));
                }
            }
        }
    }
}

/// Watches the directory as long as it is served.
fn watch(site: &Weak<Site>) {
    let mut pause = Duration::ZERO;
    while let Some(site) = site.upgrade() {
        let least = site.config.watch;
        let begin = Instant::now();
        site.look();
        // Directories with many files are checked less often.
        pause = least.max(begin.elapsed() * PAUSE_FACTOR).max(pause / 2);
        drop(site);
        std::thread::sleep(pause);
    }
}

impl View {
    fn open(folder: SearchDir, index: Index, config: &Config) -> Result<Self, Error> {
        // Not their current state, so that changes since the index was built are noticed.
        let files = index.state().clone();
        let run = match &folder.kind {
            Kind::Run(summary) => Some(Arc::new(Run::open(&folder, summary, config)?)),
            Kind::Archives(_) => None,
        };
        // A crawl that cannot be read is reported where it is shown.
        let gone = arose_crawl::gone_pages(&folder.path).unwrap_or_default();
        Ok(Self {
            folder,
            index: Arc::new(index),
            run,
            versions: config.versions,
            gone: Arc::new(gone),
            trouble: None,
            files,
        })
    }

    /// A new view of the same directory, with its index updated.
    fn renew(folder: &SearchDir, config: &Config) -> Result<Self, Error> {
        let folder = folder.reopen()?;
        arose_search::update(&folder, &Indexing::default(), &Progress::default())?;
        let index = Index::open(&folder)?;
        Self::open(folder, index, config)
    }

    fn with_trouble(&self, trouble: String) -> Self {
        Self {
            folder: self.folder.clone(),
            index: Arc::clone(&self.index),
            run: self.run.clone(),
            versions: self.versions,
            gone: Arc::clone(&self.gone),
            trouble: Some(trouble),
            files: self.files.clone(),
        }
    }

    /// Which captures a request finds that asks for these.
    pub(crate) fn versions(&self, asked: Option<Versions>) -> Versions {
        asked.unwrap_or(self.versions)
    }

    /// Whether the crawler found nothing at the URL of a result at its last three visits.
    pub(crate) fn is_gone(&self, hit: &Hit) -> bool {
        hit.url.as_deref().is_some_and(|url| self.gone.has(url))
    }

    /// The run, or an error page if there is none.
    pub(crate) fn run(&self) -> Result<&Run, Refusal> {
        self.run.as_deref().ok_or_else(|| {
            Refusal::not_found(
                "This directory contains web archives and no run of `arose dedup`, so there are no \
                 clusters, pairs or ratings. Search works.",
            )
        })
    }
}

impl Run {
    fn open(folder: &SearchDir, summary: &Summary, config: &Config) -> Result<Self, Error> {
        let documents = folder.path.join("documents.parquet");
        let pairs = folder.path.join("pairs.parquet");
        Ok(Self {
            summary: summary.clone(),
            directory: summary.directory(&folder.path),
            catalog: Catalog::open(&documents)?,
            sample: Sample::draw(&pairs, &documents, config.seed, config.n_per_stratum)?,
            ratings: Ratings::of_run(&folder.path)?,
            documents,
            pairs,
        })
    }
}
