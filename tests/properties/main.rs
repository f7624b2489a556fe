//! Properties of the decoders over random input: the verdict does not depend on where the input is
//! cut, and it is the verdict of an oracle written another way.
//!
//! A failure names its seed; `SEED=n` in the environment replays that one alone.

mod draw;
mod grammar;
mod oracle;
mod prng;

use oracle::Waiting;
use prng::{Prng, seeds};
use ringgate::json::{Automaton, Container, Failure, Members, Scalar, Text, Visitor};
use ringgate::limits::Limits;
use ringgate::mcp::fault::Fault;
use ringgate::mcp::response::{Awaited, Carrier, Checker, Message, Refusal};
use ringgate::mcp::stream::{End, EventStream};

const DEPTH_MAX: usize = 20;

/// Keeps what it is told; containers are reported down to a level.
struct Recorder {
    level: usize,
    reported_max: usize,
    told: Vec<String>,
}

impl Visitor for Recorder {
    type Why = ();

    fn open(&mut self, container: Container) -> Result<Members, ()> {
        self.told.push(format!("open {container:?}"));
        if self.reported_max <= self.level {
            return Ok(Members::Skipped);
        }
        self.level += 1;
        Ok(Members::Reported)
    }

    fn close(&mut self, container: Container) -> Result<(), ()> {
        self.told.push(format!("close {container:?}"));
        self.level -= 1;
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), ()> {
        self.told.push(format!("key {text:?}"));
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar, text: Text<'_>) -> Result<(), ()> {
        self.told.push(format!("{scalar:?} {text:?}"));
        // Some rule must fail now and then, or offsets of rules are not compared.
        if text == Text::Whole(b"1.5") {
            return Err(());
        }
        Ok(())
    }
}

fn record(pieces: &[&[u8]], reported_max: usize) -> (Result<(), Failure<()>>, Vec<String>) {
    let mut recorder = Recorder { level: 0, reported_max, told: Vec::new() };
    let mut automaton = Automaton::new(DEPTH_MAX);
    let pushed = pieces.iter().try_for_each(|piece| automaton.push(piece, &mut recorder));
    let verdict = pushed.and_then(|()| automaton.finish(&mut recorder));
    (verdict, recorder.told)
}

fn judge(carrier: Carrier, awaited: &mut Awaited, pieces: &[&[u8]]) -> Result<Message, Refusal> {
    let mut checker = Checker::new(carrier, DEPTH_MAX);
    for piece in pieces {
        checker.push(piece, awaited)?;
    }
    checker.finish(awaited)
}

/// Every way to cut `bytes` in two, and one by one, if they are few; some random ways else.
fn for_cuts(prng: &mut Prng, bytes: &[u8], mut check: impl FnMut(&[&[u8]])) {
    check(&bytes.chunks(1).collect::<Vec<_>>());
    if bytes.len() <= 24 {
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            check(&[head, tail]);
        }
    }
    for _ in 0..3 {
        check(&prng.cut(bytes));
    }
}

/// RV-7: what the automaton tells, and its verdict, do not depend on cuts.
#[test]
fn automaton_ignores_cuts() {
    for seed in seeds(8000) {
        let mut prng = Prng::new(seed);
        let asked = draw::asked(&mut prng);
        let text = draw::text(&mut prng, &asked);
        let reported_max = prng.below(4);
        let whole = record(&[&text], reported_max);
        for_cuts(&mut prng, &text, |pieces| {
            assert_eq!(record(pieces, reported_max), whole, "SEED={seed} {}", text.escape_ascii());
        });
        if let Err(Failure::Syntax { .. }) = whole.0 {
            assert!(!oracle::is_json(&text, DEPTH_MAX), "SEED={seed} {}", text.escape_ascii());
        } else if whole.0.is_ok() {
            assert!(oracle::is_json(&text, DEPTH_MAX), "SEED={seed} {}", text.escape_ascii());
        }
    }
}

/// RV-1, RV-2, RV-3, RV-7: the verdict on a message is the oracle's, and ignores cuts.
#[test]
fn messages_agree_with_the_oracle() {
    let mut valid_count = 0;
    let all = seeds(40_000);
    for &seed in &all {
        let mut prng = Prng::new(seed);
        let asked = draw::asked(&mut prng);
        let text = draw::text(&mut prng, &asked);
        let carrier = if prng.once_in(2) { Carrier::Body } else { Carrier::Event };
        let shown = text.escape_ascii().to_string();
        let shown = format!("SEED={seed} {carrier:?} {asked:?} {shown}");

        let mut awaited = Awaited::new(asked.clone());
        let whole = judge(carrier, &mut awaited, &[&text]);
        let mut waiting = Waiting::new(&asked);
        let expected = oracle::is_valid(&text, carrier, DEPTH_MAX, &mut waiting);
        assert_eq!(whole.is_ok(), expected, "{whole:?} {shown}");
        assert_eq!(awaited.is_answered(), waiting.is_empty(), "{shown}");
        valid_count += usize::from(expected);
        if let Err(refusal) = whole {
            let is_json = oracle::is_json(&text, DEPTH_MAX);
            let is_syntax = refusal.why.fault() == Fault::UpstreamNotJson;
            assert!(!is_syntax || !is_json, "{refusal:?} {shown}");
            assert!(refusal.offset <= text.len() as u64, "{refusal:?} {shown}");
        }
        for_cuts(&mut prng, &text, |pieces| {
            let verdict = judge(carrier, &mut Awaited::new(asked.clone()), pieces);
            assert_eq!(verdict, whole, "{shown}");
        });
    }
    let is_balanced = all.len() < valid_count * 8 && valid_count * 4 < all.len() * 3;
    assert!(
        all.len() == 1 || is_balanced,
        "{valid_count} of {} drawn messages are valid: the draw proves little",
        all.len()
    );
}

/// RV-5, RV-7: what is released of each prefix of a stream does not depend on cuts, and in the end
/// is what the oracle says.
#[test]
fn streams_agree_with_the_oracle() {
    for seed in seeds(20_000) {
        let mut prng = Prng::new(seed);
        let asked = draw::asked(&mut prng);
        let text = draw::stream(&mut prng, &asked);
        let limits = Limits {
            json_depth_max: DEPTH_MAX,
            event_bytes_max: [50, 100, 10_000][prng.below(3)],
            ..Limits::default()
        };
        let shown = format!("SEED={seed} {asked:?} {}", text.escape_ascii());

        let mut stream = EventStream::new(Awaited::new(asked.clone()), &limits);
        let mut released = vec![(0, None)];
        for byte in text.chunks(1) {
            let before = released[released.len() - 1].0;
            let progress = stream.push(byte);
            released.push((before + progress.released_bytes, progress.refusal));
        }
        let mut waiting = Waiting::new(&asked);
        let (released_bytes, is_refused, is_resumable) =
            oracle::released(&text, DEPTH_MAX, limits.event_bytes_max, &mut waiting);
        let last = released[released.len() - 1];
        assert_eq!((last.0, last.1.is_some()), (released_bytes, is_refused), "{last:?} {shown}");
        let end = match (waiting.is_empty(), is_resumable) {
            (true, _) => End::Answered,
            (false, true) => End::Resumable,
            (false, false) => End::Unanswered,
        };
        assert_eq!(stream.finish(), end, "{shown}");

        for _ in 0..4 {
            let mut stream = EventStream::new(Awaited::new(asked.clone()), &limits);
            let (mut pushed, mut sum) = (0, 0);
            for piece in prng.cut(&text) {
                let progress = stream.push(piece);
                pushed += piece.len();
                sum += progress.released_bytes;
                assert_eq!((sum, progress.refusal), released[pushed], "at {pushed} {shown}");
            }
        }
    }
}
