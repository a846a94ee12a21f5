use super::*;
use crate::mix::SplitMix;
use crate::token::fingerprint;

/// A scorer that gives every word the same log-odds.
struct Constant(f32);

impl PageScorer for Constant {
    fn score(&mut self, _: &Words) -> f32 {
        self.0
    }

    fn log_odds(&self, _: u64) -> f32 {
        self.0
    }
}

/// Three parents with a mean of 0.8 and a maximum of 0.9, and words with log-odds of 1.5.
fn oracle_link() -> Link {
    let words = LinkWords::new("a", "", "", &Constant(3.0));
    let mut link = Link::default();
    for score in [0.9, 0.7, 0.8] {
        link.add(score, &words);
    }
    link
}

/// The numbers of the specification.
#[test]
fn the_update_rule() {
    let link = oracle_link();
    let mut model = LinkModel::new();
    assert!((model.score(&link) - 0.77027).abs() < 1e-5);
    model.learn(&link, 1.0);
    let expected = [2.00919, 1.01034, 0.41723, 0.11262, -1.98851];
    for (weight, expected) in model.weights().into_iter().zip(expected) {
        assert!((weight - expected).abs() < 1e-5, "{weight} {expected}");
    }
    let word = model.weight_of(fingerprint(b"a"));
    assert!((f64::from(word) - 0.3 * (1.0 - 0.77027)).abs() < 1e-5);
}

#[test]
fn words_count_once_and_are_bounded() {
    let many: Vec<String> = (0..500).map(|n| format!("w{n}")).collect();
    let words = LinkWords::new(&many.join(" "), "/a/b", "div>a", &Constant(1.0));
    let mut link = Link::default();
    for _ in 0..10 {
        link.add(0.5, &words);
    }
    assert_eq!(link.words.len(), MAX_WORDS);
    assert!(link.words.iter().any(|word| word & (1 << 31) != 0));
    // The tag path has no log-odds.
    assert_eq!(link.odds, (MAX_WORDS - 1) as f32);
    assert_eq!(link.n_parents(), 10);
}

#[test]
fn a_late_score_is_corrected() {
    let words = LinkWords::new("a", "", "", &Constant(0.0));
    let (mut late, mut early) = (Link::default(), Link::default());
    late.add(0.5, &words);
    late.correct(0.5, 0.9);
    early.add(0.9, &words);
    assert_eq!(late, early);
    late.correct(0.9, f32::NAN);
    assert_eq!(late, early);
}

/// No score makes the model unusable.
#[test]
fn bad_scores_say_nothing() {
    let words = LinkWords::new("a b", "/c", "", &Constant(0.0));
    let mut model = LinkModel::new();
    let mut link = Link::default();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        link.add(bad, &words);
        model.learn(&link, bad);
        model.read(&Words::of("a b c"), bad);
    }
    assert_eq!(model.weights(), LinkModel::new().weights());
    for score in [-5.0, 7.0] {
        model.learn(&link, score);
        model.read(&Words::of("a b c"), score);
    }
    assert!((0.0..=1.0).contains(&model.score(&link)));
    assert!(model.weights().iter().all(|weight| weight.is_finite()));
}

/// Anchor words and texts of good pages raise the predictions of links with the same words.
#[test]
fn the_model_learns_words() {
    let scorer = Constant(0.0);
    let link_of = |anchor: &str| {
        let mut link = Link::default();
        link.add(0.5, &LinkWords::new(anchor, "", "", &scorer));
        link
    };
    let mut model = LinkModel::new();
    for n in 0..200 {
        let (word, score) = if n % 2 == 0 {
            ("violin", 1.0)
        } else {
            ("bond", 0.0)
        };
        model.learn(&link_of(&format!("{word} {n}")), score);
        model.read(&Words::of(&format!("{word} sonata-{word} x{n}")), score);
    }
    let of = |anchor: &str| model.score(&link_of(anchor));
    assert!(
        of("violin") > 0.9 && of("bond") < 0.1,
        "{} {}",
        of("violin"),
        of("bond")
    );
    // Only texts had this word with "violin".
    let plain = LinkModel::new();
    assert!(model.learned_odds_of("sonata") > -0.1 && plain.learned_odds_of("sonata") == 0.0);
    assert!(model.learned_odds_of("violin") > 3.0 && model.learned_odds_of("bond") < -3.0);
}

impl LinkModel {
    fn learned_odds_of(&self, word: &str) -> f64 {
        let mut link = Link::default();
        link.add(0.5, &LinkWords::new(word, "", "", &Constant(0.0)));
        self.learned_odds((link.words[0]) as usize)
    }
}

/// Pages of a topic share a few words; all others are noise. The model distinguishes new pages.
#[test]
fn examples_teach_a_topic() {
    let mut random = SplitMix::new(3);
    let mut page = |is_liked: bool| {
        let mut text = String::new();
        for _ in 0..60 {
            let noise = random.below(3000);
            text += &format!("n{noise} ");
        }
        for _ in 0..6 {
            let own = random.below(12) + if is_liked { 0 } else { 6 };
            text += &format!("t{own} ");
        }
        Words::of(&text)
    };
    let liked: Vec<Words> = (0..20).map(|_| page(true)).collect();
    let others: Vec<Words> = (0..200).map(|_| page(false)).collect();
    let mut model = Linear::train(&liked, &others, 18).unwrap();
    let right = (0..400)
        .filter(|n| {
            let is_liked = n % 2 == 0;
            (model.score(&page(is_liked)) > 0.5) == is_liked
        })
        .count();
    assert!(right > 300, "{right}");
    assert_eq!(Linear::train(&liked, &others, 18).unwrap(), model);
    let mut again = Linear::parse(&model.to_text()).unwrap();
    let probe = page(true);
    assert_eq!(again.score(&probe), model.score(&probe));
}

#[test]
fn training_needs_both_kinds() {
    let some = [Words::of("a b")];
    assert!(Linear::train(&some, &[], 18).is_err());
    assert!(Linear::train(&[Words::of("")], &some, 18).is_err());
    assert!(Linear::train(&some, &some, 40).is_err());
    assert!(Linear::train(&some, &some, 18).is_ok());
}

#[track_caller]
fn check_refused(text: &str, line: usize) {
    let error = Linear::parse(text).unwrap_err();
    assert_eq!(error.line, line, "{error}");
}

#[test]
fn model_files_that_are_cut_or_wrong_are_refused() {
    let whole = "arose-linear 1\nbits 10\nbias 0.5\nweights 2\nbucket 3 1\nword rose -1\nend\n";
    assert!(Linear::parse(whole).is_ok());
    for cut in 0..whole.len() - 2 {
        assert!(Linear::parse(&whole[..cut]).is_err(), "{cut}");
    }
    check_refused("", 1);
    check_refused("arose-linear 2\n", 1);
    check_refused(&whole.replace("bits 10", "bits 40"), 2);
    check_refused(&whole.replace("0.5", "NaN"), 3);
    check_refused(
        &whole.replace("weights 2", "weights 18446744073709551615"),
        7,
    );
    check_refused(&whole.replace("weights 2", "weights -1"), 4);
    check_refused(&whole.replace("bucket 3", "bucket 1024"), 5);
    check_refused(&whole.replace("word rose -1", "word rose inf"), 6);
    check_refused(&whole.replace("word rose -1", "word a-rose 1"), 6);
    check_refused(&whole.replace("weights 2", "weights 1"), 6);
}

#[test]
fn keywords_count_by_rarity_and_length() {
    let mut topic = Keywords::new(["violin sonata", "Quartet"]).unwrap();
    for n in 0..50 {
        topic.score(&Words::of(&format!("the sonata of page {n}")));
    }
    let mut of = |text: &str| topic.score(&Words::of(text));
    let common = of("a sonata of one");
    let rare = of("a quartet of one");
    assert!(rare > 2.0 * common, "{rare} {common}");
    let long = of(&format!("quartet {}", "word ".repeat(2000)));
    assert!(long < rare / 3.0, "{long}");
    let full = of("violin sonata quartet violin sonata quartet violin sonata quartet");
    assert!(full > 0.8 && full <= 1.0, "{full}");
    assert_eq!(of("nothing of that"), 0.0);
    assert_eq!(of(""), 0.0);
    assert!(Keywords::new(["--", ""]).is_err());
}

/// The learned state survives as bytes, and invalid bytes are rejected.
#[test]
fn issue_27_what_was_learned_survives() {
    let scorer = Keywords::new(["violin"]).unwrap();
    let mut model = LinkModel::new();
    let mut link = Link::default();
    link.add(
        0.4,
        &LinkWords::new("violin sonatas", "/a/b", "ul>li>a", &scorer),
    );
    link.add(0.9, &LinkWords::new("more", "/c?d=1", "p>a", &scorer));
    model.learn(&link, 1.0);
    model.read(&Words::of("a violin sonata"), 0.8);
    let mut bytes = Vec::new();
    link.write(&mut bytes);
    assert!(bytes.len() <= LINK_BYTES);
    assert_eq!(Link::read(&bytes), Some(link.clone()));
    assert_eq!(Link::read(&bytes[..bytes.len() - 1]), None);
    let bytes = model.to_bytes();
    let copy = LinkModel::from_bytes(&bytes).unwrap();
    assert_eq!(copy.score(&link), model.score(&link));
    assert_eq!(copy.to_bytes(), bytes);
    assert!(LinkModel::from_bytes(&bytes[..bytes.len() - 1]).is_none());
    let mut topic = Keywords::new(["violin", "sonata"]).unwrap();
    topic.score(&Words::of("a violin"));
    let mut again = Keywords::new(["violin", "sonata"]).unwrap();
    assert!(again.resume(&topic.learned()));
    let page = Words::of("sonata");
    assert_eq!(again.score(&page), topic.score(&page));
    assert!(!again.resume(&[1, 2]) && !again.resume(&[]));
}

/// The changes of a model, applied in order, give the model.
#[test]
fn changes_of_a_model_add_up() {
    let scorer = Keywords::new(["violin"]).unwrap();
    let mut model = LinkModel::new();
    let mut copy = LinkModel::new();
    for n in 0..40 {
        let words = LinkWords::new(&format!("word{n} violin"), "/a/b", "ul>li", &scorer);
        let mut link = Link::default();
        link.add(0.3, &words);
        model.learn(&link, (n % 2) as f32);
        model.read(&Words::of(&format!("text{} of {n}", n % 7)), 0.7);
        if n % 5 == 0 {
            let changes = model.take_changes();
            assert!(n == 0 || changes.len() < 1000, "{}", changes.len());
            copy.apply(&changes).unwrap();
            assert_eq!(copy.to_bytes(), model.to_bytes());
        }
    }
    let changes = model.take_changes();
    assert_eq!(copy.apply(&changes[..changes.len() - 1]), None);
}
