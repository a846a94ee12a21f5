//! Settings for single hosts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Settings;

/// Settings for a single host. Credentials are sent to one origin only: `https://` and the name,
/// unless the entry is for another origin. Delay and limits apply to all origins with the name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSettings {
    /// Seconds between two requests, in place of the general delay. robots.txt may require more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Maximum number of pages fetched from the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<u64>,
    /// Maximum size of a body in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body: Option<usize>,
    /// Headers to send.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Cookies to send, in the format of the header `Cookie`.
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
    /// Whether any credentials are set.
    pub(crate) fn is_sent(&self) -> bool {
        *self != self.without_secrets()
    }

    /// Returns the settings without credentials.
    pub(super) fn without_secrets(&self) -> Self {
        Self {
            delay: self.delay,
            max_pages: self.max_pages,
            max_body: self.max_body,
            ..Self::default()
        }
    }
}

/// Returns the host name of an entry, whose key is a name or an origin.
pub(crate) fn host_name(key: &str) -> String {
    let text = match key.contains("://") {
        true => key.to_owned(),
        false => format!("https://{key}"),
    };
    let url = url::Url::parse(&text).ok();
    let name = url.as_ref().and_then(url::Url::host_str);
    name.unwrap_or(key).to_owned()
}

impl Settings {
    /// Whether the number of pages of any single host is limited.
    pub(crate) fn limits_pages(&self) -> bool {
        self.host.values().any(|host| host.max_pages.is_some())
    }
}
