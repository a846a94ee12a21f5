//! Takes and hands over partitions, fences the silent, and recognizes the end.

use super::*;

impl<B: Bus> RunningAgent<B> {
    /// Takes and hands over partitions, fences the silent, and recognizes the end.
    pub(super) async fn govern(agent: Rc<Self>) {
        // Those who came at the same time should be seen before partitions are taken.
        sleep(agent.config.terms.renewal().min(Duration::from_secs(1))).await;
        let mut was_idle = false;
        let mut has_ended = false;
        loop {
            let _ = timeout(TICK, agent.tick.notified()).await;
            agent.fence_silent().await;
            if !has_ended {
                has_ended = agent.settle_partitions(&agent).await;
            }
            agent.send_again().await;
            let is_idle = agent.is_idle();
            if is_idle != was_idle {
                was_idle = is_idle;
                agent.beat.notify_one();
            }
            let is_over = agent.view.borrow_mut().is_over();
            if is_idle && is_over && !agent.is_leaving.get() {
                let key = Subject::Key(END.to_owned());
                // Another agent may have been first.
                let _ = agent.bus.append(&key, 0, b"{}".to_vec()).await;
            }
        }
    }

    /// Fences agents that have not renewed their leases: if they still live, they learn it before
    /// they can do anything.
    async fn fence_silent(&self) {
        let terms = &self.config.terms;
        let now = now();
        if now.saturating_sub(self.renewed.get()) > terms.lease / 2 {
            return;
        }
        let silent = self.view.borrow().silent(terms, self.id(), now);
        for (id, seen) in silent {
            let dead = AgentDocument {
                presence: Presence::Dead,
                ..seen.document
            };
            let key = Subject::Key(agent_key(&id));
            let bytes = document::write(&dead);
            let fenced = self
                .bus
                .append(&key, seen.watched.revision, bytes.clone())
                .await;
            if let Ok(revision) = fenced {
                let key = agent_key(&id);
                self.view.borrow_mut().take(&key, &(revision, bytes), now);
            }
        }
    }

    /// Takes what should be here, and hands over what should not; whether the crawl has ended here.
    async fn settle_partitions(&self, agent: &Rc<Self>) -> bool {
        if self.view.borrow().has_ended {
            self.order(LoopOrder::End(Ending::Done)).await;
            return true;
        }
        if self.is_leaving.get() || !self.shared.fence.is_open() {
            return false;
        }
        let is_draining = self.view.borrow().draining.contains(self.id());
        let desired = self.view.borrow().desired();
        let waited = now().saturating_sub(self.begun.get());
        let is_settled = waited >= self.config.terms.taker_waits();
        let mut n_held = 0;
        for partition in 0..=u8::MAX {
            let at = usize::from(partition);
            let is_wanted = desired
                .as_ref()
                .is_some_and(|desired| desired[at] == self.id());
            let stage = self.parts.borrow()[at].stage;
            n_held += usize::from(stage != Stage::Foreign);
            match (stage, is_wanted) {
                (Stage::Foreign, true) => {
                    let (revision, owner) = self.view.borrow().owners[at].clone();
                    let is_ours = owner.owner.as_deref() == Some(self.id());
                    let is_free = self.view.borrow().is_free(partition);
                    let is_known = revision > 0 && self.view.borrow().knows(&owner);
                    if is_ours || is_free && (is_known || is_settled) {
                        self.parts.borrow_mut()[at].stage = Stage::Taking;
                        let agent = Rc::clone(agent);
                        spawn_local(async move {
                            agent.take(partition, revision, owner).await;
                        });
                    }
                }
                (Stage::Open, false) if desired.is_some() || is_draining => {
                    self.parts.borrow_mut()[at].stage = Stage::Closing;
                    self.granter.borrow_mut().close(partition);
                    self.order(LoopOrder::Close(partition)).await;
                }
                (Stage::Foreign, false) => self.disown(partition).await,
                _ => {}
            }
        }
        if is_draining && n_held == 0 {
            self.order(LoopOrder::End(Ending::Drained)).await;
            return true;
        }
        false
    }

    /// Gives a partition up that documents say is here, though it is not.
    async fn disown(&self, partition: u8) {
        let (revision, owner) = self.view.borrow().owners[usize::from(partition)].clone();
        if owner.owner.as_deref() != Some(self.id()) {
            return;
        }
        let document = OwnerDocument {
            owner: None,
            ..owner
        };
        let key = Subject::Key(owner_key(partition));
        let bytes = document::write(&document);
        if let Ok(revision) = self.bus.append(&key, revision, bytes).await {
            self.view.borrow_mut().own(partition, revision, document);
        }
    }

    /// Takes a partition, unless another agent is first.
    async fn take(self: Rc<Self>, partition: u8, revision: u64, owner: OwnerDocument) {
        let at = usize::from(partition);
        let epoch = match owner.owner.as_deref() == Some(self.id()) {
            // Taken without an answer.
            true => owner.epoch,
            false => {
                let document = OwnerDocument {
                    owner: Some(self.id().to_owned()),
                    epoch: owner.epoch + 1,
                };
                let key = Subject::Key(owner_key(partition));
                let bytes = document::write(&document);
                match self.bus.append(&key, revision, bytes).await {
                    Ok(revision) => {
                        let epoch = document.epoch;
                        self.view.borrow_mut().own(partition, revision, document);
                        epoch
                    }
                    Err(_) => {
                        self.parts.borrow_mut()[at].stage = Stage::Foreign;
                        return;
                    }
                }
            }
        };
        match self.open(partition, epoch).await {
            Ok(()) => {
                let agent = Rc::clone(&self);
                let receiver = spawn_local(async move { agent.receive(partition).await });
                self.granter.borrow_mut().open(partition, epoch, now());
                let mut parts = self.parts.borrow_mut();
                parts[at].stage = Stage::Open;
                parts[at].receiver = Some(receiver.abort_handle());
            }
            Err(ending) => self.fail(ending),
        }
    }

    /// Reads the log of a partition, and hands its state to the loop.
    async fn open(&self, partition: u8, epoch: u64) -> Result<(), Ending> {
        let subject = Subject::Log(partition);
        let (mut state, mut messages, mut tail) = (State::default(), Vec::new(), 0);
        let title = Title {
            agent: self.id().to_owned(),
            epoch,
            number: 0,
        };
        let message = wire::frame(&title, &[]);
        let mut is_contested = false;
        loop {
            let entries = match self.bus.read(&subject, tail).await {
                Ok(entries) => entries,
                Err(_) => {
                    sleep(PAUSE).await;
                    continue;
                }
            };
            if !entries.is_empty() {
                is_contested = false;
                for (number, bytes) in entries {
                    let taken = state.take(&bytes).ok_or_else(|| unread(partition))?;
                    if taken.epoch > epoch {
                        return Err(Ending::Fenced);
                    }
                    tail = number;
                    messages.push(bytes);
                }
                continue;
            }
            if is_contested {
                // The log has lost what was read.
                return Err(Ending::Fenced);
            }
            // From here on nobody else can write.
            match self.bus.append(&subject, tail, message.clone()).await {
                Ok(number) => {
                    tail = number;
                    messages.push(message);
                    break;
                }
                Err(BusError::Conflict) => is_contested = true,
                Err(_) => sleep(PAUSE).await,
            }
        }
        if let Err(error) = self.copies.replace(partition, &messages) {
            return Err(Ending::Failed(format!("a copy of a log: {error}")));
        }
        self.parts.borrow_mut()[usize::from(partition)].log = Log {
            tail,
            epoch,
            number: 1,
        };
        let unconfirmed = state.unconfirmed();
        self.hand_to_loop(partition, epoch, state).await;
        for unconfirmed in unconfirmed {
            self.send_for(partition, unconfirmed);
        }
        Ok(())
    }

    async fn hand_to_loop(&self, partition: u8, epoch: u64, state: State) {
        let (hosts, ended, waiting) = state.into_urls();
        let origins: Vec<String> = hosts.iter().map(|host| host.origin.clone()).collect();
        let mut hosts = hosts.into_iter().peekable();
        let mut ended = ended.into_iter().peekable();
        let mut waiting = waiting.into_iter().peekable();
        loop {
            let opening = Opening {
                partition,
                epoch,
                hosts: hosts.by_ref().take(PIECE).collect(),
                ended: ended.by_ref().take(PIECE).collect(),
                waiting: Vec::new(),
                is_last: false,
            };
            // All hosts come before the URLs that wait there.
            let waiting_now = match hosts.peek().is_none() {
                true => waiting.by_ref().take(PIECE).collect(),
                false => Vec::new(),
            };
            let named = waiting_now.into_iter();
            let named = named.map(|url| (origins[url.host].clone(), url));
            let is_last =
                hosts.peek().is_none() && ended.peek().is_none() && waiting.peek().is_none();
            let opening = Opening {
                waiting: named.collect(),
                is_last,
                ..opening
            };
            self.order(LoopOrder::Open(Box::new(opening))).await;
            if is_last {
                return;
            }
        }
    }
}

fn unread(partition: u8) -> Ending {
    Ending::Failed(format!("the log of partition {partition} cannot be read"))
}
