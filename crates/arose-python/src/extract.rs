//! Text, links and metadata of a web page.

use arose_corpus::html::{self, Links};
use pyo3::prelude::*;
use serde::Deserialize;
use url::Url;

use crate::options::{self, ModeName};
use crate::{error, text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    mode: ModeName,
    url: Option<String>,
}

/// The content of a page.
#[pyclass(frozen, get_all, module = "arose")]
pub(crate) struct Page {
    /// The text. Words are separated by one space and blocks by one line break.
    text: String,
    /// The first title.
    title: Option<String>,
    /// The language stated by the page.
    language: Option<String>,
    /// The canonical URL stated by the page.
    canonical: Option<String>,
    /// URLs of links in order; absolute if the URL of the page was given.
    links: Vec<String>,
    /// Warnings about truncated or malformed parts.
    warnings: Vec<String>,
}

#[pymethods]
impl Page {
    fn __repr__(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let title = text::quoted(title);
        format!("Page({title}, {} bytes of text)", self.text.len())
    }
}

#[pyfunction]
pub(crate) fn extract(py: Python<'_>, html: &str, options: &str) -> PyResult<Page> {
    let options: Options = options::parse(options)?;
    let url = options.url.as_deref().map(Url::parse).transpose();
    let url = url.map_err(|cause| {
        let url = options.url.as_deref().unwrap_or_default();
        error::SettingError::new_err(format!("url `{url}`: {cause}"))
    })?;
    let config = html::HtmlConfig {
        mode: options.mode.into(),
        links: Links::Collect,
        ..html::HtmlConfig::default()
    };
    let extracted = || Ok(page(html::extract(html, url.as_ref(), &config)));
    py.detach(|| error::guarded(extracted))
}

fn page(found: html::Extracted) -> Page {
    let metadata = found.metadata;
    let links = metadata.links.into_iter().map(|link| link.url);
    let warnings = found.warnings.iter().map(ToString::to_string);
    Page {
        text: found.text,
        title: metadata.title,
        language: metadata.lang,
        canonical: metadata.canonical,
        links: links.collect(),
        warnings: warnings.collect(),
    }
}
