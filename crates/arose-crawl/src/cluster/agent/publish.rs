//! Stores what the loop has committed, and gives partitions up.

use super::*;

impl<B: Bus> Agent<B> {
    /// Stores what the loop has committed.
    pub(super) async fn publish(&self, mut commits: mpsc::Receiver<Committed>) {
        loop {
            let Ok(commit) = timeout(FLUSH, commits.recv()).await else {
                self.store(Vec::new()).await;
                continue;
            };
            let Some(commit) = commit else {
                return;
            };
            self.note_activity();
            let is_last = commit.is_last;
            if is_last {
                self.is_leaving.set(true);
            }
            self.publish_one(commit).await;
            self.n_commits.set(self.n_commits.get() + 1);
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
        let parts = self.parts.borrow();
        todo.retain(|partition, _| parts[usize::from(*partition)].log.epoch > 0);
        drop(parts);
        let stored = todo.into_iter();
        let stored = stored.map(|(partition, records)| self.store_one(partition, records));
        futures_util::future::join_all(stored).await;
    }

    async fn store_one(&self, partition: u8, records: Records) {
        let at = usize::from(partition);
        let subject = Subject::Log(partition);
        for piece in records.into_pieces() {
            let log = self.parts.borrow()[at].log;
            let title = Title {
                agent: self.id().to_owned(),
                epoch: log.epoch,
                number: log.number,
            };
            let message = wire::frame(&title, &piece);
            let tail = loop {
                match self.bus.append(&subject, log.tail, message.clone()).await {
                    Ok(number) => break number,
                    Err(BusError::Conflict) => {
                        match self.stored(&subject, log.tail, &title).await {
                            Ok(Some(number)) => break number,
                            // Another agent writes.
                            Ok(None) => {
                                self.fail(Ending::Fenced);
                                return std::future::pending().await;
                            }
                            Err(_) => sleep(PAUSE).await,
                        }
                    }
                    Err(_) => sleep(PAUSE).await,
                }
            };
            let log = &mut self.parts.borrow_mut()[at].log;
            (log.tail, log.number) = (tail, log.number + 1);
        }
    }

    /// The number of a message that was stored without an answer.
    async fn stored(
        &self,
        subject: &Subject,
        tail: u64,
        title: &Title,
    ) -> Result<Option<u64>, BusError> {
        let entries = self.bus.read(subject, tail).await?;
        let first = entries.first();
        let first = first.filter(|(_, bytes)| wire::title_of(bytes).as_ref() == Some(title));
        Ok(first.map(|(number, _)| *number))
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
            self.bus.tell(&agent, wire::receipt(&numbers)).await;
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
        self.note_activity();
    }
}
