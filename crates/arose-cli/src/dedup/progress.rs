//! The progress of `arose dedup` and `arose passages`.

use arose_dedup::Progress;

use crate::progress::Step;

/// Reports the stage and progress of a run.
pub(crate) fn step_of(progress: &Progress) -> impl FnMut() -> Step + Send {
    move || {
        let now = progress.look();
        Step {
            stage: now.stage.to_owned(),
            done: now.done,
            total: now.total,
            unit: "",
            share: now.share,
            note: match now.skipped {
                0 => String::new(),
                n => format!("{n} skipped"),
            },
        }
    }
}
