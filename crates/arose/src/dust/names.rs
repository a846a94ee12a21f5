//! Names of parameters that frameworks and advertising networks choose, not page authors.

/// Names that carry only a session. Case does not matter.
const SESSIONS: [&str; 6] = [
    "cfid",
    "cftoken",
    "jsessionid",
    "oscsid",
    "phpsessid",
    "zenid",
];

/// Names that carry only a campaign or a click.
const CAMPAIGNS: [&str; 44] = [
    "__hsfp",
    "__hssc",
    "__hstc",
    "__twitter_impression",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_openstat",
    "action_object_map",
    "action_ref_map",
    "action_type_map",
    "dclid",
    "fb_action_ids",
    "fb_action_types",
    "fb_ref",
    "fb_source",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "gs_l",
    "hsctatracking",
    "igshid",
    "mc_cid",
    "mc_eid",
    "mc_tc",
    "mkt_tok",
    "ml_subscriber",
    "ml_subscriber_hash",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "os_ehash",
    "rb_clickid",
    "twclid",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "wt_mc",
    "wt_zmc",
    "wtrid",
    "yclid",
];

/// Beginnings of such names.
const PREFIXES: [&str; 7] = [
    "aspsessionid",
    "ga_",
    "hmb_",
    "itm_",
    "otm_",
    "pk_campaign",
    "utm_",
];

/// Returns whether a parameter with this name is known to carry only a session or a campaign: a
/// name that frameworks choose, not page authors. Names that sometimes select a page, such as
/// `sid`, `ref` or `session`, are not known.
#[must_use]
pub fn is_known_name(name: &str) -> bool {
    let is_prefix = |prefix: &&str| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let is_name = |known: &&str| name.eq_ignore_ascii_case(known);
    SESSIONS.iter().chain(&CAMPAIGNS).any(is_name) || PREFIXES.iter().any(is_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that the global rules of ClearURLs remove from the URLs of all sites, with `*` for
    /// patterns.
    const TRUTH: &str = "utm_* ga_* yclid _openstat fb_action_types fb_action_ids fb_source fb_ref \
        fbclid action_object_map action_type_map action_ref_map gs_l mkt_tok hmb_campaign \
        hmb_medium hmb_source gclid otm_* cmpid os_ehash _ga _gl __twitter_impression wt_mc \
        wt_zmc wtrid mc dclid Echobox spm vn_* tracking_source ceneo_spo itm_campaign itm_medium \
        itm_source __hsfp __hssc __hstc _hsenc __s hsCtaTracking mc_eid mc_cid mc_tc \
        ml_subscriber ml_subscriber_hash msclkid oly_anon_id oly_enc_id rb_clickid s_cid \
        vero_conv vero_id wickedid twclid ref referrer";

    /// Names of this list that some sites use for something else, or that belong to a single shop:
    /// they need as much evidence as unknown names.
    const TOO_SHORT: [&str; 11] = [
        "cmpid",
        "mc",
        "Echobox",
        "spm",
        "vn_*",
        "tracking_source",
        "ceneo_spo",
        "__s",
        "s_cid",
        "ref",
        "referrer",
    ];

    /// Names of campaign parameters that the list lacks; the networks that set them document them.
    const MORE: [&str; 6] = [
        "_hsmi",
        "gbraid",
        "gclsrc",
        "igshid",
        "wbraid",
        "pk_campaign",
    ];

    #[test]
    fn issue_27_known_names_agree_with_public_lists() {
        let truth: Vec<&str> = TRUTH.split_whitespace().collect();
        for name in &truth {
            let example = name.replace('*', "example");
            assert_eq!(
                is_known_name(&example),
                !TOO_SHORT.contains(name),
                "{example}"
            );
        }
        for name in CAMPAIGNS.iter().chain(&PREFIXES[1..]) {
            let is_listed = |one: &&str| {
                let one = one.trim_end_matches('*');
                one.eq_ignore_ascii_case(name) || name.ends_with('_') && one.starts_with(name)
            };
            let is_true = truth.iter().any(is_listed) || MORE.contains(name);
            assert!(is_true, "{name}");
        }
    }

    /// Names that select pages on many sites are not known.
    #[test]
    fn names_of_page_authors_are_not_known() {
        for name in [
            "id", "page", "p", "q", "lang", "sort", "sid", "session", "ref", "source", "tag",
            "utm", "ga", "category", "", "é",
        ] {
            assert!(!is_known_name(name), "{name}");
        }
    }
}
