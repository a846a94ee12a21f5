//! What each client makes of every fault that a `testweb` host has.

use testweb::{Kind, Server};
use tokio::net::TcpStream;

use crate::fetch::Message;
use crate::{Target, broken, config, limits, own, with_hyper};

/// Prints a row for each fault.
pub(crate) async fn compare() -> anyhow::Result<()> {
    let server = Server::start(config(2, Kind::Broken))?;
    println!("\n| fault | own | hyper |");
    println!("|---|---|---|");
    let (mut n_equal, mut n_faults) = (0, 0);
    for (fault, target) in broken(&server.web) {
        let local = tokio::task::LocalSet::new();
        let (own, hyper) = local
            .run_until(async { (with_own(&target).await, with_hyper(&target).await) })
            .await;
        n_faults += 1;
        n_equal += usize::from(own == hyper);
        println!("| {fault:?} | {own} | {hyper} |");
    }
    println!("\n{n_equal} of {n_faults} outcomes are the same.");
    server.stop()?;
    Ok(())
}

fn shown(message: &Message) -> String {
    let status = message.head().map_or(0, |head| head.status);
    let cut = message.cut.map_or("", |cut| cut.as_str());
    format!("{status}, {} bytes {cut}", message.body().len())
}

async fn with_own(target: &Target) -> String {
    let Ok(mut stream) = TcpStream::connect(target.address).await else {
        return "no connection".to_owned();
    };
    match own::fetch(&mut stream, target, &limits(0.5, 1.0)).await {
        Ok((message, _)) => shown(&message),
        Err(failure) => failure.as_str().to_owned(),
    }
}

async fn with_hyper(target: &Target) -> String {
    let mut sender = match with_hyper::connect(target).await {
        Ok(sender) => sender,
        Err(error) => return error.to_string(),
    };
    match with_hyper::fetch(&mut sender, target, &limits(0.5, 1.0)).await {
        Ok(message) => shown(&message),
        Err(error) => format!("{error:#}"),
    }
}
