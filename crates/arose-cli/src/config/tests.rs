//! Tests of configuration files from their text.

use super::*;

fn load(text: &str) -> anyhow::Result<Config> {
    let command = crate::command();
    let mut config = Config::default();
    config.add(&command, "arose.toml", text)?;
    config.check_conflicts(&command)?;
    Ok(config)
}

/// The arguments after a configuration file has been applied.
fn matches(config: &mut Config, line: &str) -> ArgMatches {
    let command = crate::command();
    loop {
        let with_defaults = config.apply(command.clone());
        let words = line.split(' ');
        let matches = with_defaults.try_get_matches_from(words).unwrap();
        if !config.yield_to(&command, &matches) {
            return matches;
        }
    }
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let error = load(text).map(|_| ()).unwrap_err();
    assert!(format!("{error:#}").contains(expected), "{error:#}");
}

#[test]
fn issue_32_errors_name_the_line_and_what_to_do() {
    check_error(
        "[dedup]\n\ntreshold = 0.9",
        "arose.toml:3: unknown key `treshold`; `arose dedup --help`",
    );
    check_error("threshold = 0.9", "arose.toml:1: unknown key `threshold`");
    check_error("[dedub]\n", "arose.toml:1: no command `dedub`");
    check_error("[index.made]\n", "no command `index made`");
    check_error("[dedup]\nquiet = true", "put it above all tables");
    check_error("[dedup]\nforce = true", "cannot be set in a file");
    check_error("[dedup]\nthreshold = 2", "arose.toml:2: invalid value '2'");
    check_error("[dedup]\nkeep = 'none'", "invalid value 'none' for '--keep");
    check_error("memory = '1MiB'", "expected at least 64 MiB");
    check_error("[dedup]\nquality = 1", "must be true or false");
    check_error("[dedup]\ncap = [1, 2]", "takes one value");
    check_error("[dedup]\ncap = 1979-05-27", "cannot be");
    check_error("[dedup\n", "arose.toml:1: ");
    check_error(
        "[dedup]\nids-only = true\ndropped = 'revisit'",
        "arose.toml:2: `ids-only` conflicts with `dropped` at arose.toml:3",
    );
    check_error("quiet = true\nverbose = true", "conflicts with");
    check_error("color = 'red'", "invalid value 'red'");
}

#[test]
fn issue_32_the_command_line_wins() {
    let text = "threads = 3\n[dedup]\nthreshold = 0.9\nquality = true\nexclude = ['a', 'b']\n";
    let mut config = load(text).unwrap();
    let outer = matches(&mut config, "arose dedup in -o out");
    let (_, inner) = outer.subcommand().unwrap();
    let threshold = *inner.get_one::<arose::Threshold>("threshold").unwrap();
    assert_eq!(threshold.get(), 0.9);
    assert!(inner.get_flag("quality"));
    let excluded: Vec<&String> = inner.get_many("exclude").unwrap().collect();
    assert_eq!(excluded, ["a", "b"]);
    let set = config.in_words(&outer);
    assert!(
        set.contains(&"--threads 3 (arose.toml:1)".to_owned()),
        "{set:?}"
    );
    assert!(
        set.contains(&"--exclude a b (arose.toml:5)".to_owned()),
        "{set:?}"
    );

    let line = "arose dedup in -o out --threshold 0.5 --quality=false --exclude c --threads 1";
    let outer = matches(&mut config, line);
    let (_, inner) = outer.subcommand().unwrap();
    let threshold = *inner.get_one::<arose::Threshold>("threshold").unwrap();
    assert_eq!(threshold.get(), 0.5);
    assert!(!inner.get_flag("quality"));
    let excluded: Vec<&String> = inner.get_many("exclude").unwrap().collect();
    assert_eq!(excluded, ["c"]);
}

#[test]
fn issue_32_settings_yield_to_arguments_they_conflict_with() {
    let mut config = load("[dedup]\nids-only = true\n[index.create]\npolicy = 'b'").unwrap();
    let outer = matches(&mut config, "arose dedup in -o out --dropped revisit");
    let (_, inner) = outer.subcommand().unwrap();
    assert!(!inner.get_flag("ids_only"));
    let mut config = load("quiet = true").unwrap();
    let outer = matches(&mut config, "arose dedup in -o out -v");
    assert!(!outer.get_flag("quiet") && outer.get_flag("verbose"));
    let mut config = load("quiet = true").unwrap();
    assert!(matches(&mut config, "arose dedup in -o out").get_flag("quiet"));
}

#[test]
fn issue_32_a_file_can_set_required_options() {
    let mut config = load("[dedup]\noutput = 'out'").unwrap();
    let outer = matches(&mut config, "arose dedup in");
    let (_, inner) = outer.subcommand().unwrap();
    assert_eq!(
        inner.get_one::<PathBuf>("output"),
        Some(&PathBuf::from("out"))
    );
}

#[test]
fn issue_32_later_files_win() {
    let command = crate::command();
    let mut config = Config::default();
    let user = "threads = 2\n[dedup]\nthreads = 3\ncap = 7";
    config.add(&command, "user", user).unwrap();
    config
        .add(&command, "here", "[dedup]\nthreads = 4")
        .unwrap();
    let of = |option: &str| {
        let own = config.settings.iter();
        let mut own = own.filter(|set| set.command == ["dedup"] && set.option == option);
        let found = own.next().unwrap();
        assert_eq!(own.next(), None);
        (found.values.clone(), found.place.clone())
    };
    assert_eq!(of("threads"), (vec!["4".to_owned()], "here:2".to_owned()));
    assert_eq!(of("cap"), (vec!["7".to_owned()], "user:4".to_owned()));
}
