//! Fingerprints of URLs: 16 bytes that stand for a URL.
//!
//! *Question.* A billion URLs of 80 bytes are 75 GiB. How can they be stored in fewer bytes, with
//! the URLs of one host next to each other?
//!
//! *Idea.* Hash the URL in two halves: 64 bits for `scheme://host[:port]`, 64 bits for path and
//! query (Balke & Pinto 2017). In sorted order, the pages of one host are one range of keys. The
//! links of a page, which mostly stay on their host, touch a few neighbouring blocks. The hash is
//! XXH3, whose output is frozen, so fingerprints may be stored.
//!
//! *Cost.* 16 bytes, about 20 ns. *Error.* Among `n` URLs of one host, two share a fingerprint with
//! probability about `n^2 / 2^65`: 2.7e-6 for ten million. If that is too much, keep the strings
//! ([`crate::seen`] can). *Not for* comparing URLs that were normalized by different rules.
//!
//! [`Md5Halves`] is the form of the lecture: two MD5 digests of 128 bits.

use arose::digest::digest64;
use md5::{Digest as _, Md5};

use crate::url::NormalUrl;

/// Two hashes that stand for a URL. The order puts the URLs of one host together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// Of `scheme://host[:port]`.
    pub host: u64,
    /// Of path and query.
    pub rest: u64,
}

impl Fingerprint {
    /// Returns the fingerprint of a URL.
    #[must_use]
    pub fn of(url: &NormalUrl) -> Self {
        Self {
            host: digest64(url.origin().as_bytes()),
            rest: digest64(url.rest().as_bytes()),
        }
    }

    /// Returns both hashes in one number, which sorts like fingerprints.
    #[must_use]
    pub(crate) fn key(self) -> u128 {
        u128::from(self.host) << 64 | u128::from(self.rest)
    }
}

/// Writes 32 hexadecimal digits.
impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.key())
    }
}

/// The two MD5 digests of a URL, for exchanging fingerprints with programs that use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Md5Halves {
    /// Of `scheme://host[:port]`.
    pub host: [u8; 16],
    /// Of path and query.
    pub rest: [u8; 16],
}

impl Md5Halves {
    /// Returns the digests of a URL.
    #[must_use]
    pub fn of(url: &NormalUrl) -> Self {
        let [host, rest] = [url.origin(), url.rest()].map(|part| Md5::digest(part).into());
        Self { host, rest }
    }
}

/// Writes 64 hexadecimal digits.
impl std::fmt::Display for Md5Halves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.host
            .iter()
            .chain(&self.rest)
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Normalizer;

    fn url(text: &str) -> NormalUrl {
        Normalizer::default().normalize(text, None).unwrap()
    }

    /// The example of the lecture, without the newline that its digests include by mistake.
    #[test]
    fn md5_of_new_south_wales() {
        let halves = Md5Halves::of(&url("http://en.wikipedia.org/wiki/New_South_Wales"));
        assert_eq!(
            halves.to_string(),
            "c8c50bcae456402f5123ea38e124cb3ffe8b24a00e55f268c9f2419697356e21"
        );
    }

    #[test]
    fn frozen_value() {
        let fingerprint = Fingerprint::of(&url("http://en.wikipedia.org/wiki/New_South_Wales"));
        assert_eq!(fingerprint.to_string(), "b3aca972a41c2b5c7b0d93b6535e2dad");
    }

    #[test]
    fn pages_of_one_host_lie_together() {
        let [a, b, c] = ["http://h/a", "http://h/b", "https://h/a"].map(url);
        let [a, b, c] = [a, b, c].map(|url| Fingerprint::of(&url));
        assert_eq!(a.host, b.host);
        assert_ne!(a.host, c.host);
        assert_eq!(a.rest, c.rest);
        assert_eq!(a.cmp(&b), a.key().cmp(&b.key()));
    }
}
