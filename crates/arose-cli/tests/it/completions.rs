//! Completion scripts and man pages.

use std::fs;
use std::process::Command;

fn arose() -> Command {
    Command::new(env!("CARGO_BIN_EXE_arose"))
}

#[test]
fn issue_32_scripts_know_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = arose().args(["completions", shell]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["passages", "estimate", "quote"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let bash = arose().args(["completions", "bash"]).output().unwrap();
    // bash accepts the script.
    let mut command = Command::new("bash");
    command.arg("-n").stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &bash.stdout).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        arose()
            .args(["completions", "tcsh"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn issue_32_every_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("new/man1");
    let output = arose().arg("man").arg(&man).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for name in [
        "arose",
        "arose-dedup",
        "arose-index-create",
        "arose-estimate-overlap",
    ] {
        let page = fs::read_to_string(man.join(format!("{name}.1"))).unwrap();
        assert!(
            page.contains(".TH ") && page.contains("SYNOPSIS"),
            "{name}: {page}"
        );
    }
    let search = fs::read_to_string(man.join("arose-search.1")).unwrap();
    assert!(
        search.contains("quote") && search.contains("Examples"),
        "{search}"
    );
    // A directory that cannot be created is an error with its name.
    fs::write(folder.path().join("file"), "").unwrap();
    let output = arose()
        .arg("man")
        .arg(folder.path().join("file/x"))
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("file/x"),
        "{output:?}"
    );
}
