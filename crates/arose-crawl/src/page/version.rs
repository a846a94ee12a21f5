//! Decides whether a page has changed since its last visit.

use arose::digest::digest64;

use super::{Job, Report};
use crate::pages::{self, Version};
use crate::sitemap::Sitemap;

/// Returns a digest that stands for content.
pub(super) fn nonzero(digest: u64) -> u64 {
    digest.max(1)
}

/// Records that a server reported no change.
pub(super) fn note_unmodified(job: &Job, report: &mut Report) {
    if let Some(revisit) = &job.revisit {
        report.version = Version {
            digest: revisit.record.digest,
            sketch: revisit.sketch,
            is_same: true,
        };
        report.original.clone_from(&revisit.original);
    }
}

/// Returns the version of a redirect, which is unchanged as long as it leads to the same URL.
pub(super) fn elsewhere(job: &Job, location: &str) -> Version {
    unlike(job, nonzero(digest64(location.as_bytes())))
}

/// Returns the version of a list, which is unchanged as long as it lists the same URLs with the
/// same dates.
pub(super) fn listed(job: &Job, sitemap: &Sitemap) -> Version {
    let mut text = String::new();
    for entry in sitemap.pages.iter().chain(&sitemap.sitemaps) {
        for part in [Some(&entry.url), entry.last_modified.as_ref()] {
            text.push_str(part.map_or("", |part| part.as_str()));
            text.push('\n');
        }
    }
    unlike(job, nonzero(digest64(text.as_bytes())))
}

/// Returns the version of content that is not read as text, which is unchanged as long as its bytes
/// are.
pub(super) fn raw(job: &Job) -> Version {
    unlike(job, nonzero(digest64(job.message.body())))
}

fn unlike(job: &Job, digest: u64) -> Version {
    let before = job.revisit.as_ref().map(|revisit| revisit.record.digest);
    Version {
        digest,
        sketch: pages::Sketch::default(),
        is_same: before == Some(digest),
    }
}

/// Whether a page is unchanged since the last visit; its last version is then its original.
pub(super) fn is_as_before(job: &Job, report: &mut Report) -> bool {
    let Some(revisit) = &job.revisit else {
        return false;
    };
    let is_same = revisit.is_same(report.version.digest, &report.version.sketch);
    report.version.is_same = is_same && revisit.original.is_some();
    if report.version.is_same {
        report.original.clone_from(&revisit.original);
        // The next visit is compared with the stored version too: small changes add up.
        report.version.sketch = revisit.sketch;
    }
    report.version.is_same
}

/// Makes an unchanged page refer to its last version.
pub(super) fn refer_back(job: &Job, report: &mut Report) {
    if let Some(revisit) = job.revisit.as_ref().filter(|_| report.version.is_same)
        && report.original.is_none()
    {
        report.original.clone_from(&revisit.original);
    }
}
