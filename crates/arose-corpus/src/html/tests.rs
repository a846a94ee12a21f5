//! Tests of the text specification, and properties that hold for any input.

use proptest::prelude::*;

use super::*;

/// A simple tokenizer: lower-case alphanumeric runs, with the images in their places.
fn tokens(page: &Extracted) -> Vec<String> {
    let mut out = Vec::new();
    let mut from = 0;
    for image in &page.images {
        push_words(&page.text[from..image.at], &mut out);
        out.push(format!("IMG({})", image.src));
        from = image.at;
    }
    push_words(&page.text[from..], &mut out);
    out
}

fn push_words(text: &str, out: &mut Vec<String>) {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    out.extend(words.map(str::to_lowercase));
}

/// All text with URLs and images.
fn henzinger() -> HtmlConfig {
    HtmlConfig {
        mode: Mode::Henzinger,
        ..HtmlConfig::default()
    }
}

fn read(html: &str) -> Vec<String> {
    tokens(&extract(html, None, &henzinger()))
}

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(read(html).join(" "), expected, "{html}");
}

#[test]
fn oracle_of_the_specification() {
    check(
        r#"<p>See <a href="http://www.cs.berkeley.edu/index.html">home</a> <img src="/img/logo-2.gif"></p>"#,
        "see http www cs berkeley edu index html home IMG(/img/logo-2.gif)",
    );
}

#[test]
fn issue_24_visible_text_has_no_addresses() {
    let html = r#"<p>See <a href="http://www.example.org/">ho<b>me</b></a> <img src="/logo.gif" alt="x"></p>"#;
    let page = extract(html, None, &HtmlConfig::default());
    assert_eq!(tokens(&page).join(" "), "see home");
    assert!(page.images.is_empty());
    assert_eq!(page.metadata.mode, Some(Mode::Visible));
}

/// A page without main content is read as visible text, and says so.
#[test]
fn issue_24_pages_without_main_content() {
    let config = HtmlConfig {
        mode: Mode::Content,
        ..HtmlConfig::default()
    };
    let mode_of = |html: &str| {
        let page = extract(html, None, &config);
        (page.text, page.metadata.mode)
    };
    let links = "<title>T</title><nav><a href=/1>one</a> <a href=/2>two</a></nav>";
    assert!(content::extract(links, None, &config).text.is_empty());
    assert_eq!(
        mode_of(links),
        ("T\none two".to_owned(), Some(Mode::Visible))
    );
    let prose = "<p>one sentence that is long enough to be read as prose, twice over.</p>";
    let prose = format!("{links}{}", prose.repeat(5));
    let (text, mode) = mode_of(&prose);
    assert!(text.starts_with("one sentence") && mode == Some(Mode::Content));
    assert_eq!(mode_of("").1, Some(Mode::Visible));
}

#[test]
fn inline_tags_join_and_blocks_separate() {
    check("ro<b>se</b>", "rose");
    check("<p>ro</p><p>se</p>", "ro se");
    check("ro<br>se", "ro se");
    check("<td>ro<td>se", "ro se");
    check("ro<unknown>se", "rose");
    check("ro<!-- x -->se", "rose");
}

#[test]
fn references_join_or_separate() {
    check("AT&amp;T", "at t");
    check("caf&eacute;s", "cafés");
    check("a&nbsp;b", "a b");
}

#[test]
fn hidden_text_is_dropped() {
    check("a<script>var x = '<p>b';</script>c", "ac");
    check("a<style>p { b }</style> c", "a c");
    check("a<template>b<template>c</template>d</template>e", "ae");
    check(
        "a<noscript>b</noscript>c<iframe src=d>e</iframe>f",
        "a c d f",
    );
    check("<!doctype html><!-- a --><title>b</title>", "b");
    check("<svg><style>a</style><text>b</text></svg>", "b");
}

#[test]
fn images_are_terms() {
    check("a<img src=' x.gif '>b", "a IMG(x.gif) b");
    check("<img src=''><img>a", "a");
    check("a <img src=x><img src=y> b", "a IMG(x) IMG(y) b");
}

#[test]
fn addresses_stand_at_their_tag() {
    check("a<a href='b?c=d&amp;e'>f</a>", "a b c d e f");
    check("<frame src=a.html><area href=/b><link href=c>", "a html b");
}

#[test]
fn one_source_changes_one_token() {
    let page = |src: &str| {
        read(&format!(
            "<p>one <img src={src}> two <a href=/x/y/z>three</a>"
        ))
    };
    let (before, after) = (page("a.gif"), page("/other/b.png"));
    let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert_eq!((before.len(), changed), (after.len(), 1));
}

#[test]
fn one_path_segment_changes_its_tokens() {
    let page = |segment: &str| read(&format!("<p>one <a href=/x/{segment}/z>three</a>"));
    assert_eq!(page("y"), ["one", "x", "y", "z", "three"]);
    assert_eq!(page("v-w"), ["one", "x", "v", "w", "z", "three"]);
}

#[test]
fn case_order_and_comments_do_not_matter() {
    let a = "<A HREF='/x' CLASS=c>one</A><IMG ALT=z SRC=i.gif><P>two";
    let b = "<!-- hi --><a class=c href='/x'>o<!---->ne</a><img src=i.gif alt=z><p>two";
    assert_eq!(read(a), read(b));
}

#[test]
fn switches_take_in_more() {
    let html = "<meta name=Description content='a b'><p>c<img src=i alt='d e'>f";
    let config = HtmlConfig {
        alt: Switch::On,
        meta: Switch::On,
        ..HtmlConfig::default()
    };
    assert_eq!(extract(html, None, &config).text, "a b\nc d e f");
    assert_eq!(extract(html, None, &HtmlConfig::default()).text, "cf");
}

#[test]
fn plain_text_stays() {
    let config = HtmlConfig {
        mode: Mode::Plain,
        ..HtmlConfig::default()
    };
    assert_eq!(
        extract("a <b> &amp;\n", None, &config).text,
        "a <b> &amp;\n"
    );
}

fn metadata(html: &str) -> Metadata {
    let url = Url::parse("https://example.org/dir/page.html").unwrap();
    let config = HtmlConfig {
        links: Links::Collect,
        ..HtmlConfig::default()
    };
    extract(html, Some(&url), &config).metadata
}

#[test]
fn links_are_resolved() {
    let found = metadata(
        "<a href=' next.html#x '>a</a><a rel='External NoFollow' href=/up>b</a><a name=x>c</a>\
         <a href='mailto:x@example.org'>d</a><a href='http://['>e</a><iframe src=//other/f></iframe>",
    );
    let urls: Vec<_> = found
        .links
        .iter()
        .map(|link| (link.url.as_str(), link.nofollow))
        .collect();
    assert_eq!(
        urls,
        [
            ("https://example.org/dir/next.html#x", false),
            ("https://example.org/up", true),
            ("https://other/f", false)
        ]
    );
}

#[test]
fn links_in_the_head_that_lead_to_pages() {
    let found = metadata(
        "<link rel=stylesheet href=s.css><link rel='Next' href=2.html><link rel=icon href=i.png>\
         <link rel='search' href=/search.html><link rel=next><a href=x>a</a>",
    );
    let urls: Vec<_> = found.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "https://example.org/dir/2.html",
            "https://example.org/search.html",
            "https://example.org/dir/x"
        ]
    );
}

#[test]
fn a_late_base_counts_for_all() {
    let found = metadata("<a href=x>a</a><base href=/b/><base href=/c/><a href=y>b</a>");
    assert_eq!(found.base.as_deref(), Some("https://example.org/b/"));
    assert_eq!(found.links[0].url, "https://example.org/b/x");
    assert_eq!(found.links[1].url, "https://example.org/b/y");
}

#[test]
fn head_elements() {
    let found = metadata(
        "<html lang=en><head><title> A\n  rose </title><title>no</title>\
         <link rel=canonical href=/c><link rel='alternate' hreflang=de href=de>\
         <meta name=ROBOTS content='NoIndex, follow'><meta http-equiv=refresh content='5; URL=\"/r\"'>\
         <meta http-equiv=content-language content=fr>",
    );
    assert_eq!(found.title.as_deref(), Some("A rose"));
    assert_eq!(found.lang.as_deref(), Some("en"));
    assert_eq!(found.canonical.as_deref(), Some("https://example.org/c"));
    let de = Alternate {
        lang: "de".into(),
        url: "https://example.org/dir/de".into(),
    };
    assert_eq!(found.alternates, [de]);
    assert_eq!(
        found.robots,
        MetaRobots {
            noindex: true,
            nofollow: false
        }
    );
    let refresh = Refresh {
        seconds: 5,
        url: Some("https://example.org/r".into()),
    };
    assert_eq!(found.refresh, Some(refresh));
}

#[test]
fn feeds_are_no_other_languages() {
    let found = metadata(
        "<link rel=alternate type=application/rss+xml href=/rss><link rel='ALTERNATE home' \
         type='Application/Atom+XML; charset=utf-8' hreflang=de href=' atom '>\
         <link rel=alternate type=text/html href=/print><link rel=alternate \
         type=application/rss+xml><link rel=feed type=application/rss+xml href=/no>",
    );
    let feeds = ["https://example.org/rss", "https://example.org/dir/atom"];
    assert_eq!(found.feeds, feeds);
    assert_eq!((found.alternates.len(), found.links.len()), (0, 0));
    let many = "<link rel=alternate type=application/rss+xml href=f>".repeat(100);
    assert_eq!(metadata(&many).feeds.len(), 16);
}

#[test]
fn a_title_in_an_image_is_no_title() {
    let found = metadata("<svg><title>icon</title></svg><title>page</title>");
    assert_eq!(found.title.as_deref(), Some("page"));
}

#[test]
fn refresh_forms() {
    #[track_caller]
    fn check(content: &str, expected: Option<(u32, Option<&str>)>) {
        let found = metadata(&format!("<meta http-equiv=Refresh content=\"{content}\">")).refresh;
        let found = found.map(|refresh| (refresh.seconds, refresh.url));
        assert_eq!(
            found,
            expected.map(|(s, url)| (s, url.map(str::to_owned))),
            "{content}"
        );
    }
    check("0", Some((0, None)));
    check("3.5,x", Some((3, Some("https://example.org/dir/x"))));
    check(
        " 1 ; url = 'x' y",
        Some((1, Some("https://example.org/dir/x"))),
    );
    check(
        "99999999999;url=x",
        Some((u32::MAX, Some("https://example.org/dir/x"))),
    );
    check(".5", Some((0, None)));
    check("x", None);
    check("", None);
}

#[test]
fn a_long_base_does_not_fill_memory() {
    let html = format!(
        "<base href='/{}/'>{}",
        "b".repeat(100_000),
        "<a href=x>".repeat(10_000)
    );
    let url = Url::parse("https://example.org/").unwrap();
    let config = HtmlConfig {
        links: Links::Collect,
        ..HtmlConfig::default()
    };
    let page = extract(&html, Some(&url), &config);
    assert_eq!(page.warnings, [HtmlWarning::LongBase]);
    assert!(page.metadata.links.is_empty());
    // Links that need no base are still found.
    let html = html + "<a href=http://other.example/x>";
    let links = extract(&html, Some(&url), &config).metadata.links;
    assert_eq!(links.len(), 1);
    let html = html.replace(&"b".repeat(100_000), &"b".repeat(8_000));
    let page = extract(&html, Some(&url), &config);
    assert_eq!(page.warnings, [HtmlWarning::LinksTruncated]);
    let bytes: usize = page.metadata.links.iter().map(|link| link.url.len()).sum();
    assert!(bytes < 2 * html.len() + (1 << 20) + 9_000);
}

#[test]
fn images_beyond_all_measure_are_dropped() {
    let page = extract(&"<img src=a>".repeat(50_000), None, &henzinger());
    assert_eq!(page.warnings, [HtmlWarning::ImagesTruncated]);
    assert_eq!(page.images.len(), (1 << 14) + 550_000 / 32);
    let page = extract(&"<img src=a>".repeat(10_000), None, &henzinger());
    assert_eq!((page.warnings.len(), page.images.len()), (0, 10_000));
}

/// The text of blocks beyond the limit is not lost, and their words stay separate.
#[test]
fn blocks_beyond_all_measure_count_as_one() {
    let config = HtmlConfig {
        mode: Mode::Content,
        ..HtmlConfig::default()
    };
    let sentence = "<p>one sentence that is long enough to be read as prose, twice over. ";
    let html = sentence.repeat(40_000);
    let page = extract(&html, None, &config);
    assert_eq!(page.warnings, [HtmlWarning::TooManyBlocks]);
    assert!(page.text.lines().count() > 39_990);
}

/// Pieces of markup, so that random pages are broken in interesting ways.
fn broken_html() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~]{0,6}",
        "\\PC{0,4}",
        Just("\0".to_owned()),
        prop::sample::select(vec![
            "<",
            ">",
            "</",
            "/>",
            "<!--",
            "-->",
            "--!>",
            "<!",
            "<?",
            "&",
            "&#",
            "&#x",
            "&amp",
            ";",
            "<a href=",
            "<a href='",
            "<a href=\"",
            "'",
            "\"",
            "=",
            "<p",
            "<p>",
            "</p>",
            "<div>",
            "</div>",
            "<script>",
            "</script>",
            "<script",
            "<title>",
            "</title>",
            "<textarea>",
            "<svg>",
            "</svg>",
            "<math>",
            "<![CDATA[",
            "]]>",
            "<template>",
            "</template>",
            "<table>",
            "<td>",
            "<img src=",
            "<base href=",
            "<plaintext>",
            "<meta name=robots content=",
            "<meta http-equiv=refresh content=",
            "<li>",
            "<ul>",
            "<h1>",
            "<article>",
            "<nav>",
            "\r\n",
            "\u{feff}",
            "\u{fffd}",
            "<title><b>",
            "<noscript>",
            "<select><option>",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_give_bounded_text(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_bounds(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn broken_pages_give_bounded_text(html in broken_html()) {
        check_bounds(&html)?;
    }

    /// Extraction only drops and decodes: text outside of tags is returned word by word.
    #[test]
    fn words_survive(words in prop::collection::vec("[a-z]{1,8}", 1..20)) {
        let html = words.iter().map(|word| format!("<p>{word}</p>")).collect::<String>();
        prop_assert_eq!(read(&html), words);
    }
}

fn check_bounds(html: &str) -> Result<(), TestCaseError> {
    let url = Url::parse("https://example.org/").unwrap();
    for mode in [Mode::Henzinger, Mode::Content, Mode::Plain] {
        let config = HtmlConfig {
            mode,
            links: Links::Collect,
            alt: Switch::On,
            ..HtmlConfig::default()
        };
        let page = extract(html, Some(&url), &config);
        prop_assert!(tokens(&page).len() <= html.len() + 1);
        prop_assert!(page.text.len() <= 3 * html.len() + 1);
        prop_assert!(page.images.is_sorted_by_key(|image| image.at));
        prop_assert!(
            page.images
                .iter()
                .all(|image| page.text.is_char_boundary(image.at))
        );
        prop_assert_eq!(page, extract(html, Some(&url), &config));
    }
    Ok(())
}

/// Two hundred thousand unclosed tags are read like any other megabyte, in every mode.
#[test]
fn unclosed_tags_are_read() {
    for tag in [
        "<div>",
        "<b>",
        "<a href=x>",
        "<table><td>",
        "<svg>",
        "<!-",
        "<template>",
        "&#",
    ] {
        // Enough prose to be main content.
        let prose = "<p>one sentence that is long enough to be read as prose, twice over.</p>";
        let html = format!("{}{}", prose.repeat(5), tag.repeat(200_000));
        for mode in [Mode::Henzinger, Mode::Content] {
            let config = HtmlConfig {
                mode,
                ..HtmlConfig::default()
            };
            let page = extract(&html, None, &config);
            assert!(page.text.len() <= html.len());
            let deep = page.warnings.contains(&HtmlWarning::TooDeep);
            let nests = matches!(tag, "<div>" | "<table><td>");
            assert_eq!(deep, nests && mode == Mode::Content, "{tag}");
        }
    }
}
