//! All clusters of a run, in the sort orders of the list.
//!
//! Single documents are not clusters. For each cluster, the catalogue has the fields of the list:
//! size, site, the lowest similarity of a member to the document it was dropped for, and the
//! members. Memory: four bytes per document, about fifty per cluster, and the names of sites.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use arose_dedup::results::documents::{for_each, for_each_cluster, site_of};
use arose_dedup::results::{Detail, Error};

/// One cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cluster {
    /// The kept document.
    pub(crate) id: u64,
    /// The lowest similarity of a dropped document to the one it was dropped for.
    pub(crate) lowest: Option<f64>,
    /// The site of the first document that has one.
    pub(crate) site: Option<u32>,
    /// Whether there are documents of other sites.
    pub(crate) is_mixed: bool,
    /// Start of its members in [`Catalog::members`].
    start: usize,
    end: usize,
}

impl Cluster {
    pub(crate) fn size(&self) -> usize {
        self.end - self.start
    }
}

/// The order of the list of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    #[default]
    Size,
    Site,
    Lowest,
}

impl Sort {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "site" => Self::Site,
            "lowest" => Self::Lowest,
            _ => Self::Size,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Site => "site",
            Self::Lowest => "lowest",
        }
    }
}

/// The filter of the list of clusters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    /// A part of the site name.
    pub(crate) site: String,
    pub(crate) min_size: usize,
    /// Only clusters with documents of several sites.
    pub(crate) is_mixed: bool,
}

/// All clusters of at least two documents.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// In the order of their numbers.
    clusters: Vec<Cluster>,
    members: Vec<u32>,
    sites: Vec<String>,
    by_size: Vec<u32>,
    by_site: Vec<u32>,
    by_lowest: Vec<u32>,
}

impl Catalog {
    /// Reads the table of documents, twice.
    pub(crate) fn open(documents: &Path) -> Result<Self, Error> {
        let mut sizes: Vec<u32> = Vec::new();
        for_each_cluster(documents, |_, cluster| {
            let cluster = cluster as usize;
            if sizes.len() <= cluster {
                sizes.resize(cluster + 1, 0);
            }
            sizes[cluster] += 1;
        })?;
        let mut catalog = Self::with_places(&sizes);
        let mut sites = HashMap::new();
        for_each(documents, |doc, detail| {
            catalog.add(doc, &detail, &mut sites);
            Ok::<_, Error>(())
        })?;
        catalog.sort();
        Ok(catalog)
    }

    /// Clusters without members yet, each with space for its own.
    fn with_places(sizes: &[u32]) -> Self {
        let mut catalog = Self::default();
        let mut start = 0;
        for (id, &size) in (0..).zip(sizes).filter(|(_, size)| **size > 1) {
            catalog.clusters.push(Cluster {
                id,
                lowest: None,
                site: None,
                is_mixed: false,
                start,
                end: start,
            });
            start += size as usize;
        }
        catalog.members = vec![0; start];
        catalog
    }

    fn add(&mut self, doc: u64, detail: &Detail, sites: &mut HashMap<String, u32>) {
        let place = self
            .clusters
            .binary_search_by_key(&detail.cluster, |cluster| cluster.id);
        let Ok(place) = place else {
            return;
        };
        let cluster = &mut self.clusters[place];
        if let Some(member) = self.members.get_mut(cluster.end) {
            *member = doc as u32;
            cluster.end += 1;
        }
        if let Some(similarity) = detail.similarity {
            let lowest = cluster.lowest.unwrap_or(f64::INFINITY);
            cluster.lowest = Some(lowest.min(similarity));
        }
        let Some(name) = detail.url.as_deref().and_then(site_of) else {
            return;
        };
        let site = *sites.entry(name).or_insert_with_key(|name| {
            self.sites.push(name.clone());
            (self.sites.len() - 1) as u32
        });
        cluster.is_mixed |= cluster.site.is_some_and(|first| first != site);
        cluster.site.get_or_insert(site);
    }

    fn sort(&mut self) {
        let clusters = &self.clusters;
        let sorted = |key: &dyn Fn(&u32, &u32) -> std::cmp::Ordering| {
            let mut order: Vec<u32> = (0..clusters.len() as u32).collect();
            order.sort_by(|a, b| key(a, b));
            order
        };
        let at = |place: &u32| &clusters[*place as usize];
        let by_size = |a: &u32, b: &u32| at(b).size().cmp(&at(a).size());
        let name = |place: &u32| at(place).site.map(|site| &self.sites[site as usize]);
        let lowest = |place: &u32| at(place).lowest.unwrap_or(f64::INFINITY);
        self.by_size = sorted(&by_size);
        self.by_site = sorted(&|a, b| {
            let (a_name, b_name) = (name(a), name(b));
            let by_name = a_name
                .is_none()
                .cmp(&b_name.is_none())
                .then(a_name.cmp(&b_name));
            by_name.then_with(|| by_size(a, b))
        });
        self.by_lowest =
            sorted(&|a, b| lowest(a).total_cmp(&lowest(b)).then_with(|| by_size(a, b)));
    }

    /// Number of clusters.
    pub(crate) fn len(&self) -> usize {
        self.clusters.len()
    }

    /// The clusters that pass a filter, in an order: their number, and some of them.
    pub(crate) fn list(
        &self,
        sort: Sort,
        filter: &Filter,
        offset: usize,
        limit: usize,
    ) -> (usize, Vec<&Cluster>) {
        let order = match sort {
            Sort::Size => &self.by_size,
            Sort::Site => &self.by_site,
            Sort::Lowest => &self.by_lowest,
        };
        let wanted = self.sites_with(&filter.site);
        let passes = |cluster: &&Cluster| {
            let is_of_site = match &wanted {
                None => true,
                Some(sites) => cluster.site.is_some_and(|site| sites.contains(&site)),
            };
            is_of_site
                && cluster.size() >= filter.min_size
                && (cluster.is_mixed || !filter.is_mixed)
        };
        let (mut n, mut shown) = (0, Vec::new());
        let clusters = order
            .iter()
            .filter_map(|&place| self.clusters.get(place as usize));
        for cluster in clusters.filter(passes) {
            if n >= offset && shown.len() < limit {
                shown.push(cluster);
            }
            n += 1;
        }
        (n, shown)
    }

    /// The sites whose names contain a text; none if any site matches.
    fn sites_with(&self, text: &str) -> Option<BTreeSet<u32>> {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return None;
        }
        let numbered = (0..).zip(&self.sites);
        Some(
            numbered
                .filter(|(_, name)| name.contains(&text))
                .map(|(number, _)| number)
                .collect(),
        )
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Cluster> {
        let place = self
            .clusters
            .binary_search_by_key(&id, |cluster| cluster.id);
        self.clusters.get(place.ok()?)
    }

    /// The documents of a cluster, in order.
    pub(crate) fn members(&self, cluster: &Cluster) -> &[u32] {
        &self.members[cluster.start..cluster.end]
    }

    /// The name of a cluster's site.
    pub(crate) fn site(&self, cluster: &Cluster) -> Option<&str> {
        let site = self.sites.get(cluster.site? as usize);
        site.map(String::as_str)
    }
}
