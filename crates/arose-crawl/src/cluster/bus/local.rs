//! A bus inside one process.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Bus, BusError, Delivery, Stored, Subject};

/// Messages that a queue holds at most.
const MAX_QUEUE: usize = 100_000;

/// The servers' side, which agents of one process share.
#[derive(Debug, Default)]
struct Server {
    /// Held for one operation.
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    n_messages: u64,
    keys: BTreeMap<String, Stored>,
    logs: HashMap<u8, Vec<Stored>>,
    queues: HashMap<u8, VecDeque<Vec<u8>>>,
    words: HashMap<String, VecDeque<Vec<u8>>>,
    is_down: bool,
}

/// A bus inside one process, as one agent sees it.
#[derive(Debug, Clone)]
pub struct Local {
    server: Arc<Server>,
    agent: String,
    /// The number of the last document that was seen.
    seen: std::cell::Cell<u64>,
}

impl Local {
    /// The first agent of a new bus.
    #[must_use]
    pub fn new(agent: &str) -> Self {
        Self {
            server: Arc::default(),
            agent: agent.to_owned(),
            seen: std::cell::Cell::new(0),
        }
    }

    /// Another agent on the same bus.
    #[must_use]
    pub fn with(&self, agent: &str) -> Self {
        Self {
            server: Arc::clone(&self.server),
            agent: agent.to_owned(),
            seen: std::cell::Cell::new(0),
        }
    }

    /// Has everything fail, or work again.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
        self.server.changed.notify_waiters();
    }

    /// Loses everything that was stored.
    pub fn wipe(&self) {
        let mut state = self.state();
        let is_down = state.is_down;
        *state = State {
            is_down,
            ..State::default()
        };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.server.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn up(&self) -> Result<MutexGuard<'_, State>, BusError> {
        let state = self.state();
        match state.is_down {
            true => Err(BusError::Unavailable("the bus is down".to_owned())),
            false => Ok(state),
        }
    }

    /// Waits until there is something.
    async fn wait<T>(&self, mut take: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.server.changed.notified();
            if let Ok(mut state) = self.up()
                && let Some(taken) = take(&mut state)
            {
                return taken;
            }
            // Between looking and waiting something may come.
            let _ = tokio::time::timeout(Duration::from_millis(50), changed).await;
        }
    }
}

impl Bus for Local {
    type Token = ();

    async fn append(&self, subject: &Subject, last: u64, bytes: Vec<u8>) -> Result<u64, BusError> {
        let mut state = self.up()?;
        let state = &mut *state;
        let number = state.n_messages + 1;
        let entry = (number, bytes);
        match subject {
            Subject::Key(key) => {
                let current = state.keys.get(key).map_or(0, |(number, _)| *number);
                if current != last {
                    return Err(BusError::Conflict);
                }
                state.keys.insert(key.clone(), entry);
            }
            Subject::Log(partition) => {
                let log = state.logs.entry(*partition).or_default();
                if log.last().map_or(0, |(number, _)| *number) != last {
                    return Err(BusError::Conflict);
                }
                log.push(entry);
            }
        }
        state.n_messages = number;
        self.server.changed.notify_waiters();
        Ok(number)
    }

    async fn prepare(&self) -> Result<(), BusError> {
        self.up().map(|_| ())
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        let state = self.up()?;
        Ok(match subject {
            Subject::Key(key) => state.keys.get(key).cloned(),
            Subject::Log(partition) => state
                .logs
                .get(partition)
                .and_then(|log| log.last())
                .cloned(),
        })
    }

    async fn purge(&self, partition: u8, before: u64) -> Result<(), BusError> {
        let mut state = self.up()?;
        let log = state.logs.entry(partition).or_default();
        log.retain(|(number, _)| *number >= before);
        Ok(())
    }

    async fn read(&self, subject: &Subject, after: u64) -> Result<Vec<Stored>, BusError> {
        let state = self.up()?;
        let entries = match subject {
            Subject::Key(key) => state.keys.get(key).map(std::slice::from_ref),
            Subject::Log(partition) => state.logs.get(partition).map(Vec::as_slice),
        };
        let entries = entries.unwrap_or_default().iter();
        let entries = entries.filter(|(number, _)| *number > after);
        Ok(entries.take(100).cloned().collect())
    }

    async fn changes(&self) -> Vec<(String, Stored)> {
        self.wait(|state| {
            let seen = self.seen.replace(state.n_messages);
            let keys = state.keys.iter();
            let new = keys.filter(|(_, (number, _))| *number > seen);
            let new: Vec<_> = new
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect();
            (!new.is_empty()).then_some(new)
        })
        .await
    }

    fn look_again(&self) {
        self.seen.set(0);
        self.server.changed.notify_waiters();
    }

    async fn send(&self, partition: u8, bytes: Vec<u8>) -> Result<(), BusError> {
        let mut state = self.up()?;
        let queue = state.queues.entry(partition).or_default();
        if queue.len() >= MAX_QUEUE {
            return Err(BusError::Full);
        }
        queue.push_back(bytes);
        self.server.changed.notify_waiters();
        Ok(())
    }

    async fn pull(&self, partition: u8) -> Delivery<()> {
        self.wait(|state| {
            let bytes = state.queues.get_mut(&partition)?.pop_front()?;
            Some(Delivery { bytes, token: () })
        })
        .await
    }

    async fn acknowledge(&self, (): ()) {}

    async fn tell(&self, agent: &str, bytes: Vec<u8>) {
        if let Ok(mut state) = self.up() {
            state
                .words
                .entry(agent.to_owned())
                .or_default()
                .push_back(bytes);
            self.server.changed.notify_waiters();
        }
    }

    async fn hear(&self) -> Vec<u8> {
        self.wait(|state| state.words.get_mut(&self.agent)?.pop_front())
            .await
    }
}
