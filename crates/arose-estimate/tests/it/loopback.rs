//! A server on loopback that gives the responses of a test.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// A response of the server.
pub(crate) enum Said {
    /// A response with a status, type and body.
    Answer(u16, &'static str, String),
    /// A redirect to another URL.
    Redirect(String),
    /// No response until the client gives up.
    Silence,
}

impl Said {
    pub(crate) fn json(body: impl ToString) -> Self {
        Self::Answer(200, "application/json", body.to_string())
    }

    pub(crate) fn html(body: impl ToString) -> Self {
        Self::Answer(200, "text/html; charset=utf-8", body.to_string())
    }
}

/// A request: path and query, and the header fields as received.
pub(crate) struct Asked {
    pub(crate) target: String,
    fields: Vec<String>,
}

impl Asked {
    /// The value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        self.fields.iter().find_map(|field| {
            let (key, value) = field.split_once(':')?;
            let is_it = key.eq_ignore_ascii_case(name);
            is_it.then(|| value.trim().to_owned())
        })
    }
}

/// Serves on a free port for the lifetime of the process. The closure receives path and query.
pub(crate) fn serve(answer: impl Fn(&str) -> Said + Send + Sync + 'static) -> SocketAddr {
    serve_asked(move |asked| answer(&asked.target))
}

/// The same for a closure that receives the whole request. There is no robots.txt.
pub(crate) fn serve_asked(answer: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> SocketAddr {
    serve_all(move |asked| match asked.target.as_str() {
        "/robots.txt" => Said::Answer(404, "text/plain", String::new()),
        _ => answer(asked),
    })
}

/// The same for a closure that also responds for robots.txt.
pub(crate) fn serve_all(answer: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = std::sync::Arc::clone(&answer);
            thread::spawn(move || {
                let _ = talk(stream, &*answer);
            });
        }
    });
    address
}

/// Responds to requests on one connection until it ends.
fn talk(stream: TcpStream, answer: &dyn Fn(&Asked) -> Said) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut fields = Vec::new();
        let mut field = String::new();
        while reader.read_line(&mut field)? > 2 {
            fields.push(std::mem::take(&mut field));
        }
        let target = request.split(' ').nth(1).unwrap_or("/").to_owned();
        match answer(&Asked { target, fields }) {
            Said::Silence => {
                let mut rest = String::new();
                reader.read_line(&mut rest)?;
                return Ok(());
            }
            Said::Redirect(to) => {
                let answer =
                    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes())?;
            }
            Said::Answer(status, kind, body) => {
                // In one write, because small pieces would wait for each other.
                let n = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {n}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes())?;
            }
        }
    }
}

/// The value of a parameter in a query string.
pub(crate) fn parameter(target: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(&format!("http://h{target}")).unwrap();
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
