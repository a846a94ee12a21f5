//! A bus of NATS servers with JetStream.
//!
//! It needs no more than version 2.9 has. A crawl has three streams: `k` keeps the last message of
//! each key, `j` keeps the logs of partitions, and `u` is a work queue with a durable consumer per
//! partition. Neither time to live nor a maximum number of deliveries nor message IDs are used:
//! they do not hold when servers are killed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull, push};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{Acker, PublishMessage};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Subscriber};
use futures_util::StreamExt;
use tokio::sync::Notify;

use super::{Bus, BusError, Delivery, Stored, Subject};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long servers may take to elect a leader.
const ELECTION: Duration = Duration::from_secs(20);

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a message may wait for its acknowledgement before it is delivered again.
const ACK_WAIT: Duration = Duration::from_secs(60);

/// Messages of a partition that may wait for their acknowledgements.
const MAX_UNACKNOWLEDGED: i64 = 64;

/// Messages of a log that are read at once.
const N_READ: usize = 200;

/// Where the servers are, and what they ask of clients.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// `nats://host:port`, or `tls://host:port`; several are separated by commas.
    pub servers: String,
    /// User and password.
    pub user: Option<(String, String)>,
    /// A token in place of user and password.
    pub token: Option<String>,
    /// Certificates of authorities (PEM) besides those that everybody trusts.
    pub authorities: Option<PathBuf>,
    /// Certificate of this client and its key (PEM).
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Bytes that the queue between agents may take on the servers.
    pub max_queue: u64,
    /// Servers that keep each message.
    pub n_replicas: usize,
}

/// A bus of NATS servers, as one agent sees it.
pub(crate) struct Nats {
    client: Client,
    context: Context,
    /// The first part of all subjects.
    prefix: String,
    login: Login,
    words: RefCell<Option<Subscriber>>,
    changes: RefCell<Option<push::Ordered>>,
    pulls: RefCell<HashMap<u8, pull::Stream>>,
    /// Whether changes begin again, and what wakes whoever waits for them.
    again: Cell<bool>,
    wake: Notify,
}

impl std::fmt::Debug for Nats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nats")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Nats {
    /// Connects an agent to the servers of a crawl, and makes its streams if they are not there.
    pub(crate) async fn connect(login: &Login, crawl: &str, agent: &str) -> Result<Self, BusError> {
        let mut options = ConnectOptions::new()
            .name(agent)
            .connection_timeout(PATIENCE)
            .request_timeout(Some(PATIENCE))
            .reconnect_delay_callback(|n| PAUSE.mul_f64(n.clamp(1, 5) as f64))
            .ping_interval(Duration::from_secs(5));
        if let Some((user, password)) = &login.user {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(token) = &login.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &login.authorities {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &login.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let servers: Vec<&str> = login.servers.split(',').map(str::trim).collect();
        let client = options.connect(&servers[..]).await.map_err(unavailable)?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PATIENCE);
        let prefix = format!("arose-{crawl}");
        let heard = client.subscribe(format!("{prefix}.c.{agent}")).await;
        let bus = Self {
            words: RefCell::new(Some(heard.map_err(unavailable)?)),
            client,
            context,
            prefix,
            login: login.clone(),
            changes: RefCell::new(None),
            pulls: RefCell::default(),
            again: Cell::new(false),
            wake: Notify::new(),
        };
        bus.prepare_soon().await?;
        Ok(bus)
    }

    /// Makes the streams on servers that may have to elect a leader first.
    async fn prepare_soon(&self) -> Result<(), BusError> {
        let start = tokio::time::Instant::now();
        loop {
            match self.prepare().await {
                Err(_) if start.elapsed() < ELECTION => tokio::time::sleep(PAUSE).await,
                prepared => return prepared,
            }
        }
    }

    /// A stream, made if missing.
    async fn stream(&self, name: &str) -> Result<Stream, BusError> {
        let prefix = &self.prefix;
        let config = Config {
            name: format!("{prefix}-{name}"),
            subjects: vec![format!("{prefix}.{name}.>")],
            num_replicas: self.login.n_replicas.max(1),
            ..Config::default()
        };
        let config = match name {
            "k" => Config {
                max_messages_per_subject: 1,
                ..config
            },
            "u" => Config {
                retention: RetentionPolicy::WorkQueue,
                discard: DiscardPolicy::New,
                max_bytes: i64::try_from(self.login.max_queue).unwrap_or(i64::MAX),
                ..config
            },
            _ => config,
        };
        let stream = self.context.get_or_create_stream(config).await;
        stream.map_err(unavailable)
    }

    fn subject(&self, subject: &Subject) -> String {
        match subject {
            Subject::Key(key) => format!("{}.k.{key}", self.prefix),
            Subject::Log(partition) => format!("{}.j.{partition}", self.prefix),
        }
    }

    async fn read_log(&self, subject: String, after: u64) -> Result<Vec<Stored>, BusError> {
        let config = pull::Config {
            filter_subject: subject,
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: after + 1,
            },
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(30),
            ..pull::Config::default()
        };
        let stream = self.stream("j").await?;
        let consumer = stream.create_consumer(config).await.map_err(unavailable)?;
        let fetched = consumer.fetch().max_messages(N_READ).messages().await;
        let mut fetched = fetched.map_err(unavailable)?;
        let mut entries = Vec::new();
        while let Some(message) = fetched.next().await {
            let message = message.map_err(unavailable)?;
            let number = message.info().map_err(unavailable)?.stream_sequence;
            entries.push((number, message.payload.to_vec()));
        }
        let name = consumer.cached_info().name.clone();
        // A consumer that stays is removed by the server after its time.
        let _ = stream.delete_consumer(&name).await;
        Ok(entries)
    }

    async fn watch(&self) -> Result<push::Ordered, BusError> {
        let config = push::OrderedConfig {
            deliver_subject: self.client.new_inbox(),
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: format!("{}.k.>", self.prefix),
            ..push::OrderedConfig::default()
        };
        let stream = self.stream("k").await?;
        let consumer = stream.create_consumer(config).await.map_err(unavailable)?;
        consumer.messages().await.map_err(unavailable)
    }

    async fn consume(&self, partition: u8) -> Result<pull::Stream, BusError> {
        let name = format!("p{partition}");
        let config = pull::Config {
            durable_name: Some(name.clone()),
            filter_subject: format!("{}.u.{partition}", self.prefix),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: MAX_UNACKNOWLEDGED,
            ..pull::Config::default()
        };
        let stream = self.stream("u").await?;
        let consumer = stream.get_or_create_consumer(&name, config).await;
        let consumer = consumer.map_err(unavailable)?;
        consumer.messages().await.map_err(unavailable)
    }
}

impl Bus for Nats {
    type Token = Acker;

    async fn append(&self, subject: &Subject, last: u64, bytes: Vec<u8>) -> Result<u64, BusError> {
        let message = PublishMessage::build()
            .expected_last_subject_sequence(last)
            .payload(bytes.into());
        let name = self.subject(subject);
        let sent = self
            .context
            .send_publish(name, message)
            .await
            .map_err(publish_error)?;
        let stored = tokio::time::timeout(PATIENCE, sent).await;
        let stored = stored.map_err(|_| BusError::Unavailable("no answer in time".to_owned()))?;
        Ok(stored.map_err(publish_error)?.sequence)
    }

    async fn prepare(&self) -> Result<(), BusError> {
        for stream in ["k", "j", "u"] {
            self.stream(stream).await?;
        }
        Ok(())
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        let name = self.subject(subject);
        let stream = self.stream(match subject {
            Subject::Key(_) => "k",
            Subject::Log(_) => "j",
        });
        let last = stream.await?.get_last_raw_message_by_subject(&name).await;
        match last {
            Ok(message) => Ok(Some((message.sequence, message.payload.to_vec()))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn purge(&self, partition: u8, before: u64) -> Result<(), BusError> {
        let stream = self.stream("j").await?;
        let name = self.subject(&Subject::Log(partition));
        let purged = stream.purge().filter(name).sequence(before).await;
        purged.map(|_| ()).map_err(unavailable)
    }

    async fn read(&self, subject: &Subject, after: u64) -> Result<Vec<Stored>, BusError> {
        let name = self.subject(subject);
        match subject {
            Subject::Log(_) => self.read_log(name, after).await,
            Subject::Key(_) => {
                let last = self.last(subject).await?;
                Ok(last
                    .filter(|(number, _)| *number > after)
                    .into_iter()
                    .collect())
            }
        }
    }

    fn look_again(&self) {
        self.again.set(true);
        self.wake.notify_one();
    }

    async fn changes(&self) -> Vec<(String, Stored)> {
        let start = format!("{}.k.", self.prefix);
        loop {
            let watched = self.changes.take();
            let watched = watched.filter(|_| !self.again.take());
            let mut watched = match watched {
                Some(watched) => watched,
                None => match self.watch().await {
                    Ok(watched) => watched,
                    Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let message = tokio::select! {
                message = watched.next() => message,
                () = self.wake.notified() => None,
            };
            let Some(Ok(message)) = message else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            *self.changes.borrow_mut() = Some(watched);
            let number = message.info().map(|info| info.stream_sequence);
            if let (Ok(number), Some(key)) = (number, message.subject.strip_prefix(&start)) {
                return vec![(key.to_owned(), (number, message.payload.to_vec()))];
            }
        }
    }

    async fn send(&self, partition: u8, bytes: Vec<u8>) -> Result<(), BusError> {
        let name = format!("{}.u.{partition}", self.prefix);
        let message = PublishMessage::build().payload(bytes.into());
        let sent = self.context.send_publish(name, message).await;
        let stored = tokio::time::timeout(PATIENCE, sent.map_err(publish_error)?).await;
        let stored = stored.map_err(|_| BusError::Unavailable("no answer in time".to_owned()))?;
        stored.map(|_| ()).map_err(publish_error)
    }

    async fn pull(&self, partition: u8) -> Delivery<Acker> {
        loop {
            let messages = self.pulls.borrow_mut().remove(&partition);
            let mut messages = match messages {
                Some(messages) => messages,
                None => match self.consume(partition).await {
                    Ok(messages) => messages,
                    Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let Some(Ok(message)) = messages.next().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            self.pulls.borrow_mut().insert(partition, messages);
            let (message, token) = message.split();
            let bytes = message.payload.to_vec();
            return Delivery { bytes, token };
        }
    }

    async fn acknowledge(&self, token: Acker) {
        // One that is lost comes again, which changes nothing.
        let _ = token.ack().await;
    }

    async fn tell(&self, agent: &str, bytes: Vec<u8>) {
        let name = format!("{}.c.{agent}", self.prefix);
        let _ = self.client.publish(name, bytes.into()).await;
    }

    async fn hear(&self) -> Vec<u8> {
        loop {
            let words = self.words.take();
            if let Some(mut words) = words {
                let word = words.next().await;
                *self.words.borrow_mut() = Some(words);
                if let Some(word) = word {
                    return word.payload.to_vec();
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

fn publish_error(error: async_nats::jetstream::context::PublishError) -> BusError {
    match error.kind() {
        PublishErrorKind::WrongLastSequence => BusError::Conflict,
        _ if error.to_string().contains("maximum bytes exceeded") => BusError::Full,
        _ => unavailable(error),
    }
}

fn is_missing(error: &async_nats::jetstream::stream::LastRawMessageError) -> bool {
    use async_nats::jetstream::stream::LastRawMessageErrorKind;
    error.kind() == LastRawMessageErrorKind::NoMessageFound
}
