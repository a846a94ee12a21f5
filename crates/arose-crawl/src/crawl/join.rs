//! Joining a crawl that runs on many machines ([`crate::cluster`]).
//!
//! What waits and what is done is in the logs of partitions, so a run begins with an empty queue
//! and an empty seen set, whatever an earlier run in the same directory left there. Its archive,
//! its counters and its index of contents are kept.

use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::restore::restore;
use super::start::{check, judge, keep_settings};
use super::store::{JOURNAL, SEEN, lock};
use super::*;
use crate::cluster::link::{Ending, Link, Wire, link};
use crate::cluster::partition::partition_of;
use crate::cluster::{
    AgentConfig, Bus, Copies, CrawlDocument, Fenced, Local, Login, Nats, Stores, Terms, Twins,
    block_on_bus, enter, run,
};
use crate::content::settings_of;
use crate::error::Context;
use crate::journal::Event;
use crate::page;
use crate::settings::DuplicatePolicy;

/// Where an agent keeps copies of the logs of its partitions.
pub(super) const COPIES: &str = "cluster";

/// Where, below that, it keeps the sketches of pages of others.
const TWINS: &str = "sketches";

/// Bytes of the name of a crawl or an agent.
const MAX_NAME: usize = 64;

/// What agents talk through.
#[derive(Debug, Clone)]
pub enum Servers {
    /// NATS servers.
    Nats(Login),
    /// This process, of which all agents are a part.
    Here(Local),
}

/// How a machine takes part in a crawl.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// What agents talk through.
    pub servers: Servers,
    /// The name of the crawl.
    pub crawl: String,
    /// The name of this agent, which no other agent of the crawl may have.
    pub agent: String,
    /// How much of the crawl it takes, relative to the others.
    pub weight: f64,
    /// How long others wait when they do not hear of it.
    pub lease: Duration,
    /// Number of bytes from which on the log of a partition is replaced by a snapshot.
    pub snapshot_bytes: u64,
}

/// Crawls as one agent of several, until nothing is left to do for any of them.
///
/// # Errors
///
/// As [`crawl`](super::crawl()), and if the servers cannot be reached at the beginning or have a
/// crawl of this name with other settings, other seeds or another version.
pub fn join(
    folder: &Path,
    mut settings: Settings,
    seeds: Seeds,
    cluster: &Cluster,
    control: &Control,
) -> Result<Summary, Error> {
    allow_files(&mut settings);
    refuse(&settings, cluster)?;
    loop {
        let (summary, ending) = one(folder, &settings, &seeds, cluster, control)?;
        match ending {
            Some(Ending::Fenced) if !control.is_stopped() => control.say(format!(
                "agent `{}` was not heard of for too long, and others took over; it joins again",
                cluster.agent
            )),
            Some(Ending::Failed(message)) => return Err(Error::Cluster(message)),
            _ => return Ok(summary),
        }
    }
}

/// What agents cannot do.
fn refuse(settings: &Settings, cluster: &Cluster) -> Result<(), Error> {
    let refused = match () {
        () if settings.recrawl.on => Some("`--recrawl` does not work with `--join` yet"),
        () if settings.focus.is_on() => Some("`--topic` does not work with `--join` yet"),
        () if cluster.lease < Duration::from_secs(1) => Some("a lease has at least 1 second"),
        () if !(cluster.weight > 0.0 && cluster.weight <= 1e6) => {
            Some("the weight of an agent is a number above 0 and at most 1,000,000")
        }
        () => None,
    };
    if let Some(message) = refused {
        return Err(Error::Settings(message.to_owned()));
    }
    for name in [&cluster.crawl, &cluster.agent] {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_good) {
            return Err(Error::Settings(format!(
                "`{name}` is not a name; use up to {MAX_NAME} letters, digits, `-` and `_`"
            )));
        }
    }
    Ok(())
}

/// One run of an agent.
fn one(
    folder: &Path,
    settings: &Settings,
    seeds: &Seeds,
    cluster: &Cluster,
    control: &Control,
) -> Result<(Summary, Option<Ending>), Error> {
    let mut summary = None;
    let mut ending = None;
    let run = async {
        let kept = settings.clone();
        let mut settings = settings.clone();
        let mut seams = Seams::real(&settings)?;
        let seeded = check(folder, &mut settings, &seams, seeds)?;
        let named = named_seeds(&settings, seeds)?;
        let urls = named.iter().map(|(url, _)| url.as_str().to_owned());
        let urls: Vec<String> = urls.collect();
        let address_delay = crate::settings::seconds(settings.polite.address_delay);
        let document = CrawlDocument::new(&kept, &urls).map_err(Error::Settings)?;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        let id = format!("{}-{millis:x}", cluster.agent);
        let duplicates = &settings.duplicates;
        // Under `content`, what makes a duplicate depends on the other pages of the site.
        let compares = duplicates.check && duplicates.policy == DuplicatePolicy::Jaccard;
        let sketches = compares.then(|| settings_of(duplicates.policy));
        let begun = Begun {
            id: id.clone(),
            address_delay,
            sketches,
            crawl: document,
        };
        let agent = AgentThread::start(folder, cluster, begun);
        let (link, thread) = agent.ready().await?;
        let owner = Arc::clone(&link.shared);
        seams.is_ours = Box::new(move |url| owner.owns(partition_of(url.site())));
        seams.connector = Rc::new(Fenced {
            inner: seams.connector,
            shared: Arc::clone(&link.shared),
        });
        // The archives of all agents may be put into one directory.
        settings.archive.prefix = format!("{}-{id}", settings.archive.prefix);
        start_over(folder, &settings, (seams.clock)())?;
        let mut crawl = Crawl::open(folder, settings, seams)?;
        seeded.write(folder)?;
        keep_settings(folder, &kept)?;
        crawl.become_member(link, named);
        let ran = crawl.run(control).await?;
        if let Some((commits, sender)) = crawl.last_commits() {
            for commit in commits {
                // An agent that has ended wants nothing more.
                let sent = tokio::time::timeout(cluster.lease, sender.send(commit)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    break;
                }
            }
        }
        ending = thread.join(cluster.lease).await;
        summary = Some(ran.clone());
        Ok(ran)
    };
    let ran = block_on(run)?;
    Ok((summary.unwrap_or(ran), ending))
}

/// Seeds that can be crawled.
fn named_seeds(settings: &Settings, seeds: &Seeds) -> Result<Vec<(NormalUrl, Kind)>, Error> {
    let (normalizer, guard) = (page::normalizer(settings), page::guard(settings)?);
    let pages = seeds.pages.iter().map(|text| (text, Kind::Page));
    let sitemaps = seeds.sitemaps.iter().map(|text| (text, Kind::Sitemap));
    let good = pages.chain(sitemaps).filter_map(|(text, kind)| {
        let url = judge(text, &normalizer, &guard).ok()?;
        Some((url, kind))
    });
    Ok(good.collect())
}

/// What a run of an agent begins with.
struct Begun {
    /// The name of the run.
    id: String,
    address_delay: Duration,
    /// How pages are compared with those of other agents; none if they are not.
    sketches: Option<arose_dedup::index::Settings>,
    crawl: CrawlDocument,
}

/// The thread of an agent.
struct AgentThread {
    thread: JoinHandle<()>,
    link: Link,
    ready: oneshot::Receiver<Result<(), String>>,
    ended: oneshot::Receiver<Option<Ending>>,
}

/// A thread of an agent that runs.
struct Running {
    thread: JoinHandle<()>,
    ended: oneshot::Receiver<Option<Ending>>,
}

impl AgentThread {
    fn start(folder: &Path, cluster: &Cluster, begun: Begun) -> Self {
        let (cluster, folder) = (cluster.clone(), folder.join(COPIES));
        let (link, wire) = link();
        let (is_ready, ready) = oneshot::channel();
        let (has_ended, ended) = oneshot::channel();
        let Begun {
            id,
            address_delay,
            sketches,
            crawl,
        } = begun;
        let config = AgentConfig {
            id,
            name: cluster.agent,
            weight: cluster.weight,
            terms: Terms::new(cluster.lease),
            address_delay,
            snapshot_bytes: cluster.snapshot_bytes,
            crawl,
        };
        let thread = std::thread::spawn(move || {
            let stores = || {
                let copies = Copies::open(&folder).map_err(|error| error.to_string())?;
                let twins = sketches.map(|settings| Twins::open(&folder.join(TWINS), settings));
                let twins = twins.transpose().map_err(|error| error.to_string())?;
                Ok(Stores { copies, twins })
            };
            let ended = block_on_bus(async move {
                match &cluster.servers {
                    Servers::Here(local) => {
                        let bus = local.with(&config.id);
                        take_part(bus, config, stores, wire, is_ready).await
                    }
                    Servers::Nats(login) => {
                        match Nats::connect(login, &cluster.crawl, &config.id).await {
                            Ok(bus) => take_part(bus, config, stores, wire, is_ready).await,
                            Err(error) => {
                                let _ = is_ready.send(Err(error.to_string()));
                                None
                            }
                        }
                    }
                }
            });
            let _ = has_ended.send(ended);
        });
        Self {
            thread,
            link,
            ready,
            ended,
        }
    }

    /// Waits until it has joined the crawl.
    async fn ready(self) -> Result<(Link, Running), Error> {
        let failed = || Err("its thread has failed".to_owned());
        let ready = self.ready.await.unwrap_or_else(|_| failed());
        ready.map_err(Error::Cluster)?;
        let Self {
            thread,
            link,
            ended,
            ..
        } = self;
        Ok((link, Running { thread, ended }))
    }
}

/// Enters a crawl, says so or why not, and takes part until the end.
async fn take_part<B: Bus>(
    bus: B,
    config: AgentConfig,
    stores: impl FnOnce() -> Result<Stores, String>,
    wire: Wire,
    is_ready: oneshot::Sender<Result<(), String>>,
) -> Option<Ending> {
    let entered = enter(&bus, &config).await.and_then(|()| stores());
    match entered {
        Ok(stores) => {
            let _ = is_ready.send(Ok(()));
            run(bus, config, stores, wire).await
        }
        Err(error) => {
            let _ = is_ready.send(Err(error));
            None
        }
    }
}

impl Running {
    /// Waits until everything is handed over, or until that is pointless; returns why it ended.
    async fn join(self, patience: Duration) -> Option<Ending> {
        let ended = tokio::time::timeout(patience, self.ended).await;
        match ended {
            Ok(ended) => {
                let _ = self.thread.join();
                ended.unwrap_or(None)
            }
            // Servers that cannot be reached; the thread ends with the process.
            Err(_) => None,
        }
    }
}

/// Empties the queue and the seen set of the crawl in a directory, if there is one.
fn start_over(folder: &Path, settings: &Settings, date: Duration) -> Result<(), Error> {
    if !is_crawl(folder) {
        return Ok(());
    }
    let _lock = lock(folder)?;
    let (mut old, restored) = restore(folder, settings, None, date)?;
    old.cut()?;
    let path = folder.join(JOURNAL);
    let mut journal = Journal::begin_at(&path.with_extension("new"), 1)?;
    let counters = restored.counters.to_text();
    let records = restored.visited.iter();
    let records: Vec<_> = records
        .map(|(page, record)| (*page, record.to_bytes()))
        .collect();
    let mut events = vec![Event::Counters(&counters)];
    let visited = records.iter();
    events.extend(visited.map(|&(page, ref record)| Event::Visited { page, record }));
    let standing = super::restore::DurableExtents {
        n_seen: 0,
        ..restored.standing
    };
    events.extend(standing.events());
    events.push(restored.robots_extent.robots_event());
    events.push(restored.extent.event());
    events.push(Event::Closed);
    let batch = journal.next_batch();
    journal.append(&batch, &events)?;
    journal.rename(&path)?;
    // A crash before this leaves URLs behind that the next run removes.
    let seen = folder.join(SEEN);
    match std::fs::remove_dir_all(&seen) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("removing", &seen)
        }
        _ => Ok(()),
    }
}
