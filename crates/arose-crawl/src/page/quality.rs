//! The quality of a page: its weight, and the rules of users that reject pages.

use std::net::IpAddr;

use arose::digest::digest64;
use arose::mix::mix;
use arose::quality::{Facts, Repetition, weight};
use arose::site::{SiteKind, same_site};
use arose_corpus::quality::Detail;

use crate::error::Error;
use crate::url::{NormalUrl, Url};

/// The weight of a page that duplicates one of another site, as a fraction of its weight otherwise.
const SCRAPED: f64 = 0.1;

/// A page as seen by rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    text: Repetition,
    facts: Facts,
    /// From 0.1 to 1.
    pub(super) weight: f64,
    /// The weight of its own text, whatever it copies.
    pub(super) own: f64,
}

impl Judged {
    /// Returns the weight of a page; `is_scraped` if another site had it first.
    pub(super) fn new((text, facts): (Repetition, Facts), is_scraped: bool) -> Self {
        let own = weight(&text, &facts);
        let weight = match is_scraped {
            true => (own * SCRAPED).max(arose::quality::LEAST),
            false => own,
        };
        Self {
            text,
            facts,
            weight,
            own,
        }
    }
}

/// Whether a URL, given as text, belongs to the same site.
pub(super) fn is_same_site(text: &str, url: &NormalUrl) -> bool {
    let host = |text: &str| Some(Url::parse(text).ok()?.host_str()?.to_owned());
    let name = url.host();
    host(text).is_some_and(|host| same_site(&host, name, SiteKind::Registrable))
}

/// Returns a hash shared by pages with these tags at an IP address.
pub(super) fn template(skeleton: u64, address: IpAddr) -> u64 {
    mix(skeleton ^ digest64(address.to_string().as_bytes()))
}

/// The value that a rule tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Ratio,
    Words,
    Reuse,
    TopWord,
    DupLines,
    DupGrams,
    TitleWords,
    Anchor,
    Hidden,
    LinksPerWord,
    Quality,
}

impl Signal {
    const ALL: [(&str, Self); 11] = [
        ("ratio", Self::Ratio),
        ("words", Self::Words),
        ("reuse", Self::Reuse),
        ("top_word", Self::TopWord),
        ("dup_lines", Self::DupLines),
        ("dup_grams", Self::DupGrams),
        ("title_words", Self::TitleWords),
        ("anchor", Self::Anchor),
        ("hidden", Self::Hidden),
        ("links_per_word", Self::LinksPerWord),
        ("quality", Self::Quality),
    ];

    /// Whether pages have this value only if it affects their weight, unless a rule requests it.
    fn is_estimated(self) -> bool {
        match self {
            Self::Ratio | Self::Reuse | Self::TopWord | Self::DupLines | Self::DupGrams => true,
            Self::Words | Self::TitleWords | Self::Anchor | Self::Hidden => false,
            Self::LinksPerWord | Self::Quality => false,
        }
    }

    /// Returns none if the page has no such value.
    fn of(self, page: &Judged) -> Option<f64> {
        let (text, facts) = (&page.text, &page.facts);
        Some(match self {
            Self::Ratio => return facts.ratio,
            Self::Words => text.n_words.into(),
            Self::Reuse => text.reuse,
            Self::TopWord => text.top_word,
            Self::DupLines => text.dup_line_chars,
            Self::DupGrams => text.dup_5_grams,
            Self::TitleWords => facts.title_words.into(),
            Self::Anchor => facts.anchor,
            Self::Hidden => facts.hidden,
            Self::LinksPerWord => facts.links_per_word(text.n_words),
            Self::Quality => page.weight,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// Longer ones come first, so that `>=` is not parsed as `>`.
const COMPARISONS: [(&str, Comparison); 4] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

/// A rule of a user, such as `ratio > 4`.
#[derive(Debug, Clone, PartialEq)]
struct Rejection {
    signal: Signal,
    comparison: Comparison,
    limit: f64,
    /// The name under which it is counted: without spaces.
    name: Box<str>,
}

impl Rejection {
    fn parse(rule: &str) -> Result<Self, String> {
        let name: String = rule.split_whitespace().collect();
        let found = COMPARISONS
            .into_iter()
            .find_map(|(sign, comparison)| Some((name.split_once(sign)?, comparison)));
        let Some(((signal, limit), comparison)) = found else {
            return Err("expected a signal, a comparison and a number, such as ratio > 4".into());
        };
        let known = Signal::ALL.into_iter().find(|(known, _)| *known == signal);
        let Some((_, signal)) = known else {
            let names = Signal::ALL.map(|(name, _)| name).join(", ");
            return Err(format!(
                "`{signal}` is not a signal; expected one of {names}"
            ));
        };
        match limit.parse::<f64>() {
            Ok(limit) if limit.is_finite() => Ok(Self {
                signal,
                comparison,
                limit,
                name: name.into(),
            }),
            _ => Err(format!("`{limit}` is not a number")),
        }
    }

    fn rejects(&self, page: &Judged) -> bool {
        self.signal
            .of(page)
            .is_some_and(|value| match self.comparison {
                Comparison::Above => value > self.limit,
                Comparison::AtLeast => value >= self.limit,
                Comparison::Below => value < self.limit,
                Comparison::AtMost => value <= self.limit,
            })
    }
}

/// The rules of `quality.reject`, in order.
#[derive(Debug, Default)]
pub(crate) struct Rejections(Vec<Rejection>);

impl Rejections {
    pub(crate) fn parse(rules: &[String]) -> Result<Self, Error> {
        let rules = rules.iter().map(|rule| {
            Rejection::parse(rule)
                .map_err(|cause| Error::Settings(format!("quality.reject: rule `{rule}`: {cause}")))
        });
        Ok(Self(rules.collect::<Result<_, _>>()?))
    }

    /// Returns how exactly they need the signals of a page.
    pub(super) fn detail(&self) -> Detail {
        let is_estimated = |rule: &Rejection| rule.signal.is_estimated();
        match self.0.iter().any(is_estimated) {
            true => Detail::Exact,
            false => Detail::IfNotable,
        }
    }

    /// Returns the first rule that rejects a page.
    pub(super) fn of(&self, page: &Judged) -> Option<Box<str>> {
        let rule = self.0.iter().find(|rule| rule.rejects(page))?;
        Some(rule.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ratio: Option<f64>, hidden: f64) -> Judged {
        let facts = Facts {
            ratio,
            hidden,
            ..Facts::default()
        };
        Judged::new((Repetition::default(), facts), false)
    }

    fn rules(rules: &[&str]) -> Result<Rejections, String> {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        Rejections::parse(&rules).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_reject_by_the_first_reason() {
        let rules = rules(&["ratio > 4", "hidden>=0.5", "quality < .2"]).unwrap();
        let name = |page| rules.of(&page).map(String::from);
        assert_eq!(name(page(Some(4.0), 0.4)), None);
        assert_eq!(name(page(Some(4.1), 0.9)).as_deref(), Some("ratio>4"));
        assert_eq!(name(page(None, 0.5)).as_deref(), Some("hidden>=0.5"));
        assert_eq!(name(page(None, f64::NAN)), None);
        assert_eq!(rules.detail(), Detail::Exact);
        let detail = |rule| self::rules(&[rule]).unwrap().detail();
        for rule in ["words < 3", "hidden > .5", "quality < .2", "anchor > 1"] {
            assert_eq!(detail(rule), Detail::IfNotable, "{rule}");
        }
        for rule in [
            "ratio > 3",
            "reuse > 2",
            "top_word > .05",
            "dup_lines > .1",
            "dup_grams > .1",
        ] {
            assert_eq!(detail(rule), Detail::Exact, "{rule}");
        }
    }

    #[test]
    fn errors_name_the_rule() {
        for (rule, cause) in [
            ("", "expected a signal"),
            ("ratio", "expected a signal"),
            ("ratio = 4", "expected a signal"),
            ("size > 4", "`size` is not a signal; expected one of ratio"),
            ("ratio > four", "`four` is not a number"),
            ("ratio > NaN", "`NaN` is not a number"),
            ("ratio > inf", "`inf` is not a number"),
            ("ratio > > 4", "`>4` is not a number"),
        ] {
            let error = rules(&["ratio > 9", rule]).unwrap_err();
            assert!(
                error.contains(&format!("rule `{rule}`: {cause}")),
                "{error}"
            );
        }
    }

    #[test]
    fn copies_of_other_sites_weigh_a_tenth() {
        let own = Judged::new((Repetition::default(), Facts::default()), false);
        let copy = Judged::new((Repetition::default(), Facts::default()), true);
        assert_eq!((own.weight, copy.weight), (1.0, 0.1));
    }
}
