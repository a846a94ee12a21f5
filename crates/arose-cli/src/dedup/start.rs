//! The start of `arose dedup` or `arose passages`: checks for an existing run and handles Ctrl-C.

use std::path::Path;
use std::sync::Arc;

use arose_dedup::{Progress, Start};

use crate::output::remark;
use crate::signals::{self, Actions};

/// The state of an output directory before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    Interrupted,
    Complete,
}

/// Checks the output directory, and prints a message if a run in it is resumed.
pub(crate) fn look_at(out: &Path, start: Start) -> Before {
    let is_there = start == Start::Resume && out.join(".arose/settings.json").is_file();
    match (is_there, out.join("summary.json").is_file()) {
        (false, _) => Before::Nothing,
        (true, true) => Before::Complete,
        (true, false) => {
            remark(format_args!(
                "arose: resuming the run in `{}`",
                out.display()
            ));
            Before::Interrupted
        }
    }
}

impl Before {
    /// Prints a message after a run that had nothing to do.
    pub(crate) fn tell(self, out: &Path) {
        if self == Self::Complete {
            remark(format_args!(
                "arose: the run in `{}` was already complete; --force starts over",
                out.display()
            ));
        }
    }
}

/// Progress of a run that stops on Ctrl-C.
pub(crate) fn interruptible(progress: Progress) -> Arc<Progress> {
    let progress = Arc::new(progress);
    let stopped = Arc::clone(&progress);
    signals::watch(Actions {
        message: "stopping; press Ctrl-C again to stop now",
        stop: Box::new(move || stopped.stop()),
        reload: None,
    });
    progress
}
