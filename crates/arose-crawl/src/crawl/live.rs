//! Control of a running crawl: pause, resume, and reload the settings.
//!
//! Commands are files in its directory, which the crawl checks once a second. While the file
//! `pause` exists, no request is sent. `reload` makes the crawl read `settings.toml` again, and is
//! removed afterwards. If the settings are invalid, the crawl continues with the current ones, and
//! `reload.error` contains the reason. So any program that may write to the directory can control
//! the crawl. Starting a crawl removes old commands, so nothing waits for a crawl that was killed.

use super::background::Command;
use super::*;
use crate::archive;
use crate::error::Context;
use crate::settings::seconds;

const PAUSE: &str = "pause";
const RELOAD: &str = "reload";
const RELOAD_ERROR: &str = "reload.error";

/// How long a running crawl may take to notice a command.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells the crawl that runs in a directory to send no further requests until it is
/// [resumed](resume).
///
/// # Errors
///
/// If no crawl runs there, or the directory cannot be written.
pub fn pause(folder: &Path) -> Result<(), Error> {
    check_running(folder)?;
    let path = folder.join(PAUSE);
    std::fs::write(&path, b"").context("writing", &path)
}

/// Tells the crawl that runs in a directory to continue.
///
/// # Errors
///
/// Those of [`pause`].
pub fn resume(folder: &Path) -> Result<(), Error> {
    check_running(folder)?;
    remove(&folder.join(PAUSE))
}

/// Whether the crawl of a directory is paused.
#[must_use]
pub fn is_paused(folder: &Path) -> bool {
    folder.join(PAUSE).exists()
}

/// Makes the crawl that runs in a directory read its `settings.toml` again; returns when it has.
///
/// # Errors
///
/// If no crawl runs there, it does not respond, or the settings are invalid.
pub fn reload(folder: &Path) -> Result<(), Error> {
    check_running(folder)?;
    let (path, error) = (folder.join(RELOAD), folder.join(RELOAD_ERROR));
    remove(&error)?;
    std::fs::write(&path, b"").context("writing", &path)?;
    let start = std::time::Instant::now();
    while path.exists() {
        if start.elapsed() > PATIENCE || !is_running(folder)? {
            remove(&path)?;
            let message = format!("the crawl in `{}` does not respond", folder.display());
            return Err(Error::Settings(message));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    match std::fs::read_to_string(&error) {
        Ok(message) => Err(Error::Settings(message)),
        Err(_) => Ok(()),
    }
}

fn check_running(folder: &Path) -> Result<(), Error> {
    match is_crawl(folder) && is_running(folder)? {
        true => Ok(()),
        false => Err(Error::Settings(format!(
            "no crawl is running in `{}`",
            folder.display()
        ))),
    }
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.context("removing", path),
    }
}

impl Crawl {
    /// Removes the commands of an earlier run.
    pub(super) fn forget_orders(&self) -> Result<(), Error> {
        let orders = [PAUSE, RELOAD, RELOAD_ERROR];
        orders
            .iter()
            .try_for_each(|name| remove(&self.folder.join(name)))
    }

    /// Checks for commands and executes them.
    pub(super) fn take_orders(&mut self, control: &Control) -> Result<(), Error> {
        self.is_paused = control.is_paused() || is_paused(&self.folder);
        self.take_refresh()?;
        self.tell_rules_order(control)?;
        let path = self.folder.join(RELOAD);
        let is_asked = path.exists();
        if !control.takes_reload() && !is_asked {
            return Ok(());
        }
        match self.take_settings() {
            Ok(message) => control.say(message),
            Err(error) => {
                let message = format!("the settings were not reloaded: {error}");
                let error = self.folder.join(RELOAD_ERROR);
                std::fs::write(&error, &message).context("writing", &error)?;
                control.say(message);
            }
        }
        remove(&path)
    }

    /// Applies URL rules that a user has switched or imported, and reports that.
    pub(super) fn tell_rules_order(&mut self, control: &Control) -> Result<(), Error> {
        if let Some(message) = self.take_rules_order()? {
            control.say(message);
        }
        Ok(())
    }

    /// Applies the settings that are in the directory now; returns a message with the result.
    fn take_settings(&mut self) -> Result<String, Error> {
        let mut settings = kept_settings(&self.folder)?;
        if settings.duplicates.policy != self.settings().duplicates.policy {
            let message = "`duplicates.policy` cannot change; start another crawl";
            return Err(Error::Settings(message.to_owned()));
        }
        let frozen = keep_frozen(&mut settings, self.settings());
        allow_files(&mut settings);
        start::limit_scope(&self.folder, &mut settings, &Seeded::read(&self.folder)?)?;
        archive::ArchiveConfig::new(&settings)?;
        let fetcher = Fetchers::new(&settings, Rc::clone(&self.seams.connector))?;
        fetcher.replace(self.fetcher.other());
        let contents = self.shared.contents.clone();
        let shared = Arc::new(Shared {
            judge: self.shared.judge.clone(),
            ..Shared::new(settings, contents)?
        });
        let settings = &shared.settings;
        self.load = Load::new(settings);
        let fetch = &settings.fetch;
        self.idle = Idle::new(fetch.idle_connections, seconds(fetch.idle));
        self.frontier.set_budget(settings.budget.clone());
        self.fetcher = Rc::new(fetcher);
        self.workers.renew(&shared);
        let counts_pages = !self.settings().limits_pages() && settings.limits_pages();
        self.shared = shared;
        if counts_pages {
            // So that the log has all pages that were not counted.
            self.commit()?;
            self.background
                .send(Command::CountPages(self.folder.clone()))?;
        }
        Ok(match frozen.is_empty() {
            true => "settings reloaded".to_owned(),
            false => format!(
                "settings reloaded; changes of {} take effect when the crawl is started again",
                frozen.join(", ")
            ),
        })
    }
}

/// Restores the settings that a running crawl cannot change; returns the names of those that
/// differ.
fn keep_frozen(new: &mut Settings, old: &Settings) -> Vec<&'static str> {
    let mut frozen = Vec::new();
    let mut note = |name, has_changed: bool| frozen.extend(has_changed.then_some(name));
    note("`agent`", new.agent != old.agent);
    new.agent = old.agent.clone();
    note("`archive`", new.archive != old.archive);
    new.archive = old.archive.clone();
    note("`focus`", new.focus != old.focus);
    new.focus = old.focus.clone();
    note("`machine`", new.machine != old.machine);
    new.machine = old.machine.clone();
    note("`rules`", new.rules != old.rules);
    new.rules = old.rules.clone();
    note(
        "`duplicates.check`",
        new.duplicates.check != old.duplicates.check,
    );
    new.duplicates.check = old.duplicates.check;
    let (network, before) = (&mut new.network, &old.network);
    note(
        "`network.allow_private`",
        network.allow_private != before.allow_private,
    );
    network.allow_private = before.allow_private;
    note(
        "`network.name_servers`",
        network.name_servers != before.name_servers,
    );
    network.name_servers.clone_from(&before.name_servers);
    frozen
}
