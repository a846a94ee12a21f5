//! Tests that the commands in the documentation and in examples can be parsed.

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;

/// The words of a command, up to the end of the command or a comment. Quotes are removed.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (None, '#') if word.is_none() => break,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The error in a command, if it could not be typed like this.
fn flaw(line: &str) -> Option<String> {
    let words = crate::search::with_negations(words(line).into_iter().map(Into::into));
    let error = crate::command().try_get_matches_from(words).err()?;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        _ => Some(error.to_string()),
    }
}

/// Lines of code that call `arose`, with continued lines joined.
fn calls(code: &str) -> Vec<String> {
    let code = code.replace("\\\n", " ");
    let lines = code.lines().map(str::trim);
    let lines = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let calls = lines.filter_map(|line| line.find("arose ").map(|at| (line, at)));
    calls
        .filter(|(line, at)| *at == 0 || line[..*at].ends_with("| "))
        .map(|(line, at)| line[at..].to_owned())
        .collect()
}

#[test]
fn issue_32_commands_in_the_documentation_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let mut files: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    files.extend([root.join("README.md"), root.join("bench/README.md")]);
    let (mut n_calls, mut flaws) = (0, Vec::new());
    for file in files {
        let is_page = file.extension().is_some_and(|kind| kind == "md");
        // The tests run the transcripts of that file.
        if !is_page || file.ends_with("commands.md") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let blocks = text.split("```").skip(1).step_by(2);
        for block in blocks.filter_map(|block| block.strip_prefix("sh\n")) {
            for call in calls(block) {
                n_calls += 1;
                flaws.extend(flaw(&call).map(|flaw| format!("{}: {call}\n{flaw}", file.display())));
            }
        }
    }
    assert!(n_calls > 40, "{n_calls} commands");
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

/// Commands in running text name no unknown option or command; arguments may be left out or stand
/// for others.
#[test]
fn issue_32_commands_in_sentences_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let mut files: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let (mut n_calls, mut flaws) = (0, Vec::new());
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|kind| kind == "md"))
    {
        let text = fs::read_to_string(file).unwrap();
        let prose: String = text.split("```").step_by(2).collect();
        for code in prose.split('`').skip(1).step_by(2) {
            let code = code.replace('\n', " ");
            let Some(arguments) = code.strip_prefix("arose ") else {
                continue;
            };
            n_calls += 1;
            // A value may stand for any: `--policy P`, `COMMAND`.
            let is_pattern = arguments.starts_with(|c: char| c.is_ascii_uppercase());
            let words = crate::search::with_negations(words(&code).into_iter().map(Into::into));
            let error = crate::command().try_get_matches_from(words).err();
            let kind = error.as_ref().map(clap::Error::kind);
            let is_wrong = matches!(
                kind,
                Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
            );
            if is_wrong && !is_pattern {
                flaws.push(format!("{}: {code}", file.display()));
            }
        }
    }
    assert!(n_calls > 150, "{n_calls} commands");
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[test]
fn issue_32_examples_in_help_can_be_typed() {
    let mut left = vec![crate::command()];
    let (mut n_calls, mut flaws) = (0, Vec::new());
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().cloned());
        let after = command.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        let examples = after.strip_prefix("Examples:\n").unwrap_or_default();
        let examples = examples.split("\n\n").next().unwrap_or_default();
        for call in calls(examples) {
            n_calls += 1;
            flaws.extend(flaw(&call).map(|flaw| format!("{call}\n{flaw}")));
        }
    }
    assert!(n_calls > 80, "{n_calls} examples");
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[test]
fn words_are_split_as_a_shell_does() {
    let line = "arose search out '\"a rose\" -thorn' --kept  # a comment | no pipe";
    let expected = ["arose", "search", "out", "\"a rose\" -thorn", "--kept"];
    assert_eq!(words(line), expected);
    assert_eq!(words("arose read '' x > y"), ["arose", "read", "", "x"]);
    assert!(flaw("arose dedup in -o out --treshold 1").is_some());
}
