//! The DNS server: responds for every host of the web, over UDP (RFC 1035).
//!
//! It has address records and one kind of alias, and every failure that a resolver must survive:
//! host names that do not exist, errors, silence. Negative responses have the record that says how
//! long they may be cached (RFC 2308). A query with EDNS gets a response with EDNS (RFC 6891).

use crate::control::{Control, Names};
use crate::web::{Name, Web};

/// A DNS query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The host name with dots, as written.
    pub(crate) name: String,
    /// The type of record.
    pub(crate) kind: u16,
    /// The end of the query in the message.
    end: usize,
}

/// Types of records.
const ADDRESS: u16 = 1;
const ALIAS: u16 = 5;
const AUTHORITY: u16 = 6;
const OPTIONS: u16 = 41;
const ANY: u16 = 255;

/// Response codes.
const FINE: u8 = 0;
const FORMAT_ERROR: u8 = 1;
const FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;

const HEADER_BYTES: usize = 12;
/// The start of the queried name, as a pointer.
const TO_QUESTION: [u8; 2] = [0xc0, HEADER_BYTES as u8];
/// Seconds that a negative response, or an alias, may be cached.
const SHORT_TTL: u32 = 60;

/// Reads the query of a message.
pub(crate) fn question(message: &[u8]) -> Option<Question> {
    let mut at = HEADER_BYTES;
    let mut name = String::new();
    loop {
        let len = usize::from(*message.get(at)?);
        let label = message.get(at + 1..at + 1 + len)?;
        at += 1 + len;
        match len {
            0 => break,
            1..64 if name.len() + len < 255 => {
                if !name.is_empty() {
                    name.push('.');
                }
                name.extend(label.iter().map(|&byte| char::from(byte)));
            }
            _ => return None,
        }
    }
    let kind = u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?);
    let end = at + 4;
    (message.len() >= end).then_some(Question { name, kind, end })
}

/// The response to a message; `None` for no response.
pub(crate) fn answer(message: &[u8], web: &Web, control: &Control) -> Option<Vec<u8>> {
    let header = message.get(..HEADER_BYTES)?;
    let is_query = header[2] & 0x80 == 0;
    let opcode = header[2] >> 3 & 15;
    let n_questions = u16::from_be_bytes([header[4], header[5]]);
    if !is_query || control.names() == Names::Silent {
        return None;
    }
    let Some(question) = question(message).filter(|_| n_questions == 1) else {
        return Some(Answer::new(header, &[]).finish(FORMAT_ERROR));
    };
    let mut answer = Answer::new(header, &message[HEADER_BYTES..question.end]);
    answer.has_options = has_options(header, &message[question.end..]);
    if opcode != 0 {
        return Some(answer.finish(NOT_IMPLEMENTED));
    }
    if control.names() == Names::Failing {
        return Some(answer.finish(FAILURE));
    }
    let code = match web.name(&question.name) {
        Name::Silence => return None,
        Name::HalfSilence if question.kind == ADDRESS => return None,
        Name::HalfSilence => {
            answer.negative = true;
            FINE
        }
        Name::Failure => FAILURE,
        Name::Missing => {
            answer.negative = true;
            NO_SUCH_NAME
        }
        Name::Alias(host) => {
            let own = &web.hosts()[host as usize];
            let address = control.address(host, own.address);
            let name = encode(&own.name);
            answer.add(&TO_QUESTION, ALIAS, SHORT_TTL, &name);
            answer.address(&name, question.kind, own.ttl, address);
            FINE
        }
        Name::Address { host, address, ttl } => {
            let address = control.address(host, address);
            answer.address(&TO_QUESTION, question.kind, ttl, address);
            answer.negative = answer.n_answers == 0;
            FINE
        }
    };
    Some(answer.finish(code))
}

/// Whether the message ends with EDNS options: a record of the root.
fn has_options(header: &[u8], rest: &[u8]) -> bool {
    let [kind_high, kind_low] = OPTIONS.to_be_bytes();
    header[11] > 0 && rest.starts_with(&[0, kind_high, kind_low])
}

fn encode(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// A response under construction.
struct Answer {
    message: Vec<u8>,
    n_answers: u8,
    negative: bool,
    has_options: bool,
}

impl Answer {
    fn new(header: &[u8], question: &[u8]) -> Self {
        let mut message = Vec::with_capacity(512);
        message.extend_from_slice(&header[..2]);
        // An authoritative response that repeats the recursion flag of the query.
        message.extend([0x84 | header[2] & 0x79, 0]);
        message.extend([0, u8::from(!question.is_empty()), 0, 0, 0, 0, 0, 0]);
        message.extend_from_slice(question);
        Self {
            message,
            n_answers: 0,
            negative: false,
            has_options: false,
        }
    }

    fn add(&mut self, owner: &[u8], kind: u16, ttl: u32, data: &[u8]) {
        self.record(owner, kind, ttl, data);
        self.n_answers += 1;
    }

    fn address(&mut self, owner: &[u8], asked: u16, ttl: u32, address: std::net::Ipv4Addr) {
        if asked == ADDRESS || asked == ANY {
            self.add(owner, ADDRESS, ttl, &address.octets());
        }
    }

    fn record(&mut self, owner: &[u8], kind: u16, ttl: u32, data: &[u8]) {
        self.message.extend_from_slice(owner);
        self.message.extend_from_slice(&kind.to_be_bytes());
        self.message.extend_from_slice(&[0, 1]);
        self.message.extend_from_slice(&ttl.to_be_bytes());
        self.message
            .extend_from_slice(&(data.len() as u16).to_be_bytes());
        self.message.extend_from_slice(data);
    }

    fn finish(mut self, code: u8) -> Vec<u8> {
        self.message[3] = code;
        self.message[7] = self.n_answers;
        if self.negative {
            // Serial, refresh, retry, expire, and how long this may be cached.
            let numbers = [1, 3600, 600, 86_400, SHORT_TTL].map(u32::to_be_bytes);
            let names = [encode("ns.test"), encode("root.test")].concat();
            let data = [names, numbers.concat()].concat();
            self.record(&encode("test"), AUTHORITY, SHORT_TTL, &data);
            self.message[9] = 1;
        }
        if self.has_options {
            // Root, type, and in place of the class the maximum message size.
            let [high, low] = OPTIONS.to_be_bytes();
            self.message
                .extend([0, high, low, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
            self.message[11] = 1;
        }
        self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Kind};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn web() -> Web {
        Web::new(Config::default()).unwrap()
    }

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend(encode(name));
        message.extend(kind.to_be_bytes());
        message.extend([0, 1]);
        message
    }

    fn ask(web: &Web, name: &str, kind: u16) -> Option<Vec<u8>> {
        answer(&query(name, kind), web, &Control::default())
    }

    fn name_of(web: &Web, kind: Kind) -> String {
        let found = web.hosts().iter().find(|host| host.kind == kind);
        found.unwrap().name.clone()
    }

    #[test]
    fn an_address() {
        let web = web();
        let host = &web.hosts()[0];
        let message = ask(&web, &host.name.to_uppercase(), ADDRESS).unwrap();
        assert_eq!(message[..4], [0xab, 0xcd, 0x85, FINE]);
        assert_eq!(message[7], 1);
        assert!(message.ends_with(&host.address.octets()));
        let ttl = &message[message.len() - 10..message.len() - 6];
        assert_eq!(ttl, host.ttl.to_be_bytes());
    }

    #[test]
    fn no_other_records() {
        let web = web();
        let message = ask(&web, &web.hosts()[0].name, 28).unwrap();
        assert_eq!((message[3], message[7], message[9]), (FINE, 0, 1));
    }

    #[test]
    fn troubles() {
        let web = web();
        let code = |name: &str| ask(&web, name, ADDRESS).map(|message| message[3]);
        assert_eq!(code("nowhere.test"), Some(NO_SUCH_NAME));
        assert_eq!(code("test"), Some(NO_SUCH_NAME));
        assert_eq!(code("sub.plain0.test"), Some(NO_SUCH_NAME));
        assert_eq!(code(&name_of(&web, Kind::NoName)), Some(NO_SUCH_NAME));
        assert_eq!(code(&name_of(&web, Kind::NameFailure)), Some(FAILURE));
        assert_eq!(code(&name_of(&web, Kind::NameSilence)), None);
    }

    #[test]
    fn names_below() {
        let web = web();
        let endless = name_of(&web, Kind::EndlessHosts);
        let message = ask(&web, &format!("x1234.{endless}"), ADDRESS).unwrap();
        assert_eq!((message[3], message[7]), (FINE, 1));
        let alias = format!("www.{}", name_of(&web, Kind::Dust));
        let message = ask(&web, &alias, ADDRESS).unwrap();
        assert_eq!((message[3], message[7]), (FINE, 2));
    }

    #[test]
    fn broken_for_a_while() {
        let (web, control) = (web(), Control::default());
        let query = query(&web.hosts()[0].name, ADDRESS);
        control.set_names(Names::Failing);
        assert_eq!(answer(&query, &web, &control).unwrap()[3], FAILURE);
        control.set_names(Names::Silent);
        assert_eq!(answer(&query, &web, &control), None);
        control.set_names(Names::Fine);
        assert_eq!(answer(&query, &web, &control).unwrap()[3], FINE);
    }

    #[test]
    fn a_host_that_moves() {
        let (web, control) = (web(), Control::default());
        control.move_host(0, Ipv4Addr::new(127, 1, 0, 9));
        let message = answer(&query(&web.hosts()[0].name, ADDRESS), &web, &control).unwrap();
        assert!(message.ends_with(&[127, 1, 0, 9]));
    }

    #[test]
    fn options_are_answered() {
        let web = web();
        let mut query = query(&web.hosts()[0].name, ADDRESS);
        query[11] = 1;
        query.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        let message = answer(&query, &web, &Control::default()).unwrap();
        assert_eq!(message[11], 1);
        assert!(message.ends_with(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(message: Vec<u8>) {
            let web = Web::new(Config { n_hosts: 1, ..Config::default() }).unwrap();
            answer(&message, &web, &Control::default());
        }
    }
}
