//! IP addresses between agents: asks for them, grants and returns them ([`super::address`]).

use super::*;
use crate::cluster::address::{Answer, granting_partition, window};

/// How long requests for IP addresses are gathered.
const GATHER: Duration = Duration::from_millis(2);

impl<B: Bus> RunningAgent<B> {
    /// Asks for the IP addresses that the loop wants, and grants those of others.
    pub(super) async fn tend_addresses(&self) {
        let window = window(&self.config.terms);
        loop {
            let _ = timeout(TICK, self.shared.addresses.bell.notified()).await;
            sleep(GATHER).await;
            let (asks, returns) = self.shared.addresses.outgoing(window, now());
            let mut words: BTreeMap<String, (Vec<Ask>, Vec<Return>)> = BTreeMap::new();
            // Returns come first: what is asked for may have been returned before.
            for back in returns {
                if let Some(granter) = self.granter_of(back.address) {
                    words.entry(granter).or_default().1.push(back);
                }
            }
            for ask in asks {
                if let Some(granter) = self.granter_of(ask.address) {
                    words.entry(granter).or_default().0.push(ask);
                }
            }
            for (granter, (asks, returns)) in words {
                let me = self.id().to_owned();
                let returns = Word::Returns(me.clone(), returns);
                let asks = Word::Asks(me, asks);
                for word in [returns, asks] {
                    self.say(&granter, word).await;
                }
            }
            if self.shared.fence.is_open() {
                let answers = self.granter.borrow_mut().look(now());
                self.answer(answers).await;
            }
        }
    }

    /// Who grants an IP address.
    fn granter_of(&self, address: std::net::IpAddr) -> Option<String> {
        let view = self.view.borrow();
        let partition = usize::from(granting_partition(address));
        view.owners[partition].1.owner.clone()
    }

    /// Says something to an agent, which may be this one.
    pub(super) async fn say(&self, agent: &str, word: Word) {
        let is_nothing = match &word {
            Word::Asks(_, asks) => asks.is_empty(),
            Word::Returns(_, returns) => returns.is_empty(),
            _ => false,
        };
        if is_nothing {
            return;
        }
        match agent == self.id() {
            true => Box::pin(self.take_word(word)).await,
            false => self.bus.tell(agent, word.to_message()).await,
        }
    }

    /// Takes what another agent says of IP addresses.
    pub(super) async fn take_address_word(&self, word: Word) {
        let (now, addresses) = (now(), &self.shared.addresses);
        match word {
            Word::Asks(agent, asks) if self.shared.fence.is_open() => {
                let answers = {
                    let mut granter = self.granter.borrow_mut();
                    let asks = asks.into_iter();
                    asks.filter_map(|ask| granter.ask(&agent, ask, now))
                        .collect()
                };
                self.answer(answers).await;
            }
            Word::Returns(agent, returns) if self.shared.fence.is_open() => {
                let answers = {
                    let mut granter = self.granter.borrow_mut();
                    let returns = returns.into_iter();
                    returns
                        .filter_map(|back| granter.take_back(&agent, back, now))
                        .collect()
                };
                self.answer(answers).await;
            }
            Word::Grants(grants) => {
                grants
                    .into_iter()
                    .for_each(|grant| addresses.grant(grant, now));
                self.shared.bell.notify_one();
            }
            Word::Recalls(recalled) => {
                recalled
                    .into_iter()
                    .for_each(|address| addresses.recall(address, now));
            }
            _ => {}
        }
    }

    /// Sends what a granter says.
    async fn answer(&self, answers: Vec<Answer>) {
        let mut grants: BTreeMap<String, Vec<Grant>> = BTreeMap::new();
        let mut recalls: BTreeMap<String, Vec<std::net::IpAddr>> = BTreeMap::new();
        for answer in answers {
            match answer {
                Answer::Grant(agent, grant) => grants.entry(agent).or_default().push(grant),
                Answer::Recall(agent, address) => recalls.entry(agent).or_default().push(address),
            }
        }
        for (agent, grants) in grants {
            self.say(&agent, Word::Grants(grants)).await;
        }
        for (agent, recalls) in recalls {
            self.say(&agent, Word::Recalls(recalls)).await;
        }
    }
}
