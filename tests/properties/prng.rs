//! Random draws that a seed replays.

/// A generator of random numbers (`SplitMix64`).
pub(crate) struct Prng(u64);

/// `count` seeds, or the one in the environment variable `SEED`.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}

impl Prng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a bound fits");
        usize::try_from(self.word() % bound).expect("it is below the bound")
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.word().to_le_bytes()[0]
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// `bytes` in pieces of random lengths, some of them empty.
    pub(crate) fn cut<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let longest = [2, 5, 40, 400][self.below(4)];
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(self.below(longest + 1).min(rest.len()));
            pieces.push(piece);
            rest = more;
        }
        pieces
    }
}
