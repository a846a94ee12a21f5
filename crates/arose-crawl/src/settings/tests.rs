//! Tests of the settings.

use super::*;

#[test]
fn the_template_holds_every_default() {
    assert_eq!(Settings::parse(TEMPLATE).unwrap(), Settings::default());
    let active = TEMPLATE
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains('='));
    assert_eq!(active.count(), 63);
}

#[test]
fn settings_survive_being_written() {
    let mut settings = Settings::default();
    settings.polite.delay = 0.25;
    settings.network.certificates = Some("x.pem".into());
    let text = settings.to_toml().unwrap();
    assert_eq!(Settings::parse(&text).unwrap(), settings);
}

#[test]
fn misspelt_names_are_errors() {
    let error = Settings::parse("[polite]\ndeley = 2.0\n").unwrap_err();
    assert!(error.to_string().contains("deley"), "{error}");
}

#[test]
fn the_user_agent_names_a_contact() {
    let mut settings = Settings::default();
    settings.agent.contact = "https://example.org/bot".to_owned();
    let expected = format!(
        "arose/{} (+https://example.org/bot)",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(settings.user_agent(), expected);
}
