//! Stores what the loop has committed, and gives partitions up.

use super::*;

/// How a log ends.
enum Mended {
    /// With the message that was looked for.
    Stored(u64),
    /// With all messages before it.
    Behind(u64),
}

impl<B: Bus> RunningAgent<B> {
    /// Stores what the loop has committed.
    pub(super) async fn publish(&self, mut commits: mpsc::Receiver<Committed>) {
        loop {
            let commit = timeout(FLUSH, commits.recv()).await;
            if self.is_doubtful.take() {
                self.mend_all().await;
            }
            let Ok(commit) = commit else {
                self.store(Vec::new()).await;
                continue;
            };
            let Some(mut commit) = commit else {
                return;
            };
            self.note_activity();
            // If servers are slow, commits are stored together.
            let mut n_commits = 1;
            while commit.is_open()
                && let Ok(next) = commits.try_recv()
            {
                commit.append(next);
                n_commits += 1;
            }
            let is_last = commit.is_last;
            if is_last {
                self.is_leaving.set(true);
            }
            self.publish_one(commit).await;
            self.n_commits.set(self.n_commits.get() + n_commits);
            if is_last {
                let left = self.document(Presence::Left);
                let _ = timeout(Duration::from_secs(5), self.write_document(&left)).await;
                return;
            }
        }
    }

    async fn publish_one(&self, commit: Committed) {
        let Committed {
            first,
            then,
            batches,
            new_pages,
            applied,
            closed,
            ..
        } = commit;
        for batch in batches {
            let number = batch.number;
            let epochs = batch.sources.iter().map(|&source| {
                let epoch = self.parts.borrow()[usize::from(source)].log.epoch;
                (source, epoch, number)
            });
            let sources = epochs.collect();
            self.set_underway(batch, sources);
        }
        self.store(first).await;
        {
            let mut parts = self.parts.borrow_mut();
            for (partition, records) in then {
                parts[usize::from(partition)].carry.append(records);
            }
        }
        self.take_new_pages(new_pages);
        self.confirm(applied).await;
        if !closed.is_empty() {
            self.store(Vec::new()).await;
            let released = closed.iter().map(|&partition| self.release(partition));
            futures_util::future::join_all(released).await;
        }
    }

    /// Stores records in the logs of partitions, behind those that wait there.
    async fn store(&self, first: Vec<(u8, Records)>) {
        let mut todo: BTreeMap<u8, Records> = BTreeMap::new();
        for (partition, part) in (0..=u8::MAX).zip(self.parts.borrow_mut().iter_mut()) {
            if !part.carry.is_empty() {
                todo.insert(partition, std::mem::take(&mut part.carry));
            }
        }
        for (partition, records) in first {
            todo.entry(partition).or_default().append(records);
        }
        todo.retain(|&partition, _| self.is_logged(partition));
        let stored = todo.into_iter();
        let stored = stored.map(|(partition, records)| self.store_one(partition, records));
        futures_util::future::join_all(stored).await;
    }

    /// Whether this agent writes the log of a partition.
    fn is_logged(&self, partition: u8) -> bool {
        self.parts.borrow()[usize::from(partition)].log.epoch > 0
    }

    async fn store_one(&self, partition: u8, records: Records) {
        let at = usize::from(partition);
        for piece in records.into_pieces() {
            let log = self.parts.borrow()[at].log;
            let title = Title {
                agent: self.id().to_owned(),
                epoch: log.epoch,
                number: log.number,
            };
            let message = wire::frame(&title, &piece);
            let tail = self.store_message(partition, log.tail, &message).await;
            let log = &mut self.parts.borrow_mut()[at].log;
            (log.tail, log.number) = (tail, log.number + 1);
        }
        self.shorten(partition).await;
    }

    /// Replaces a log that has grown by a snapshot.
    async fn shorten(&self, partition: u8) {
        let at = usize::from(partition);
        let (mut log, n_snapshot) = {
            let part = &self.parts.borrow()[at];
            (part.log, part.n_snapshot)
        };
        let limit = self.config.snapshot_bytes.max(3 * n_snapshot);
        if self.copies.n_bytes(partition) < limit {
            return;
        }
        let mut state = State::default();
        let copy = self.copies.read(partition).unwrap_or_default();
        if copy.iter().any(|message| state.take(message).is_none()) {
            return;
        }
        let (mut messages, mut first) = (Vec::new(), None);
        for piece in state.snapshot().into_pieces() {
            let title = Title {
                agent: self.id().to_owned(),
                epoch: log.epoch,
                number: log.number,
            };
            let message = wire::frame(&title, &piece);
            log.tail = self.store_message(partition, log.tail, &message).await;
            log.number += 1;
            first.get_or_insert(log.tail);
            messages.push(message);
            self.parts.borrow_mut()[at].log = log;
        }
        if let Err(error) = self.copies.replace(partition, &messages) {
            return self.fail(Ending::Failed(format!("a copy of a log: {error}")));
        }
        self.parts.borrow_mut()[at].n_snapshot = self.copies.n_bytes(partition);
        // What stays is read again, which changes nothing.
        let _ = self.bus.purge(partition, first.unwrap_or(0)).await;
    }

    /// Stores a message behind that of the number `tail`, and in the copy; returns its number.
    async fn store_message(&self, partition: u8, mut tail: u64, message: &[u8]) -> u64 {
        let subject = Subject::Log(partition);
        let number = loop {
            match self.bus.append(&subject, tail, message.to_vec()).await {
                Ok(number) => break number,
                Err(BusError::Conflict) => match self.mend(partition, Some(message)).await {
                    Ok(Mended::Stored(number)) => break number,
                    Ok(Mended::Behind(number)) => tail = number,
                    // Another agent writes.
                    Err(BusError::Conflict) => {
                        self.fail(Ending::Fenced);
                        return std::future::pending().await;
                    }
                    Err(_) => sleep(PAUSE).await,
                },
                Err(_) => sleep(PAUSE).await,
            }
        };
        if let Err(error) = self.copies.push(partition, message) {
            self.fail(Ending::Failed(format!("a copy of a log: {error}")));
            return std::future::pending().await;
        }
        number
    }

    /// Looks at all logs of this agent, and writes again what they lack.
    async fn mend_all(&self) {
        for partition in 0..=u8::MAX {
            let at = usize::from(partition);
            let stage = self.parts.borrow()[at].stage;
            if !matches!(stage, Stage::Open | Stage::Closing) {
                continue;
            }
            match self.mend(partition, None).await {
                Ok(Mended::Stored(number) | Mended::Behind(number)) => {
                    self.parts.borrow_mut()[at].log.tail = number;
                }
                Err(BusError::Conflict) => return self.fail(Ending::Fenced),
                Err(_) => self.is_doubtful.set(true),
            }
        }
    }

    /// Writes again what the log of a partition lacks, unless it ends with `message`, or with one
    /// of another agent.
    async fn mend(&self, partition: u8, message: Option<&[u8]>) -> Result<Mended, BusError> {
        let subject = Subject::Log(partition);
        let last = self.bus.last(&subject).await?;
        let copy = self.copies.read(partition);
        let copy = copy.map_err(|error| BusError::Unavailable(error.to_string()))?;
        let (mut tail, n_there) = match last {
            None => (0, 0),
            // Stored without an answer.
            Some((number, bytes)) if message == Some(&bytes[..]) => {
                return Ok(Mended::Stored(number));
            }
            Some((number, bytes)) => {
                let at = copy.iter().rposition(|message| *message == bytes);
                (number, at.ok_or(BusError::Conflict)? + 1)
            }
        };
        for message in &copy[n_there..] {
            let stored = self.bus.append(&subject, tail, message.clone()).await;
            // Whoever else may have written is seen at the next attempt.
            tail = stored.map_err(|error| BusError::Unavailable(error.to_string()))?;
        }
        Ok(Mended::Behind(tail))
    }

    /// Tells others that their URLs are queued here.
    async fn confirm(&self, applied: Vec<u64>) {
        let mut senders: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut tokens = Vec::new();
        for delivery in applied {
            let received = self.deliveries.borrow_mut().remove(&delivery);
            if let Some(received) = received {
                let numbers = senders.entry(received.sender).or_default();
                numbers.push(received.number);
                tokens.push(received.token);
            }
        }
        for (agent, numbers) in senders {
            self.bus
                .tell(&agent, Word::Receipt(numbers).to_message())
                .await;
        }
        let tokens = tokens.into_iter();
        futures_util::future::join_all(tokens.map(|token| self.bus.acknowledge(token))).await;
    }

    /// Gives a partition up, with everything stored.
    async fn release(&self, partition: u8) {
        let at = usize::from(partition);
        if let Some(receiver) = self.parts.borrow_mut()[at].receiver.take() {
            receiver.abort();
        }
        let (revision, owner) = self.view.borrow().owners[at].clone();
        let document = OwnerDocument {
            owner: None,
            epoch: owner.epoch,
        };
        let key = Subject::Key(owner_key(partition));
        let bytes = document::write(&document);
        loop {
            match self.bus.append(&key, revision, bytes.clone()).await {
                Ok(revision) => {
                    self.view.borrow_mut().own(partition, revision, document);
                    break;
                }
                // Stored without an answer, or not ours any more.
                Err(BusError::Conflict) => break,
                Err(_) if self.is_leaving.get() && !self.shared.fence.is_open() => break,
                Err(_) => sleep(PAUSE).await,
            }
        }
        let mut underway = self.underway.borrow_mut();
        for batch in underway.values_mut() {
            batch.sources.retain(|(source, ..)| *source != partition);
        }
        let mut deliveries = self.deliveries.borrow_mut();
        deliveries.retain(|_, received| received.partition != partition);
        self.parts.borrow_mut()[at] = Part::default();
        self.copies.remove(partition);
        self.note_activity();
    }
}
