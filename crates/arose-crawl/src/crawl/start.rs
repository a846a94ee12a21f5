//! Starts a crawl: checks seeds and settings before anything is written.

use arose_dedup::disk;

use super::*;
use crate::archive;
use crate::error::Context;
use crate::guard::{Candidate, Guard, Reason};
use crate::page;
use crate::scope::Seeded;
use crate::settings::{Order, Reach};

/// The settings of the last run, in the directory of a crawl.
const SETTINGS: &str = "settings.toml";

/// A seed that cannot be crawled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSeed {
    /// The seed as passed.
    pub text: String,
    /// The reason.
    pub reason: Reason,
}

/// Number of bad seeds that are named.
pub(super) const MAX_BAD_SEEDS: usize = 20;

/// Whether all seeds, including earlier ones, are local files.
pub(super) fn is_local(folder: &Path, seeds: &Seeds, settings: &Settings) -> Result<bool, Error> {
    let mut seeded = Seeded::read(folder)?;
    add_files(&mut seeded, seeds, settings);
    let is_file = |seed: &String| {
        seed.trim_start()
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case("file:"))
    };
    let are_files = seeds.pages.iter().chain(&seeds.sitemaps).all(is_file);
    Ok(are_files && seeded.are_files())
}

/// Opens the crawl in a directory with further seeds, or starts one there. If that fails, a new
/// crawl leaves nothing behind.
pub(super) fn start(
    folder: &Path,
    mut settings: Settings,
    seams: Seams,
    seeds: Seeds,
) -> Result<Crawl, Error> {
    let kept = settings.clone();
    let seeded = check(folder, &mut settings, &seams, &seeds)?;
    let mut crawl = Crawl::open(folder, settings, seams)?;
    seeded.write(folder)?;
    keep_settings(folder, &kept)?;
    crawl.add_seeds(seeds.pages.into_iter())?;
    crawl.add_sitemaps(seeds.sitemaps.into_iter())?;
    Ok(crawl)
}

/// Checks everything that can be checked before the directory is changed, and limits the scope to
/// that of the seeds.
pub(super) fn check(
    folder: &Path,
    settings: &mut Settings,
    seams: &Seams,
    seeds: &Seeds,
) -> Result<Seeded, Error> {
    archive::ArchiveConfig::new(settings)?;
    Fetchers::new(settings, Rc::clone(&seams.connector))?;
    let mut seeded = Seeded::read(folder)?;
    add_files(&mut seeded, seeds, settings);
    settings.scope.files = seeded.files();
    let normalizer = page::normalizer(settings);
    let guard = page::guard(settings)?;
    page::Rejections::parse(&settings.quality.reject)?;
    settings.focus.check()?;
    if settings.focus.is_on() && settings.crawl.order != Order::Opic {
        let message = "a topic needs `crawl.order = \"opic\"`";
        return Err(Error::Settings(message.to_owned()));
    }
    let mut bad = None;
    let mut n_good = 0;
    for text in seeds.pages.iter().chain(&seeds.sitemaps) {
        match judge(text, &normalizer, &guard) {
            Ok(url) => {
                check_sent(settings, &url)?;
                n_good += 1;
                seeded.add(&url);
            }
            Err(reason) => {
                let text = text.clone();
                bad.get_or_insert(BadSeed { text, reason });
            }
        }
    }
    if let (0, Some(bad), false) = (n_good, bad, is_crawl(folder)) {
        let message = format!("no seed can be crawled: `{}`: {}", bad.text, bad.reason);
        return Err(Error::Settings(message));
    }
    limit_scope(folder, settings, &seeded)?;
    Ok(seeded)
}

/// Adds the directories of seeds that are local files. Nothing else makes files of this machine
/// part of a crawl.
fn add_files(seeded: &mut Seeded, seeds: &Seeds, settings: &Settings) {
    let normalizer = crate::url::Normalizer {
        files: crate::url::FileUrls::Accept,
        ..page::normalizer(settings)
    };
    for seed in seeds.pages.iter().chain(&seeds.sitemaps) {
        if let Ok(url) = normalizer.normalize(seed, None)
            && url.is_file()
        {
            seeded.add(&url);
        }
    }
}

/// If neither hosts nor domains are listed, the seeds define the scope.
pub(super) fn limit_scope(
    folder: &Path,
    settings: &mut Settings,
    seeded: &Seeded,
) -> Result<(), Error> {
    settings.scope.files = seeded.files();
    let scope = &mut settings.scope;
    if scope.reach == Reach::Web || !scope.hosts.is_empty() || !scope.domains.is_empty() {
        return Ok(());
    }
    if seeded.is_empty() {
        let message = format!(
            "the seeds of `{}` are not known, so neither is the scope; pass them again, or \
             `--scope web`",
            folder.display()
        );
        return Err(Error::Settings(message));
    }
    let roots = seeded.roots(scope.reach, &page::normalizer(settings));
    settings.scope.roots = Some(roots);
    Ok(())
}

/// Returns an error if a seed gets no credentials because of its scheme: it would fail
/// without a visible reason.
fn check_sent(settings: &Settings, url: &NormalUrl) -> Result<(), Error> {
    let of_name = settings.host.get(url.host());
    let is_sent = of_name.is_some_and(crate::settings::HostSettings::is_sent);
    let is_https = url.origin() == format!("https://{}", url.host());
    if !is_sent || is_https || settings.host.contains_key(url.origin()) {
        return Ok(());
    }
    let (name, origin) = (url.host(), url.origin());
    Err(Error::Settings(format!(
        "`host.\"{name}\"` sends to https://{name} only, and a seed is at {origin}; write \
         `host.\"{origin}\"` to send there"
    )))
}

/// Returns a seed as a URL, or what is wrong with it.
pub(super) fn judge(
    text: &str,
    normalizer: &crate::url::Normalizer,
    guard: &Guard,
) -> Result<NormalUrl, Reason> {
    let url = normalizer.normalize(text, None)?;
    let candidate = Candidate {
        url: &url,
        link_depth: 0,
        robots: None,
    };
    guard.approve(&candidate).map(|()| url)
}

/// Stores the settings for the next run. If they contain passwords, only the owner can read them.
pub(super) fn keep_settings(folder: &Path, settings: &Settings) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(SETTINGS);
    let text = settings.to_toml();
    let text = text.map_err(|error| Error::Settings(format!("settings: {error}")))?;
    if settings.has_secrets() {
        // Protected before anything is written to it.
        let part = folder.join("settings.toml.part");
        let file = std::fs::File::create(&part).context("creating", &part)?;
        let mode = std::fs::Permissions::from_mode(0o600);
        file.set_permissions(mode).context("protecting", &part)?;
    }
    // A crash must not leave half a file, which would mean other settings.
    disk::replace(&path, text.as_bytes()).context("writing", &path)
}

/// Returns the settings stored by the last run in a directory; the defaults if there are none.
///
/// # Errors
///
/// If they cannot be read or are invalid.
pub fn kept_settings(folder: &Path) -> Result<Settings, Error> {
    let path = folder.join(SETTINGS);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Settings::default());
        }
        text => text.context("reading", &path)?,
    };
    let settings = Settings::parse(&text);
    let mut settings =
        settings.map_err(|error| Error::Settings(format!("`{}`: {error}", path.display())))?;
    settings.scope.files = Seeded::read(folder)?.files();
    Ok(settings)
}
