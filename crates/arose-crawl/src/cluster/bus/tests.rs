//! The same tests for every bus.

use std::time::Duration;

use tokio::time::timeout;

use super::*;

#[path = "../../../tests/it/nats.rs"]
mod nats_server;

use nats_server::NatsServer;

fn block_on(run: impl Future<Output = ()>) {
    crate::cluster::block_on_bus(run);
}

fn key(name: &str) -> Subject {
    Subject::Key(name.to_owned())
}

/// Keys change only from the version that the writer knows.
async fn check_keys<B: Bus>(a: &B, b: &B) {
    let first = a.append(&key("x"), 0, b"1".to_vec()).await.unwrap();
    let stale = b.append(&key("x"), 0, b"2".to_vec()).await;
    assert_eq!(stale, Err(BusError::Conflict));
    let second = b.append(&key("x"), first, b"2".to_vec()).await.unwrap();
    let stale = a.append(&key("x"), first, b"3".to_vec()).await;
    assert_eq!(stale, Err(BusError::Conflict));
    let last = [(second, b"2".to_vec())];
    assert_eq!(a.read(&key("x"), 0).await.unwrap(), last);
    assert_eq!(a.read(&key("x"), second).await.unwrap(), []);
    assert_eq!(a.read(&key("y"), 0).await.unwrap(), []);
}

/// Both agents see all documents, those included that were there before.
async fn check_changes<B: Bus>(a: &B, b: &B) {
    let number = a.append(&key("a.1"), 0, b"here".to_vec()).await.unwrap();
    for bus in [a, b] {
        let is_it = |(name, entry): &(String, Stored)| {
            name == "a.1" && *entry == (number, b"here".to_vec())
        };
        let found = timeout(Duration::from_secs(5), async {
            while !bus.changes().await.iter().any(is_it) {}
        });
        found.await.unwrap();
    }
}

/// Logs keep all messages, and only one of two writers goes on.
async fn check_logs<B: Bus>(a: &B, b: &B) {
    let mut tail = 0;
    for n in 0..450_u32 {
        let bytes = n.to_le_bytes().to_vec();
        tail = a.append(&Subject::Log(7), tail, bytes).await.unwrap();
    }
    a.append(&Subject::Log(8), 0, b"other".to_vec())
        .await
        .unwrap();
    let mut read: Vec<Stored> = Vec::new();
    loop {
        let after = read.last().map_or(0, |(number, _)| *number);
        let more = b.read(&Subject::Log(7), after).await.unwrap();
        if more.is_empty() {
            break;
        }
        read.extend(more);
    }
    let numbers: Vec<Vec<u8>> = read.iter().map(|(_, bytes)| bytes.clone()).collect();
    let expected: Vec<Vec<u8>> = (0..450_u32).map(|n| n.to_le_bytes().to_vec()).collect();
    assert_eq!(numbers, expected);
    assert_eq!(read.last().map(|(number, _)| *number), Some(tail));
    let taken = b.append(&Subject::Log(7), tail, b"b".to_vec()).await;
    assert!(taken.is_ok());
    let zombie = a.append(&Subject::Log(7), tail, b"a".to_vec()).await;
    assert_eq!(zombie, Err(BusError::Conflict));
}

/// Messages wait in the queue of their partition until its owner pulls them.
async fn check_queues<B: Bus>(a: &B, b: &B) {
    for n in 0..5_u8 {
        a.send(200, vec![n]).await.unwrap();
    }
    a.send(201, vec![9]).await.unwrap();
    for n in 0..5_u8 {
        let delivery = timeout(Duration::from_secs(5), b.pull(200)).await.unwrap();
        assert_eq!(delivery.bytes, [n]);
        b.acknowledge(delivery.token).await;
    }
    let nothing = timeout(Duration::from_millis(300), b.pull(200)).await;
    assert!(nothing.is_err());
    let other = timeout(Duration::from_secs(5), a.pull(201)).await.unwrap();
    assert_eq!(other.bytes, [9]);
}

/// Words reach the agent they are for.
async fn check_words<B: Bus>(a: &B, b: &B) {
    a.tell("b", b"for b".to_vec()).await;
    b.tell("a", b"for a".to_vec()).await;
    a.tell("a", b"myself".to_vec()).await;
    let heard = async { (a.hear().await, a.hear().await, b.hear().await) };
    let (one, two, for_b) = timeout(Duration::from_secs(5), heard).await.unwrap();
    let mut for_a = [one, two];
    for_a.sort();
    assert_eq!(for_a, [b"for a".to_vec(), b"myself".to_vec()]);
    assert_eq!(for_b, b"for b");
}

async fn check<B: Bus>(a: B, b: B) {
    check_keys(&a, &b).await;
    check_changes(&a, &b).await;
    check_logs(&a, &b).await;
    check_queues(&a, &b).await;
    check_words(&a, &b).await;
}

#[test]
fn local() {
    let a = Local::new("a");
    let b = a.with("b");
    block_on(check(a, b));
}

fn login(server: &NatsServer) -> Login {
    Login {
        servers: server.url(),
        max_queue: 64 << 20,
        n_replicas: 1,
        ..Login::default()
    }
}

#[test]
fn nats() {
    let Some(server) = NatsServer::start(&[]) else {
        return;
    };
    let login = login(&server);
    block_on(async {
        let a = Nats::connect(&login, "test", "a").await.unwrap();
        let b = Nats::connect(&login, "test", "b").await.unwrap();
        check(a, b).await;
    });
}

/// Who does not know the password does not get in, and hears why.
#[test]
fn nats_with_a_password() {
    let Some(server) = NatsServer::start(&["--user", "u", "--pass", "p"]) else {
        return;
    };
    let mut login = login(&server);
    block_on(async {
        let refused = Nats::connect(&login, "test", "a").await;
        let Err(BusError::Unavailable(message)) = refused else {
            panic!("not refused");
        };
        assert!(message.contains("authorization"), "{message}");
        login.user = Some(("u".to_owned(), "p".to_owned()));
        Nats::connect(&login, "test", "a").await.unwrap();
    });
}

/// What was stored survives the end of the server, and agents connect again by themselves.
#[test]
fn nats_after_kill() {
    let Some(mut server) = NatsServer::start(&[]) else {
        return;
    };
    let login = login(&server);
    block_on(async {
        let a = Nats::connect(&login, "test", "a").await.unwrap();
        let number = a.append(&key("x"), 0, b"1".to_vec()).await.unwrap();
        server.kill();
        let lost = a.append(&key("x"), number, b"2".to_vec()).await;
        assert!(matches!(lost, Err(BusError::Unavailable(_))), "{lost:?}");
        server.run();
        let again = async {
            loop {
                match a.read(&key("x"), 0).await {
                    Ok(found) if !found.is_empty() => return found,
                    _ => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        };
        let found = timeout(Duration::from_secs(15), again).await.unwrap();
        // The second message may have waited in the client until the server was there.
        assert!(found[0].1 == b"1" || found[0].1 == b"2", "{found:?}");
    });
}

/// A bus that has lost everything begins again with the first message.
async fn check_lost<B: Bus>(bus: &B) {
    let again = async {
        while bus.prepare().await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(30), again).await.unwrap();
    for subject in [key("x"), Subject::Log(7)] {
        assert_eq!(bus.last(&subject).await, Ok(None));
        let first = bus.append(&subject, 0, b"1".to_vec()).await.unwrap();
        let last = bus.last(&subject).await.unwrap();
        assert_eq!(last, Some((first, b"1".to_vec())));
    }
    bus.look_again();
    let changes = timeout(Duration::from_secs(10), bus.changes())
        .await
        .unwrap();
    assert_eq!((changes.len(), &*changes[0].0), (1, "x"));
    let second = bus.append(
        &Subject::Log(7),
        bus.last(&Subject::Log(7)).await.unwrap().unwrap().0,
        b"2".to_vec(),
    );
    let second = second.await.unwrap();
    bus.purge(7, second).await.unwrap();
    let left = bus.read(&Subject::Log(7), 0).await.unwrap();
    assert_eq!(left, [(second, b"2".to_vec())]);
}

#[test]
fn local_lost() {
    let bus = Local::new("a");
    block_on(async {
        bus.append(&key("x"), 0, b"0".to_vec()).await.unwrap();
        bus.append(&Subject::Log(7), 0, b"0".to_vec())
            .await
            .unwrap();
        bus.wipe();
        check_lost(&bus).await;
    });
}

#[test]
fn nats_lost() {
    let Some(mut server) = NatsServer::start(&[]) else {
        return;
    };
    let login = login(&server);
    block_on(async {
        let bus = Nats::connect(&login, "test", "a").await.unwrap();
        bus.append(&key("x"), 0, b"0".to_vec()).await.unwrap();
        bus.append(&Subject::Log(7), 0, b"0".to_vec())
            .await
            .unwrap();
        bus.changes().await;
        server.kill();
        server.wipe();
        server.run();
        check_lost(&bus).await;
    });
}
