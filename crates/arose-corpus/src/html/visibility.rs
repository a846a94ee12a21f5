//! Measures how much of the text of a page is visible or inside links, and locates URLs in it.
//!
//! Only attributes are considered. Style sheets and scripts may hide or show anything, and are not
//! read. Text is hidden inside an element with the attribute `hidden`, or whose `style` says
//! `display:none`, `visibility:hidden`, a font size of 0, a position far off the screen, or a
//! colour equal to its background. Text is also hidden inside elements whose colour is the
//! background of the page, as long as no other background was met. Rules that hide the whole page
//! are ignored, because scripts show it.
//!
//! No tree is built. An element ends at its matching end tag, found by counting. An element whose
//! end tag may be missing ends at the next start tag with its name, so that a forgotten tag does
//! not hide the rest of a page.

use super::tag::Tag;
use super::token::{Name, Tokenizer};

/// The result, in bytes of the extracted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    /// Text, without URLs and separators between words and lines.
    pub text_bytes: u64,
    /// Text that readers do not see.
    pub hidden_bytes: u64,
    /// Text in links.
    pub anchor_bytes: u64,
    /// Number of `a` and `area` elements with a URL.
    pub n_links: u32,
    /// A hash of the start tags in order, equal for pages of one template.
    pub skeleton: u64,
    /// Start and end of the URLs of links in the text, in order.
    pub addresses: Vec<[u32; 2]>,
}

impl Visibility {
    /// Share of the text that readers do not see.
    #[must_use]
    pub fn hidden(&self) -> f64 {
        self.hidden_bytes as f64 / self.text_bytes.max(1) as f64
    }

    /// Share of the text that is inside links.
    #[must_use]
    pub fn anchor(&self) -> f64 {
        self.anchor_bytes as f64 / self.text_bytes.max(1) as f64
    }

    /// Appends the text without the URLs.
    pub fn cut(&self, text: &str, out: &mut String) {
        let mut from = 0;
        for [start, end] in &self.addresses {
            out.push_str(text.get(from..*start as usize).unwrap_or_default());
            from = (*end as usize).max(from);
        }
        out.push_str(text.get(from..).unwrap_or_default());
    }
}

/// Measures visibility while a page is read.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) found: Visibility,
    is_in_link: bool,
    hidden: Option<Hidden>,
    /// The background of the page; none if it is unknown or another one was met.
    background: Option<[u8; 3]>,
}

/// The open element that hides its text.
#[derive(Debug)]
struct Hidden {
    tag: Tag,
    /// In lower case, for elements without a tag of their own.
    name: String,
    depth: u32,
}

impl Hidden {
    fn is(&self, name: Name<'_>) -> bool {
        self.tag == name.tag && (self.tag != Tag::Other || self.name.eq_ignore_ascii_case(name.raw))
    }
}

impl Watch {
    /// Called for text of `n_bytes` bytes.
    #[inline]
    pub(super) fn text(&mut self, n_bytes: usize) {
        let n = n_bytes as u64;
        self.found.text_bytes += n;
        self.found.hidden_bytes += if self.hidden.is_some() { n } else { 0 };
        self.found.anchor_bytes += if self.is_in_link { n } else { 0 };
    }

    /// Called for a URL in the text.
    pub(super) fn address(&mut self, text: &str, before: usize) {
        // A space before the URL belongs to it; a line end does not.
        let start = before + usize::from(text.as_bytes().get(before) == Some(&b'\n'));
        let place = [start, text.len()].map(u32::try_from);
        if let [Ok(start), Ok(end)] = place
            && start < end
        {
            self.found.addresses.push([start, end]);
        }
    }

    #[inline]
    pub(super) fn start<'a>(&mut self, name: Name<'a>, tokenizer: &Tokenizer<'a>) {
        let skeleton = self.found.skeleton ^ (1 + name.tag as u64);
        self.found.skeleton = skeleton.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        if name.tag == Tag::A || name.tag == Tag::Area {
            let has_href = tokenizer
                .attributes()
                .iter()
                .any(|attribute| attribute.name.eq_ignore_ascii_case("href"));
            self.is_in_link = name.tag == Tag::A && has_href;
            self.found.n_links = self.found.n_links.saturating_add(has_href.into());
        }
        if let Some(hidden) = &mut self.hidden {
            if !hidden.is(name) {
                return;
            }
            if !may_stay_open(name.tag) {
                hidden.depth = hidden.depth.saturating_add(1);
                return;
            }
            self.hidden = None;
        }
        if !tokenizer.attributes().is_empty() && self.hides(name.tag, tokenizer) {
            self.hidden = Some(Hidden {
                tag: name.tag,
                name: name.raw.to_ascii_lowercase(),
                depth: 1,
            });
        }
    }

    #[inline]
    pub(super) fn end(&mut self, name: Name<'_>) {
        if name.tag == Tag::A {
            self.is_in_link = false;
        }
        if let Some(hidden) = self.hidden.as_mut().filter(|hidden| hidden.is(name)) {
            hidden.depth -= 1;
            if hidden.depth == 0 {
                self.hidden = None;
            }
        }
    }

    /// Whether the element just opened hides its text.
    #[inline]
    fn hides(&mut self, tag: Tag, tokenizer: &Tokenizer<'_>) -> bool {
        let mut is_hidden = false;
        for attribute in tokenizer.attributes() {
            // The length alone rules out nearly all attributes.
            is_hidden |= match attribute.name.len() {
                6 if attribute.name.eq_ignore_ascii_case("hidden") => true,
                5 if attribute.name.eq_ignore_ascii_case("style") => {
                    self.look_at_style(tag, &attribute.value())
                }
                5 if tag == Tag::Font && attribute.name.eq_ignore_ascii_case("color") => {
                    let colour = colour(&attribute.value());
                    colour.is_some() && colour == self.background
                }
                7 if attribute.name.eq_ignore_ascii_case("bgcolor") => {
                    self.see_background(tag, &attribute.value());
                    false
                }
                _ => false,
            };
        }
        is_hidden && !tag.is_void() && !matches!(tag, Tag::Html | Tag::Body)
    }

    fn see_background(&mut self, tag: Tag, value: &str) {
        self.background = match tag {
            Tag::Body | Tag::Html => colour(value),
            _ => None,
        };
    }

    /// Whether a style hides its element.
    #[inline(never)]
    fn look_at_style(&mut self, tag: Tag, style: &str) -> bool {
        let (mut is_hidden, mut text, mut ground) = (false, None, None);
        for declaration in style.split(';') {
            let Some((property, value)) = declaration.split_once(':') else {
                continue;
            };
            let value = value.split('!').next().unwrap_or_default().trim();
            let property = property.trim().to_ascii_lowercase();
            match &*property {
                "display" => is_hidden |= value.eq_ignore_ascii_case("none"),
                "visibility" => {
                    is_hidden |= value.eq_ignore_ascii_case("hidden")
                        || value.eq_ignore_ascii_case("collapse");
                }
                "font-size" => is_hidden |= length(value) == Some(0.0),
                "text-indent" | "left" | "top" | "right" | "bottom" | "margin-left"
                | "margin-top" => {
                    is_hidden |= length(value).is_some_and(|length| length <= OFF_SCREEN);
                }
                "color" => text = colour(value),
                "background" | "background-color" => {
                    ground = colour(value);
                    self.see_background(tag, value);
                }
                _ => {}
            }
        }
        is_hidden || text.is_some() && text == ground.or(self.background)
    }
}

/// Elements whose end tags are often omitted.
fn may_stay_open(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::P | Tag::Li | Tag::Dt | Tag::Dd | Tag::Tr | Tag::Td | Tag::Th | Tag::Option
    )
}

/// An element that far to the left or above is not visible, in any unit.
const OFF_SCREEN: f64 = -900.0;

/// The number in a length; none if it has no number or is a percentage.
fn length(value: &str) -> Option<f64> {
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    number.trim().parse().ok()
}

/// Red, green and blue of a colour; none if the notation is unusual.
fn colour(value: &str) -> Option<[u8; 3]> {
    let value = value.trim().to_ascii_lowercase();
    let hex = |digits: &str| u8::from_str_radix(digits, 16).ok();
    if let Some(digits) = value.strip_prefix('#').filter(|digits| digits.is_ascii()) {
        return match digits.len() {
            3 => {
                let twice = |i: usize| hex(&digits[i..=i]).map(|digit| digit * 17);
                Some([twice(0)?, twice(1)?, twice(2)?])
            }
            6 => Some([hex(&digits[..2])?, hex(&digits[2..4])?, hex(&digits[4..])?]),
            _ => None,
        };
    }
    if let Some(list) = value
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let mut parts = list.split(',').map(|part| part.trim().parse().ok());
        let mut next = || parts.next().flatten();
        return Some([next()?, next()?, next()?]);
    }
    Some(match &*value {
        "white" => [255; 3],
        "black" => [0; 3],
        "red" => [255, 0, 0],
        "lime" => [0, 255, 0],
        "blue" => [0, 0, 255],
        "yellow" => [255, 255, 0],
        "gray" | "grey" => [128; 3],
        "silver" => [192; 3],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{HtmlConfig, Mode, Switch, extract};
    use super::*;

    fn look(html: &str, mode: Mode) -> (String, Visibility) {
        let config = HtmlConfig {
            mode,
            visibility: Switch::On,
            ..HtmlConfig::default()
        };
        let page = extract(html, None, &config);
        let plain = extract(
            html,
            None,
            &HtmlConfig {
                mode,
                ..HtmlConfig::default()
            },
        );
        assert_eq!(
            (&page.text, &page.images),
            (&plain.text, &plain.images),
            "{html}"
        );
        assert_eq!(plain.metadata.visibility, None);
        (page.text, *page.metadata.visibility.unwrap())
    }

    #[track_caller]
    fn check(html: &str, hidden: u64) {
        for mode in [Mode::Visible, Mode::Henzinger] {
            assert_eq!(look(html, mode).1.hidden_bytes, hidden, "{mode:?} {html}");
        }
    }

    #[test]
    fn ways_to_hide() {
        for hide in [
            "hidden",
            "HIDDEN=''",
            "style='display:none'",
            "style=\"color:red; DISPLAY : None !important\"",
            "style='visibility:hidden'",
            "style='font-size:0px'",
            "style='font-size:0'",
            "style='position:absolute;left:-9999px'",
            "style='text-indent:-5000em'",
            "style='color:#fff;background:white'",
            "style='background-color:rgb(1, 2, 3);color:#010203'",
            "style='display&#58;none'",
        ] {
            check(
                &format!("<p>seen</p><div {hide}>away<b>too</b></div>here"),
                7,
            );
            check(&format!("<x-y {hide}>away<x-y>in</x-y>too</X-Y>here"), 9);
        }
    }

    #[test]
    fn ways_to_show() {
        for show in [
            "",
            "style='display:block'",
            "style='font-size:0.9em'",
            "style='left:-9px'",
            "style='left:-100%'",
            "style='color:#fff;background:#000'",
            "style='color:#ffg;background:#ffg'",
            "style=':;:'",
            "data-hidden",
            "class=hidden",
        ] {
            check(&format!("<div {show}>here</div>"), 0);
        }
        check("<body style='visibility:hidden'><p>here", 0);
        check("<html hidden>here", 0);
    }

    #[test]
    fn the_colour_of_the_page() {
        check(
            "<body bgcolor=white><font color='#FFFFFF'>away</font>here",
            4,
        );
        check(
            "<body style='background:#fff'><p style='color:white'>away</p>here",
            4,
        );
        check(
            "<body bgcolor=white><td bgcolor=black><font color=white>here</font>",
            0,
        );
        check("<font color=white>here</font>", 0);
    }

    #[test]
    fn hidden_elements_end() {
        check("<p hidden>away<p>here", 4);
        check("<ul><li hidden>away<li>here</ul>", 4);
        check("<div hidden>away<div>in</div>too</div>here", 9);
        check("<br hidden>here<img hidden>here", 0);
        check("<div hidden>away", 4);
        check("</div></div><div hidden>away</div></div>here", 4);
    }

    #[test]
    fn links_and_addresses() {
        let html = "<p>one <a href='/x'>two</a> three<p><a href=y>four</a> <a>five</a>";
        let (text, found) = look(html, Mode::Henzinger);
        assert_eq!(text, "one /x two three\ny four five");
        assert_eq!((found.anchor_bytes, found.n_links), (7, 2));
        let mut seen = String::new();
        found.cut(&text, &mut seen);
        assert_eq!(seen, "one two three\n four five");
        let (text, found) = look(html, Mode::Visible);
        assert_eq!(text, "one two three\nfour five");
        assert_eq!((found.anchor_bytes, found.addresses.len()), (7, 0));
    }

    proptest::proptest! {
        #[test]
        fn any_page_has_shares(html in "(<p hidden>|<div style=display:none>|</div>|<a href=x>|</a>|ü|x| |<|&)*") {
            let (text, found) = look(&html, Mode::Henzinger);
            proptest::prop_assert!((0.0..=1.0).contains(&found.hidden()));
            proptest::prop_assert!((0.0..=1.0).contains(&found.anchor()));
            found.cut(&text, &mut String::new());
        }
    }
}
