//! Signals: the first Ctrl-C stops work so that it can be resumed, the second stops at once.

use crate::output::say;

/// The actions on signals.
pub(crate) struct Actions {
    /// The message at the first Ctrl-C.
    pub(crate) message: &'static str,
    /// Stops the work.
    pub(crate) stop: Box<dyn Fn() + Send>,
    /// Called on SIGHUP, which otherwise ends the process.
    pub(crate) reload: Option<Box<dyn Fn() + Send>>,
}

/// Exit code of a process that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Stops the work at the first interrupt or termination signal, and the process at the second.
pub(crate) fn watch(actions: Actions) {
    // Without signals, the command still runs; it is only harder to stop.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            for _ in 0..2 {
                if wait(&actions).await.is_err() {
                    return;
                }
                say(format_args!("arose: {}", actions.message));
                (actions.stop)();
            }
            std::process::exit(INTERRUPTED.into());
        });
    });
}

/// Waits for a signal to stop.
async fn wait(actions: &Actions) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = match &actions.reload {
        Some(reload) => Some((signal(SignalKind::hangup())?, reload)),
        None => None,
    };
    std::future::poll_fn(|context| {
        if let Some((hangup, reload)) = &mut hangup {
            while hangup.poll_recv(context).is_ready() {
                reload();
            }
        }
        let is_ready =
            terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
        match is_ready {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    Ok(())
}
