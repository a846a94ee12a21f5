//! URLs between agents: sends, receives, and learns what was confirmed.

use super::*;

impl<B: Bus> RunningAgent<B> {
    /// Sends URLs that a former owner of a partition may not have sent.
    pub(super) fn send_for(&self, partition: u8, unconfirmed: Unconfirmed) {
        let Unconfirmed {
            epoch,
            batch,
            target,
            urls,
        } = unconfirmed;
        for urls in urls.chunks(wire::MAX_BATCH) {
            let number = self.n_resent.get() + 1;
            self.n_resent.set(number);
            self.set_underway(
                Outgoing {
                    number,
                    target,
                    sources: Vec::new(),
                    urls: urls.to_vec(),
                },
                vec![(partition, epoch, batch)],
            );
        }
    }

    pub(super) fn set_underway(&self, batch: Outgoing, sources: Vec<(u8, u64, u64)>) {
        let Outgoing {
            number,
            target,
            urls,
            ..
        } = batch;
        let message = Batch {
            agent: self.id().to_owned(),
            number,
            urls,
        };
        let underway = Underway {
            target,
            message: message.to_message(),
            sources,
            due: Duration::ZERO,
            wait: RESEND,
            epoch: 0,
        };
        let mut all = self.underway.borrow_mut();
        all.insert(number, underway);
        let is_crowded = all.len() > MAX_UNCONFIRMED;
        self.shared.is_crowded.store(is_crowded, Ordering::Relaxed);
        self.tick.notify_one();
    }

    /// Sends batches that nobody has confirmed in time, or whose receiver has changed.
    pub(super) async fn send_again(&self) {
        const AT_ONCE: usize = 200;
        let time = now();
        let mut due = Vec::new();
        {
            let view = self.view.borrow();
            let mut underway = self.underway.borrow_mut();
            for (number, batch) in underway.iter_mut() {
                let epoch = view.owners[usize::from(batch.target)].1.epoch;
                let has_moved = batch.epoch > 0 && epoch > batch.epoch;
                if (batch.due <= time || has_moved) && due.len() < AT_ONCE {
                    batch.epoch = epoch.max(1);
                    batch.due = time + batch.wait;
                    batch.wait = (2 * batch.wait).min(8 * RESEND);
                    due.push((*number, batch.target, batch.message.clone()));
                }
            }
        }
        let sent = due.into_iter().map(|(number, target, message)| async move {
            if self.bus.send(target, message).await.is_err()
                && let Some(batch) = self.underway.borrow_mut().get_mut(&number)
            {
                batch.due = now() + Duration::from_secs(1);
            }
        });
        futures_util::future::join_all(sent).await;
    }

    /// Receives URLs for a partition.
    pub(super) async fn receive(&self, partition: u8) {
        loop {
            let delivery = self.bus.pull(partition).await;
            let Some(batch) = Batch::read(&delivery.bytes) else {
                // Nobody will ever be able to read it.
                self.bus.acknowledge(delivery.token).await;
                continue;
            };
            let number = self.n_deliveries.get() + 1;
            self.n_deliveries.set(number);
            let received = Received {
                partition,
                sender: batch.agent,
                number: batch.number,
                token: delivery.token,
            };
            self.deliveries.borrow_mut().insert(number, received);
            self.order(LoopOrder::Apply {
                delivery: number,
                partition,
                urls: batch.urls,
            })
            .await;
        }
    }

    /// Hears what others say.
    pub(super) async fn hear(&self) {
        loop {
            let message = self.bus.hear().await;
            if let Some(word) = Word::read(&message) {
                self.take_word(word).await;
            }
        }
    }

    /// Takes what an agent says, which may be this one.
    pub(super) async fn take_word(&self, word: Word) {
        match word {
            Word::Receipt(numbers) => self.take_receipt(&numbers),
            Word::Pages(agent, pages) => self.compare_pages(&agent, pages).await,
            Word::Findings(agent, findings) => self.take_findings(&agent, findings).await,
            word => self.take_address_word(word).await,
        }
    }

    /// Learns what others have confirmed.
    fn take_receipt(&self, numbers: &[u64]) {
        for number in numbers {
            let batch = self.underway.borrow_mut().remove(number);
            let sources = batch.map_or(Vec::new(), |batch| batch.sources);
            self.note_activity();
            let mut parts = self.parts.borrow_mut();
            for (partition, epoch, batch) in sources {
                let part = &mut parts[usize::from(partition)];
                if part.stage != Stage::Foreign {
                    part.carry.push(&Record::Received { epoch, batch });
                }
            }
        }
        let is_crowded = self.underway.borrow().len() > MAX_UNCONFIRMED;
        self.shared.is_crowded.store(is_crowded, Ordering::Relaxed);
    }
}
