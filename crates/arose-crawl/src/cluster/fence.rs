//! The fence: no byte is sent to a web server after the lease has ended.
//!
//! An agent may be stopped between any two steps and continued an hour later. So the time is looked
//! at where it counts: when a connection is made and right before each write, by a wrapper around
//! the connections of the crawl. Transfers that are under way when the lease ends are cut. The
//! window of an [IP address](super::address) ends in the same way.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::link::Shared;
use crate::connect::{Connect, Stream, Waiting};

/// The time of this machine, which never jumps and goes on while it sleeps.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Until when requests may be made.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// Milliseconds of [`now`]; 0 if they may not.
    deadline: AtomicU64,
}

impl Fence {
    /// Lets requests be made until then.
    pub(crate) fn open_until(&self, deadline: Duration) {
        let millis = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        self.deadline.store(millis, Ordering::SeqCst);
    }

    /// Ends all requests at once.
    pub(crate) fn close(&self) {
        self.deadline.store(0, Ordering::SeqCst);
    }

    /// How long requests may still be made.
    pub(crate) fn left(&self) -> Duration {
        let deadline = Duration::from_millis(self.deadline.load(Ordering::SeqCst));
        deadline.saturating_sub(now())
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.left().is_zero()
    }

    fn check(&self) -> io::Result<()> {
        match self.is_open() {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the lease has ended",
            )),
        }
    }
}

/// Connections that end with the lease.
pub(crate) struct Fenced {
    pub(crate) inner: Rc<dyn Connect>,
    pub(crate) shared: Arc<Shared>,
}

impl Connect for Fenced {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let own = self.shared.addresses.fence(address.ip());
            let fences = [Arc::clone(&self.shared.fence), own];
            fences.iter().try_for_each(|fence| fence.check())?;
            let inner = self.inner.connect(address).await?;
            let end = Box::pin(tokio::time::sleep(left(&fences)));
            let fenced = FencedStream { inner, fences, end };
            Ok(Box::new(fenced) as Box<dyn Stream>)
        })
    }
}

/// How long all of these are open.
fn left(fences: &[Arc<Fence>; 2]) -> Duration {
    let [lease, address] = fences;
    lease.left().min(address.left())
}

struct FencedStream {
    inner: Box<dyn Stream>,
    /// That of the lease, and that of the IP address.
    fences: [Arc<Fence>; 2],
    /// Wakes a read that waits when the lease may have ended.
    end: Pin<Box<Sleep>>,
}

impl FencedStream {
    /// Fails when the lease has ended; otherwise has the task woken when it may have.
    fn poll_fence(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.fences.iter().try_for_each(|fence| fence.check())?;
        while self.end.as_mut().poll(context).is_ready() {
            let left = left(&self.fences).max(Duration::from_millis(1));
            self.end.set(tokio::time::sleep(left));
        }
        Ok(())
    }
}

impl AsyncRead for FencedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_fence(context)?;
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for FencedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_fence(context)?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct Pipe;

    impl Connect for Pipe {
        fn connect(&self, _: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>> {
            Box::pin(async {
                let (ours, theirs) = tokio::io::duplex(64);
                // Nobody ever answers, and nobody hangs up.
                std::mem::forget(theirs);
                Ok(Box::new(ours) as Box<dyn Stream>)
            })
        }
    }

    #[test]
    fn nothing_is_sent_after_the_deadline() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let shared = super::super::link::link().1.shared;
            let fence = Arc::clone(&shared.fence);
            let inner = Rc::new(Pipe);
            let fenced = Fenced { inner, shared };
            let address = SocketAddr::from(([127, 0, 0, 1], 80));
            let own = fenced.shared.addresses.fence(address.ip());
            own.open_until(now() + Duration::from_secs(60));
            assert!(fenced.connect(address).await.is_err());
            fence.open_until(now() + Duration::from_millis(60));
            let mut stream = fenced.connect(address).await.unwrap();
            stream.write_all(b"GET").await.unwrap();
            let mut byte = [0];
            // A transfer under way is cut, though nothing comes.
            let cut = stream.read(&mut byte).await.unwrap_err();
            assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
            assert!(stream.write_all(b"GET").await.is_err());
            fence.open_until(now() + Duration::from_secs(60));
            stream.write_all(b"GET").await.unwrap();
            own.close();
            assert!(stream.write_all(b"GET").await.is_err());
            assert!(fenced.connect(address).await.is_err());
            own.open_until(now() + Duration::from_secs(60));
            stream.write_all(b"GET").await.unwrap();
            fence.close();
            assert!(stream.write_all(b"GET").await.is_err());
        });
    }
}
