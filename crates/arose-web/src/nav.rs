//! The tabs of every page, without empty ones.

use crate::crawl;
use crate::estimates;
use crate::site::View;

/// The tab of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Search,
    Clusters,
    Rate,
    Ratings,
    Crawl,
    Estimates,
}

impl Tab {
    const ALL: [Self; 6] = [
        Self::Search,
        Self::Clusters,
        Self::Rate,
        Self::Ratings,
        Self::Crawl,
        Self::Estimates,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Search => "Search",
            Self::Clusters => "Clusters",
            Self::Rate => "Rate",
            Self::Ratings => "Ratings",
            Self::Crawl => "Crawl",
            Self::Estimates => "Estimates",
        }
    }

    pub(crate) fn href(self) -> &'static str {
        match self {
            Self::Search => "/",
            Self::Clusters => "/clusters",
            Self::Rate => "/rate",
            Self::Ratings => "/ratings",
            Self::Crawl => "/crawl",
            Self::Estimates => "/estimates",
        }
    }

    /// Whether the directory has anything to show on this tab.
    fn is_there(self, view: &View) -> bool {
        let run = view.run.as_deref();
        match self {
            Self::Search => true,
            Self::Clusters => run.is_some_and(|run| run.catalog.len() > 0),
            Self::Rate | Self::Ratings => run.is_some_and(|run| !run.sample.is_empty()),
            Self::Crawl => crawl::file(&view.folder.path).is_some(),
            Self::Estimates => !estimates::studies(&view.folder.path).is_empty(),
        }
    }
}

/// The head of a page.
#[derive(Debug, Default)]
pub(crate) struct Nav {
    pub(crate) tabs: Vec<Tab>,
    pub(crate) at: Option<Tab>,
    /// Why the page may be out of date.
    pub(crate) trouble: Option<String>,
}

impl Nav {
    pub(crate) fn new(view: &View, at: Tab) -> Self {
        let tabs = Tab::ALL.into_iter().filter(|tab| tab.is_there(view));
        Self {
            tabs: tabs.collect(),
            at: Some(at),
            trouble: view.trouble.clone(),
        }
    }

    /// The head of a page that does not depend on the directory.
    pub(crate) fn bare() -> Self {
        Self {
            tabs: vec![Tab::Search],
            ..Self::default()
        }
    }

    /// Whether a page belongs to a tab.
    pub(crate) fn is_at(&self, tab: &Tab) -> bool {
        self.at == Some(*tab)
    }
}
