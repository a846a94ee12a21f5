//! Control of a running crawl: pause, resume, and reload the settings.
//!
//! Commands are files in its directory, which the crawl checks once a second. While the file
//! `pause` exists, no request is sent. `reload` makes the crawl read `settings.toml` again, and is
//! removed afterwards. If the settings are invalid, the crawl continues with the current ones, and
//! `reload.error` contains the reason. So any program that may write to the directory can control
//! the crawl. Starting a crawl removes old commands, so nothing waits for a crawl that was killed.

use super::*;
use crate::archive;
use crate::error::Context;
use crate::settings::seconds;

const PAUSE: &str = "pause";
const RELOAD: &str = "reload";
const RELOAD_ERROR: &str = "reload.error";

/// How long a running crawl may take to see an order.
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

/// Tells the crawl that runs in a directory to go on.
///
/// # Errors
///
/// As [`pause`].
pub fn resume(folder: &Path) -> Result<(), Error> {
    check_running(folder)?;
    remove(&folder.join(PAUSE))
}

/// Whether the crawl of a directory has been told to pause.
#[must_use]
pub fn is_paused(folder: &Path) -> bool {
    folder.join(PAUSE).exists()
}

/// Has the crawl that runs in a directory take the settings in its `settings.toml`; returns when it
/// has.
///
/// # Errors
///
/// If no crawl runs there, it does not respond, or the settings cannot be used.
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
    /// Removes the orders of an earlier run.
    pub(super) fn forget_orders(&self) -> Result<(), Error> {
        let orders = [PAUSE, RELOAD, RELOAD_ERROR];
        orders
            .iter()
            .try_for_each(|name| remove(&self.folder.join(name)))
    }

    /// Looks for orders.
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

    /// Takes URL rules that somebody has switched or imported.
    pub(super) fn tell_rules_order(&mut self, control: &Control) -> Result<(), Error> {
        if let Some(message) = self.take_rules_order()? {
            control.say(message);
        }
        Ok(())
    }

    /// Takes the settings that are in the directory now; says what became of them.
    fn take_settings(&mut self) -> Result<String, Error> {
        let mut settings = kept_settings(&self.folder)?;
        if settings.duplicates.policy != self.settings().duplicates.policy {
            let message = "`duplicates.policy` cannot change; start another crawl";
            return Err(Error::Settings(message.to_owned()));
        }
        let frozen = keep_frozen(&mut settings, self.settings());
        allow_files(&mut settings);
        start::limit_scope(&self.folder, &mut settings, &Seeded::read(&self.folder)?)?;
        archive::Config::new(&settings)?;
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
        self.shared = shared;
        Ok(match frozen.is_empty() {
            true => "settings reloaded".to_owned(),
            false => format!(
                "settings reloaded; what changed in {} takes effect when the crawl is started again",
                frozen.join(", ")
            ),
        })
    }
}

/// Keeps what a running crawl cannot change; returns what would have changed.
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
