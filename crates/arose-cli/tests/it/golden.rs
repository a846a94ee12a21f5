//! Tests of sessions with known output.
//!
//! Each file in `tests/golden` is a console session, and so are some pages of `docs/`. To write the
//! current output, and review it before committing: `TRYCMD=overwrite cargo test -p arose-cli
//! golden`.

#[test]
fn sessions() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).unwrap();
    trycmd::TestCases::new()
        .case("crates/arose-cli/tests/golden/*.md")
        .case("docs/commands.md")
        .case("docs/guide-engines.md")
        .case("docs/guide-measure.md")
        .case("docs/inspect.md");
}
