//! The site of a page, derived from its host.
//!
//! *Question.* Pages of one site share a template, so similarity means less between them than
//! between pages of different sites. Which hosts belong together?
//!
//! *Idea.* The host itself is too fine (`www.x.org` and `x.org`), the last label too coarse
//! (`org`). There are two definitions in between:
//!
//! - [`SiteKind::Henzinger`] removes the first label of any host of three labels or more (Henzinger
//!   2006). It ignores registries: `example.co.uk` belongs to the site `co.uk`, and `a.www.x.org`
//!   to `www.x.org` although `www.x.org` belongs to `x.org`. All published precision values were
//!   measured with this definition.
//! - [`SiteKind::Registrable`] takes the longest public suffix and one more label: the domain that
//!   one owner registered. A host that is itself a suffix is its own site. The list is the one
//!   compiled into the crate `psl`.
//!
//! In both cases the port and one trailing dot are removed first, and the host is lower-cased. An
//! IP address is a site by itself, IPv6 with or without square brackets.
//!
//! *Cost.* One pass over the host, and no allocation if it is already lower-case ASCII. *Error.*
//! None by definition, but a public suffix list becomes outdated: keep `psl` up to date and never
//! compare sites computed by different versions.
//!
//! *Not for* deciding who may set a cookie, nor for strings that are not hosts, which are treated
//! as if they were. Unicode and punycode spellings of a host are different sites; pass all hosts in
//! the same spelling.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The definition of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// Everything after the first dot, if the host has more than one.
    Henzinger,
    /// The public suffix and one more label.
    Registrable,
}

/// Returns the site of `host`, which may be followed by a port.
///
/// ```
/// use arose::site::{SiteKind, site};
/// assert_eq!(site("WWW.Example.co.uk:8080", SiteKind::Registrable), "example.co.uk");
/// assert_eq!(site("example.co.uk", SiteKind::Henzinger), "co.uk");
/// assert_eq!(site("192.168.0.1", SiteKind::Henzinger), "192.168.0.1");
/// ```
#[must_use]
pub fn site(host: &str, kind: SiteKind) -> Cow<'_, str> {
    match lower_case(without_root(without_port(host))) {
        Cow::Borrowed(name) => Cow::Borrowed(site_of_name(name, kind)),
        Cow::Owned(name) => Cow::Owned(site_of_name(&name, kind).to_owned()),
    }
}

/// Returns whether two hosts belong to the same site under the given definition; an equivalence
/// relation.
///
/// ```
/// use arose::site::{SiteKind, same_site};
/// assert!(same_site("www.x.org", "x.org", SiteKind::Henzinger));
/// assert!(!same_site("a.www.x.org", "x.org", SiteKind::Henzinger));
/// ```
#[must_use]
pub fn same_site(a: &str, b: &str, kind: SiteKind) -> bool {
    site(a, kind) == site(b, kind)
}

fn site_of_name(name: &str, kind: SiteKind) -> &str {
    if is_address(name) {
        return name;
    }
    match kind {
        SiteKind::Henzinger => after_first_of_many_dots(name),
        SiteKind::Registrable => registrable(name),
    }
}

fn after_first_of_many_dots(name: &str) -> &str {
    match name.split_once('.') {
        Some((_, rest)) if rest.contains('.') => rest,
        _ => name,
    }
}

/// Returns the registrable domain. A name with an empty label is not a domain and is left
/// unchanged, as the list's own test cases require for a leading dot.
fn registrable(name: &str) -> &str {
    if name.split('.').any(str::is_empty) {
        return name;
    }
    psl::domain_str(name).unwrap_or(name)
}

/// Removes `:port`. The colons of a bare IPv6 address do not begin a port.
fn without_port(host: &str) -> &str {
    if host.parse::<Ipv6Addr>().is_ok() {
        return host;
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Removes the dot that stands for the root of the name tree.
fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn lower_case(name: &str) -> Cow<'_, str> {
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if name.bytes().all(is_lower) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.to_lowercase())
    }
}

/// Returns whether a host is an IP address. A bracket can only open an IPv6 address, since no name
/// may contain one.
fn is_address(name: &str) -> bool {
    name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok() || name.parse::<Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [SiteKind; 2] = [SiteKind::Henzinger, SiteKind::Registrable];

    #[track_caller]
    fn check(host: &str, henzinger: &str, registrable: &str) {
        assert_eq!(site(host, SiteKind::Henzinger), henzinger, "{host}");
        assert_eq!(site(host, SiteKind::Registrable), registrable, "{host}");
    }

    #[test]
    fn table_of_the_definition() {
        check("www.cs.berkeley.edu", "cs.berkeley.edu", "berkeley.edu");
        check("cs.berkeley.edu", "berkeley.edu", "berkeley.edu");
        check("berkeley.edu", "berkeley.edu", "berkeley.edu");
        check("localhost", "localhost", "localhost");
        check("www.example.co.uk", "example.co.uk", "example.co.uk");
        check("example.co.uk", "co.uk", "example.co.uk");
        check("192.168.0.1", "192.168.0.1", "192.168.0.1");
    }

    #[test]
    fn port_root_and_case_are_dropped() {
        check("WWW.Example.COM", "example.com", "example.com");
        check("www.example.com:443", "example.com", "example.com");
        check("www.example.com:", "example.com", "example.com");
        check("www.example.com.", "example.com", "example.com");
        check("WWW.example.com.:80", "example.com", "example.com");
        check("localhost:8080", "localhost", "localhost");
    }

    #[test]
    fn addresses_stay_whole() {
        check("192.168.0.1:80", "192.168.0.1", "192.168.0.1");
        check("192.168.0.1.", "192.168.0.1", "192.168.0.1");
        check("[2001:DB8::1]", "[2001:db8::1]", "[2001:db8::1]");
        check("[2001:db8::1]:8080", "[2001:db8::1]", "[2001:db8::1]");
        check(
            "[::ffff:192.0.2.1]:80",
            "[::ffff:192.0.2.1]",
            "[::ffff:192.0.2.1]",
        );
        check("2001:db8::1", "2001:db8::1", "2001:db8::1");
        check("::1", "::1", "::1");
    }

    #[test]
    fn numbers_that_are_no_address_are_names() {
        check("256.1.1.1", "1.1.1", "1.1");
        check("1.2.3.4.5", "2.3.4.5", "4.5");
    }

    #[test]
    fn a_public_suffix_is_its_own_site() {
        check("com", "com", "com");
        check("co.uk", "co.uk", "co.uk");
        check("co.uk.", "co.uk", "co.uk");
        check("b.c.kobe.jp", "c.kobe.jp", "b.c.kobe.jp");
        check("www.city.kobe.jp", "city.kobe.jp", "city.kobe.jp");
    }

    #[test]
    fn unusual_hosts() {
        check("", "", "");
        check(".", "", "");
        check("..", ".", ".");
        check("....", "..", "...");
        check(":80", "", "");
        check(".example.com", "example.com", ".example.com");
        check("www..com", ".com", "www..com");
        check("[", "[", "[");
        check("[::1", "[:", "[:");
        check("www.MÜNCHEN.de", "münchen.de", "münchen.de");
        check("www.食狮.公司.cn", "食狮.公司.cn", "食狮.公司.cn");
    }

    #[test]
    fn henzinger_is_not_closed_under_subdomains() {
        assert!(same_site("www.x.org", "x.org", SiteKind::Henzinger));
        assert!(!same_site("a.www.x.org", "x.org", SiteKind::Henzinger));
        assert!(same_site("a.www.x.org", "x.org", SiteKind::Registrable));
    }

    #[test]
    fn unrelated_owners_share_a_henzinger_site() {
        assert!(same_site(
            "example.co.uk",
            "other.co.uk",
            SiteKind::Henzinger
        ));
        assert!(!same_site(
            "example.co.uk",
            "other.co.uk",
            SiteKind::Registrable
        ));
    }

    #[test]
    fn lower_case_hosts_are_borrowed() {
        for kind in KINDS {
            assert!(matches!(site("www.example.com:80", kind), Cow::Borrowed(_)));
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_site_within_it(host in any::<String>()) {
            for kind in KINDS {
                let site = site(&host, kind);
                prop_assert!(host.to_lowercase().contains(site.as_ref()) || !host.is_ascii());
            }
        }

        #[test]
        fn hosts_of_dots_colons_and_brackets_have_a_site(host in r"[.:\[\]a0é\-]{0,12}") {
            for kind in KINDS {
                prop_assert!(host.contains(site(&host, kind).as_ref()));
            }
        }

        #[test]
        fn spelling_does_not_matter(host in name(), port in 0_u16..) {
            for kind in KINDS {
                let expected = site(&host, kind).into_owned();
                let spellings = [
                    host.to_uppercase(),
                    format!("{host}."),
                    format!("{host}:{port}"),
                    format!("{host}.:{port}"),
                ];
                for spelling in &spellings {
                    prop_assert_eq!(site(spelling, kind), expected.as_str());
                }
            }
        }

        #[test]
        fn registrable_is_closed_under_subdomains(host in name(), label in "[a-z]{1,5}") {
            let expected = site(&host, SiteKind::Registrable);
            prop_assert_eq!(site(&expected, SiteKind::Registrable), expected.as_ref());
            // Not below a suffix, nor below `kobe.jp`: registrable itself, with suffixes below it.
            let below = format!("{label}.{host}");
            let is_registered = psl::domain_str(&host).is_some();
            if is_registered && psl::suffix_str(&below) == psl::suffix_str(&host) {
                prop_assert_eq!(site(&below, SiteKind::Registrable), expected);
            }
        }

        #[test]
        fn henzinger_cuts_one_label(host in name()) {
            let site = site(&host, SiteKind::Henzinger);
            let n_labels = |name: &str| name.split('.').count();
            let cut = usize::from(n_labels(&host) > 2);
            prop_assert_eq!(n_labels(&site), n_labels(&host) - cut);
            prop_assert!(host.ends_with(site.as_ref()));
        }

        #[test]
        fn same_site_is_symmetric_and_reflexive(a in name(), b in name()) {
            for kind in KINDS {
                prop_assert!(same_site(&a, &a, kind));
                prop_assert_eq!(same_site(&a, &b, kind), same_site(&b, &a, kind));
                prop_assert_eq!(same_site(&a, &b, kind), site(&a, kind) == site(&b, kind));
            }
        }
    }

    /// Lower-case names, some of them below real suffixes.
    fn name() -> impl Strategy<Value = String> {
        let suffix = prop_oneof![
            "com",
            "co\\.uk",
            "kobe\\.jp",
            "ck",
            "blogspot\\.com",
            "[a-z]{2,4}"
        ];
        ("([a-z]{1,3}\\.){0,3}", suffix).prop_map(|(labels, suffix)| labels + &suffix)
    }
}
