//! Signals: Ctrl-C once to finish what is in flight, twice to end at once; SIGHUP to reload
//! settings.

use std::sync::Arc;

use arose_crawl::Control;

/// Stops the crawl at the first interrupt or request to terminate, the process at the second.
pub(super) fn stop_on_interrupt(control: &Arc<Control>) {
    let control = Arc::clone(control);
    // Without signals the crawl still runs; it is only harder to stop.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            for _ in 0..2 {
                if wait(&control).await.is_err() {
                    return;
                }
                eprintln!("\narose: finishing what is in flight; once more to stop at once");
                control.stop();
            }
            std::process::exit(130);
        });
    });
}

/// Waits for a signal to stop; others are handed on.
async fn wait(control: &Control) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    std::future::poll_fn(|context| {
        while hangup.poll_recv(context).is_ready() {
            control.reload();
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
