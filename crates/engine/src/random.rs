//! `Math.random` of an isolate.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use crate::ffi::{Context, EngineString, NativeFunction, fill_random};
use crate::prelude::Prelude;

/// What `Math.random` draws from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomSource {
    /// A seed of the operating system, for each isolate its own.
    ///
    /// The engine's own generator is seeded in the process that forks, so isolates in two forks of it would draw the
    /// same numbers.
    #[default]
    System,
    /// This seed: the same numbers each time.
    Seed(u64),
}

impl RandomSource {
    fn state(self) -> io::Result<[u64; 4]> {
        match self {
            Self::System => {
                let mut bytes = [0; 32];
                fill_random(&mut bytes)?;
                let (words, _) = bytes.as_chunks::<8>();
                let mut state = [0; 4];
                for (word, bytes) in state.iter_mut().zip(words) {
                    *word = u64::from_ne_bytes(*bytes);
                }
                // All zeros is the one state that the generator never leaves; SplitMix64 gives another.
                Ok(if state == [0; 4] { split_mix(0) } else { state })
            }
            Self::Seed(seed) => Ok(split_mix(seed)),
        }
    }
}

/// Four words from one, by SplitMix64, as the authors of xoshiro recommend.
fn split_mix(mut seed: u64) -> [u64; 4] {
    std::array::from_fn(|_| {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

/// xoshiro256++ (Blackman and Vigna): fast and well distributed; not for secrets, as `Math.random` never is.
fn next(state: &mut [u64; 4]) -> u64 {
    let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
    let shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = state[3].rotate_left(45);
    result
}

/// A number in `[0, 1)` from the upper 53 bits, each of the 2^53 equally likely.
fn unit_interval(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

/// The generator of an isolate.
#[derive(Clone)]
pub(crate) struct Generator {
    state: Rc<Cell<[u64; 4]>>,
    /// Whether it began at a seed that somebody chose.
    is_seeded: Rc<Cell<bool>>,
}

impl Generator {
    pub(crate) fn new(source: RandomSource) -> io::Result<Self> {
        let is_seeded = Rc::new(Cell::new(matches!(source, RandomSource::Seed(_))));
        Ok(Self { state: Rc::new(Cell::new(source.state()?)), is_seeded })
    }

    /// Draws from this from now on.
    pub(crate) fn renew(&self, source: RandomSource) -> io::Result<()> {
        self.state.set(source.state()?);
        self.is_seeded.set(matches!(source, RandomSource::Seed(_)));
        Ok(())
    }

    /// Begins anew.
    pub(crate) fn seed(&self, seed: u64) {
        self.state.set(split_mix(seed));
        self.is_seeded.set(true);
    }

    /// Fills `bytes` for `crypto`: from the operating system, or with the numbers of the seed that somebody chose.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        if !self.is_seeded.get() {
            return fill_random(bytes);
        }
        let mut words = self.state.get();
        for chunk in bytes.chunks_mut(8) {
            let word = next(&mut words).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        self.state.set(words);
        Ok(())
    }

    /// Puts a `Math.random` of this isolate in the place of the engine's.
    pub(crate) fn install(&self, context: &Context, prelude: &Prelude) -> NativeFunction {
        let state = Rc::clone(&self.state);
        let name = EngineString::from_str(context.table(), "random");
        let random = NativeFunction::new(
            context,
            &name,
            Box::new(move |context, _| {
                let mut words = state.get();
                let word = next(&mut words);
                state.set(words);
                Ok(context.number(unit_interval(word)))
            }),
        );
        prelude.bind(context, Some(&EngineString::from_str(context.table(), "Math")), &name, &random);
        random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // The first outputs of xoshiro256++ from the state 1, 2, 3, 4, as in the reference implementation.
        let mut state = [1, 2, 3, 4];
        let drawn: [u64; 4] = std::array::from_fn(|_| next(&mut state));
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn numbers_lie_in_the_unit_interval_without_one() {
        assert!(unit_interval(0) == 0.0);
        assert!(unit_interval(u64::MAX) < 1.0);
    }
}
