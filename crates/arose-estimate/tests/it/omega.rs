//! Xapian Omega, a real search engine from Debian, behind a small server that runs it as CGI.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use arose_estimate::engine::Description;

use crate::loopback::{Said, parameter, serve};

/// The path of the program in Debian; `AROSE_OMEGA` sets another path.
const PROGRAM: &str = "/usr/lib/cgi-bin/omega/omega";

/// The program, if it is installed.
#[expect(clippy::print_stdout, reason = "a skipped test must say so")]
pub(crate) fn program() -> Option<PathBuf> {
    let place = std::env::var_os("AROSE_OMEGA").map_or_else(|| PROGRAM.into(), PathBuf::from);
    let is_there = place.exists()
        && Command::new("scriptindex")
            .arg("--version")
            .output()
            .is_ok();
    if !is_there {
        println!("skipped: xapian-omega is not installed");
    }
    is_there.then_some(place)
}

/// Indexes pages, each with URL and text, and serves them and their texts.
pub(crate) fn start(program: &Path, folder: &Path, pages: &[(String, String)]) -> Description {
    index(folder, pages);
    let address = serve_cgi(program.to_owned(), folder.to_owned(), pages.to_vec());
    Description {
        name: Some("omega".to_owned()),
        document: Some(format!("http://{address}/text?url={{address}}")),
        delay: Some(0.0),
        timeout: Some(20.0),
        ..Description::preset("omega", &format!("http://{address}/omega?DB=pages"))
    }
}

fn index(folder: &Path, pages: &[(String, String)]) {
    fs::create_dir_all(folder.join("db")).unwrap();
    let script = folder.join("pages.script");
    fs::write(
        &script,
        "url : field=url boolean=Q unique=Q\ntext : index\n",
    )
    .unwrap();
    let mut child = Command::new("scriptindex")
        .arg(folder.join("db/pages"))
        .arg(&script)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (url, text) in pages {
        let text: Vec<&str> = text.split_whitespace().collect();
        write!(input, "url={url}\ntext={}\n\n", text.join(" ")).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    let here = folder.display();
    let settings = format!(
        "database_dir {here}/db\ntemplate_dir /var/lib/xapian-omega/templates\nlog_dir {here}\n\
         cdb_dir {here}\n"
    );
    fs::write(folder.join("omega.conf"), settings).unwrap();
}

fn serve_cgi(program: PathBuf, folder: PathBuf, pages: Vec<(String, String)>) -> SocketAddr {
    serve(move |target| {
        if target.starts_with("/text") {
            let url = parameter(target, "url").unwrap();
            let page = pages.iter().find(|(own, _)| *own == url);
            let Some((_, text)) = page else {
                return Said::Answer(404, "text/plain", url);
            };
            return Said::Answer(200, "text/plain; charset=utf-8", text.clone());
        }
        let output = Command::new(&program)
            .env("OMEGA_CONFIG_FILE", folder.join("omega.conf"))
            .env("REQUEST_METHOD", "GET")
            .env("QUERY_STRING", target.split_once('?').unwrap().1)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, body) = text.split_once("\n\n").unwrap_or(("", &text));
        Said::Answer(200, "application/xml; charset=utf-8", body.to_owned())
    })
}
