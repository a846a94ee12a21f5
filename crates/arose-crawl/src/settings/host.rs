//! Settings for single hosts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings for a single host. What is sent goes to one origin only: `https://` and the name,
/// unless the entry is for another origin. Delay and limits hold for all origins with the name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSettings {
    /// Seconds between two requests, in place of those of all hosts. robots.txt may ask for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Pages that are fetched of the host, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<u64>,
    /// The largest body, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body: Option<usize>,
    /// Headers to send.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Cookies to send, as the header `Cookie` has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookies: Option<String>,
    /// User name for basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Password for basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Token for bearer authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
}

impl HostSettings {
    /// Whether something is sent.
    pub(crate) fn is_sent(&self) -> bool {
        *self != self.without_secrets()
    }

    /// The settings without what is sent.
    pub(super) fn without_secrets(&self) -> Self {
        Self {
            delay: self.delay,
            max_pages: self.max_pages,
            max_body: self.max_body,
            ..Self::default()
        }
    }
}

/// The name of the host that an entry is for, which may be a name or an origin.
pub(crate) fn host_name(key: &str) -> String {
    let text = match key.contains("://") {
        true => key.to_owned(),
        false => format!("https://{key}"),
    };
    let url = url::Url::parse(&text).ok();
    let name = url.as_ref().and_then(url::Url::host_str);
    name.unwrap_or(key).to_owned()
}
