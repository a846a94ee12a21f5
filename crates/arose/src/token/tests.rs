use super::*;
use proptest::prelude::*;

fn words_of(text: &str, case: Case) -> Vec<String> {
    let mut words = Vec::new();
    Tokenizer { case }.for_each(text, |word| words.push(word.to_owned()));
    words
}

/// The reference implementation gives the expected tokens, and the optimized version their
/// fingerprints.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(words_of(text, Case::Fold), expected, "{text:?}");
    check_fast(text);
}

#[track_caller]
fn check_fast(text: &str) {
    for case in [Case::Fold, Case::Keep] {
        let tokenizer = Tokenizer { case };
        assert_eq!(
            tokenizer.tokens(text),
            tokenizer.tokens_plain(text),
            "{case:?} {text:?}"
        );
        let words = words_of(text, case);
        let hashed: Vec<u64> = words
            .iter()
            .map(|word| fingerprint(word.as_bytes()))
            .collect();
        assert_eq!(
            tokenizer.tokens(text).fingerprints,
            hashed,
            "{case:?} {text:?}"
        );
    }
}

#[test]
fn words_and_separators() {
    check("", &[]);
    check(" \t\r\n.,;_-\0", &[]);
    check("I'm", &["i", "m"]);
    check("A Rose is a rose", &["a", "rose", "is", "a", "rose"]);
    check("snake_case x2 3.14", &["snake", "case", "x2", "3", "14"]);
    check("caf\u{FFFD}e", &["caf", "e"]);
    check("a\0b", &["a", "b"]);
}

#[test]
fn other_alphabets() {
    check("Straße ÉCOLE naïve", &["straße", "école", "naïve"]);
    check("ΣΊΣΥΦΟΣ σίσυφος", &["σίσυφοσ", "σίσυφοσ"]);
    check("Привет, МИР", &["привет", "мир"]);
    check("हिन्दी में", &["हिन्दी", "में"]);
    check("١٢٣ ½ Ⅷ", &["١٢٣", "ⅷ"]);
    check("Ωmega абвabc", &["ωmega", "абвabc"]);
    check("İstanbul K Å", &["İstanbul", "k", "å"]);
}

#[test]
fn normal_forms_agree() {
    check("e\u{301}te\u{301}", &["été"]);
    check("1\u{20E3} a", &["1\u{20E3}", "a"]);
    check("<\u{338}a =\u{338}b", &["a", "b"]);
    check("\u{301}a \u{301}", &["a"]);
    check("x\u{301}\u{323}", &["x\u{323}\u{301}"]);
}

#[test]
fn unspaced_scripts() {
    check("東京タワー2024", &["東", "京", "タワー", "2024"]);
    check("ひらがなカタカナ", &["ひ", "ら", "が", "な", "カタカナ"]);
    check("한국어 텍스트abc", &["한국어", "텍스트", "abc"]);
    check("ภาษาไทย", &["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]);
    check("ที่นี่", &["ที่", "นี่"]);
    check("らーめん", &["ら", "ー", "め", "ん"]);
    check("人々。abc東", &["人", "々", "abc", "東"]);
    check("葛\u{E0100}城", &["葛\u{E0100}", "城"]);
    check("ｶﾞｰ", &["ｶﾞｰ"]);
}

#[test]
fn unspaced_tokens_are_counted() {
    let tokens = Tokenizer::default().tokens("東京タワー2024 ไท 한 word");
    assert_eq!((tokens.len(), tokens.n_unspaced), (8, 6));
    assert!(tokens.is_mostly_unspaced());
    assert!(!Tokenizer::default().tokens("東 one").is_mostly_unspaced());
}

#[test]
fn case_is_a_switch() {
    assert_eq!(words_of("Rose ÉTÉ", Case::Keep), ["Rose", "ÉTÉ"]);
    let keep = Tokenizer { case: Case::Keep };
    assert_ne!(keep.tokens("Rose"), keep.tokens("rose"));
    assert_eq!(Tokenizer::default().tokens("Rose"), keep.tokens("rose"));
}

/// Lengths around the two-word limit and the block size, at the start, in the middle and at the
/// end.
#[test]
fn lengths_around_every_limit() {
    for len in (1..=20).chain(60..=70).chain(125..=131) {
        let word: String = ('A'..='Z').cycle().take(len).collect();
        check_fast(&word);
        check_fast(&format!("{word} {word}é, {word}"));
        check_fast(&format!(
            "{} {word} and some more text after it, plenty of it",
            ".".repeat(len)
        ));
    }
}

/// Files contain these values.
#[test]
fn fingerprints_are_frozen() {
    let of = |token: &str| fingerprint(token.as_bytes());
    assert_eq!(of("a"), mix(mix(0x61 ^ TOKEN_SEED)));
    let frozen = [
        ("", 0xC970_6764_BCF9_F65C),
        ("a", 0xAEC1_713D_80CB_EE89),
        ("rose", 0xB2AA_1D99_CC8D_C205),
        ("eightlet", 0x0056_30C8_3BDA_4564),
        ("ninebytes", 0x4358_7925_2109_A4A7),
        ("exactly16letters", 0xFF13_067C_AF7D_1902),
        ("seventeen letters", 0xB888_0CCB_1CF6_D5EB),
        ("東", 0x6149_125C_EAB7_992F),
    ];
    for (token, expected) in frozen {
        assert_eq!(of(token), expected, "{token} {:#018x}", of(token));
    }
    let mut image = Tokens::default();
    image.push_image(" /img/logo-2.gif ");
    assert_eq!(image.fingerprints, [0x60B0_DBEB_8B01_3B2F]);
}

#[test]
fn an_image_equals_no_word() {
    let mut image = Tokens::default();
    image.push_image("rose");
    assert_ne!(image, Tokenizer::default().tokens("rose"));
}

#[test]
fn short_tokens_never_collide() {
    let letters = || (b'a'..=b'z').chain(b'0'..=b'9');
    let mut all: Vec<u64> = letters()
        .flat_map(|a| letters().flat_map(move |b| letters().map(move |c| fingerprint(&[a, b, c]))))
        .collect();
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), n);
}

/// Text that mixes everything that the optimized version must distinguish.
fn mixed_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9]{1,20}",
        "[ -~]{0,10}",
        "[<=>a1 ][\u{300}-\u{345}\u{20E3}]{1,3}",
        "[à-öÀ-Ö]{1,5}",
        "[東京ひカタ한국ไทยขมลາ၀က្]{1,4}",
        "\\PC{0,6}",
        ".{0,4}",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn fast_equals_plain(text in mixed_text()) {
        check_fast(&text);
    }

    #[test]
    fn any_text(text: String) {
        check_fast(&text);
    }

    #[test]
    fn places_hold_their_tokens(text in mixed_text()) {
        let (mut words, mut last) = (Vec::new(), 0);
        Tokenizer::default().for_each_place(&text, |word, place| {
            assert!(place.start >= last || place.end > last, "{place:?} after {last}");
            last = place.start;
            assert!(!text[place].is_empty());
            words.push(word.to_owned());
        });
        prop_assert_eq!(words, words_of(&text, Case::Fold));
    }

    #[test]
    fn fingerprints_are_those_of_the_tokens(text in mixed_text(), max_bytes in 1_usize..40) {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let tokenizer = Tokenizer::default();
        tokenizer.for_each_place(&text, |word, place| {
            let end = word.floor_char_boundary(max_bytes);
            expected.push((fingerprint(&word.as_bytes()[..end]), place));
        });
        tokenizer.for_each_fingerprint(&text, max_bytes, |word, place| found.push((word, place)));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn starts_are_those_of_the_places(text in mixed_text()) {
        let tokenizer = Tokenizer::default();
        let (mut tokens, mut starts) = (Vec::new(), Vec::new());
        tokenizer.fingerprints_with_starts(&text, &mut tokens, &mut starts);
        let mut expected = Vec::new();
        tokenizer.for_each_place(&text, |_, place| expected.push(place.start as u32));
        prop_assert_eq!(starts, expected);
        prop_assert_eq!(tokens, tokenizer.tokens(&text).fingerprints);
    }

    #[test]
    fn at_most_one_token_per_byte(text in mixed_text()) {
        prop_assert!(Tokenizer::default().tokens(&text).len() <= text.len() + 1);
    }

    #[test]
    fn tokens_are_cut_again_into_themselves(text in mixed_text()) {
        for word in words_of(&text, Case::Fold) {
            // Clusters of unspaced scripts may begin with a mark, which begins no token by itself.
            if word.is_ascii() {
                prop_assert_eq!(words_of(&word, Case::Fold), [word]);
            }
        }
    }

    #[test]
    fn pieces_joined_by_blanks_are_the_whole(a in mixed_text(), b in mixed_text()) {
        let mut pieces = Tokenizer::default().tokens(&a);
        pieces.push_text(&Tokenizer::default(), &b);
        prop_assert_eq!(pieces, Tokenizer::default().tokens(&format!("{a} {b}")));
    }
}
