//! URL rules: learns which parts of a site's URLs do not select a page.
//!
//! *Question.* Many sites serve one page under many URLs: with a session ID, a tracking parameter
//! or a sort order, as `index.html`, as a print view. A crawler that ignores this fetches the same
//! pages forever. A crawler that guesses misses pages. Which parts of the URLs of a site do not
//! matter?
//!
//! *Idea.* Learn them from contents. A [`PartRule`] removes one part. Pairs of fetched URLs that
//! differ in that part alone are trials: their contents are the same or different. Such pairs occur
//! by chance, or through a *probe*: a request for the URL without the part. A [sequential
//! test](Sequential) accepts a rule after 21 consecutive equal pairs, and rejects it at the first
//! unequal one. A session ID that another template of the site has confirmed needs three, and so
//! does one for which all templates of the site together have 21 equal pairs and no unequal one. A
//! parameter with few values, such as a language or a sort order, needs 58, since such parameters
//! often matter only for some pages. Error pages and login walls look the same whatever the URL, so
//! the pairs must show at least five different contents, and contents that many pages share do not
//! count.
//!
//! *Guard.* A rule never drops a URL. A URL whose canonical form is known is *deferred*, and some
//! deferred URLs are fetched nevertheless: 2%, but no more than 12 such *audits* of a rule in a
//! site and one for every ten of its pages; up to half of the first ones, and 30 instead of 12, if
//! the rule is about a parameter with few values; all of the first 20 if a person switched it on
//! without evidence. If an audit finds other content than that of the canonical form, each rule
//! involved is tried alone, and the wrong one is suspended. The caller then fetches the URLs that
//! this rule deferred.
//!
//! *Papers.* Bar-Yossef, Keidar & Schonfeld 2007 (rules from logs, checked with few requests); Wald
//! 1945 (sequential tests). *Parameters.* [`Config`]. *Cost.* About 5 µs of CPU time per URL, and
//! about 130 MB for 100,000 templates with two parameters each; both tables are bounded. *Error.* A
//! rule that is wrong for a share `d` of the pages is accepted with probability `(1 - d)^21`, or
//! `(1 - d)^58` for one with few values, and is then detected after `1 / d` audits on average. *Not
//! for* rewriting that adds something, such as `story?id=1` to `/story/1`, nor for pages whose
//! content changes with every request: no rule is ever accepted there.
//!
//! ```
//! use arose::dust::{Config, Learner, Treatment};
//! let mut learner = Learner::new(Config::default());
//! let mut n_fetched = 0;
//! for n in 0..400 {
//!     let url = format!("http://a.example/item/{}?sid={:x}", n % 40, 7 * n + 1000);
//!     if let Treatment::Fetch = learner.place(&url) {
//!         n_fetched += 1;
//!         let mut wanted = learner.fetched(&url, Some(n % 40));
//!         while let Some(probe) = wanted.pop() {
//!             n_fetched += 1;
//!             wanted.extend(learner.fetched(&probe, Some(n % 40)));
//!         }
//!     }
//! }
//! let canonical = learner.canonical("http://a.example/item/7?sid=new");
//! assert_eq!(canonical.unwrap().url, "http://a.example/item/7");
//! assert!(n_fetched < 100);
//! ```

mod audit;
mod hypothesis;
mod learner;
mod memory;
mod names;
mod rule;
mod saved;
mod sequential;
#[cfg(test)]
mod shop;
mod standing;
#[cfg(test)]
mod tests;
mod wishes;

pub use learner::Learner;
pub use names::is_known_name;
pub use rule::{Alphabet, Class, NoRule, PartRule};
pub use saved::Saved;
pub use sequential::{Outcome, Sequential, lower_bound};
pub use standing::{Canonical, Config, Event, RuleId, Standing, State, Treatment};
pub use wishes::Errand;
