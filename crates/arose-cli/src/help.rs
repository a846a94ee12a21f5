//! `arose help`: the full help of a command, and topics that concern several.

use std::io::{self, Write};

use anyhow::{Context, bail};

use crate::read::Outcome;
use crate::{options, policy, search};

/// Print the full help of a command, or a topic
///
/// Without arguments, lists commands and topics. `arose COMMAND --help` prints a line per option.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose help dedup
  arose help index create
  arose help policies

Topics: exit-codes, policies, queries, units")]
pub(crate) struct Options {
    /// Command, or one of exit-codes, policies, queries, units
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

const TOPICS: [(&str, &str, &str); 4] = [
    ("exit-codes", "exit codes", options::EXIT_CODES),
    (
        "policies",
        "what makes two documents duplicates",
        policy::HELP,
    ),
    (
        "queries",
        "queries of arose search and serve",
        search::QUERIES,
    ),
    ("units", "sizes, durations and shares", options::UNITS),
];

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let text = text(&options.topic)?;
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write the help")?;
    Ok(Outcome::Found)
}

fn text(topic: &[String]) -> anyhow::Result<String> {
    if let [name] = topic
        && let Some((_, title, text)) = TOPICS.iter().find(|(topic, _, _)| topic == name)
    {
        return Ok(format!("{}\n\n{text}\n", capitalized(title)));
    }
    let mut command = crate::command();
    command.build();
    let mut found = &mut command;
    for name in topic {
        let Some(next) = found.find_subcommand_mut(name) else {
            bail!(
                "no command or topic `{}`; `arose help` lists them",
                topic.join(" ")
            );
        };
        found = next;
    }
    let mut text = found.render_long_help().to_string();
    if topic.is_empty() {
        text += "\nTopics, for `arose help TOPIC`:\n";
        for (name, title, _) in TOPICS {
            text += &format!("  {name:<11}  {}\n", capitalized(title));
        }
    }
    Ok(text)
}

fn capitalized(title: &str) -> String {
    let (first, rest) = title.split_at(1);
    first.to_uppercase() + rest
}
