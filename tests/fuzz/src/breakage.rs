//! What may happen to a document on its way.

use proptest::collection::vec;
use proptest::prelude::*;

/// Longest document.
const LONGEST: usize = 256 * 1024;
/// Openings of a document that is nothing but nested.
const DEEPEST: u16 = 4_000;

/// Documents, and bytes that mean something in them.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    pub(crate) documents: Vec<Vec<u8>>,
    pub(crate) words: Vec<Vec<u8>>,
}

/// One thing that happens. Places are parts of the length: they are always in the document.
#[derive(Clone, Debug)]
pub(crate) enum Breakage {
    Flip {
        at: u16,
        bit: u8,
    },
    Set {
        at: u16,
        byte: u8,
    },
    Insert {
        at: u16,
        bytes: Vec<u8>,
    },
    Remove {
        at: u16,
        length: u8,
    },
    Cut {
        at: u16,
    },
    /// A piece of it once more, elsewhere.
    Copy {
        from: u16,
        length: u8,
        to: u16,
    },
    /// A piece many times over.
    Repeat {
        at: u16,
        length: u8,
        times: u8,
    },
    /// From there on it is another document.
    Splice {
        at: u16,
        other: usize,
    },
    Word {
        at: u16,
        word: usize,
    },
    /// In the place of what is there.
    Overwrite {
        at: u16,
        word: usize,
    },
    /// One byte very often, such as an opening bracket.
    Nest {
        at: u16,
        opening: u8,
        depth: u16,
    },
}

impl Arbitrary for Breakage {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        let at = any::<u16>;
        let opening = prop_oneof![Just(b'['), Just(b'{'), Just(b'"'), Just(b'\\'), any::<u8>()];
        prop_oneof![
            4 => (at(), 0..8_u8).prop_map(|(at, bit)| Self::Flip { at, bit }),
            4 => (at(), any::<u8>()).prop_map(|(at, byte)| Self::Set { at, byte }),
            3 => (at(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Self::Insert { at, bytes }),
            3 => (at(), 1..40_u8).prop_map(|(at, length)| Self::Remove { at, length }),
            1 => at().prop_map(|at| Self::Cut { at }),
            3 => (at(), any::<u8>(), at())
                .prop_map(|(from, length, to)| Self::Copy { from, length, to }),
            1 => (at(), any::<u8>(), any::<u8>())
                .prop_map(|(at, length, times)| Self::Repeat { at, length, times }),
            2 => (at(), any::<usize>()).prop_map(|(at, other)| Self::Splice { at, other }),
            5 => (at(), any::<usize>()).prop_map(|(at, word)| Self::Word { at, word }),
            5 => (at(), any::<usize>()).prop_map(|(at, word)| Self::Overwrite { at, word }),
            1 => (at(), opening, 1..DEEPEST)
                .prop_map(|(at, opening, depth)| Self::Nest { at, opening, depth }),
        ]
        .boxed()
    }
}

impl Corpus {
    /// One of the documents after all this.
    pub(crate) fn broken(&self, which: usize, breakages: &[Breakage]) -> Vec<u8> {
        let mut document = pick(&self.documents, which).to_vec();
        for breakage in breakages {
            self.apply(&mut document, breakage);
            document.truncate(LONGEST);
        }
        document
    }

    fn apply(&self, document: &mut Vec<u8>, breakage: &Breakage) {
        let length_of_all = document.len();
        let place = |at: u16| usize::from(at) * length_of_all / (usize::from(u16::MAX) + 1);
        let piece = |at: u16, length: u8| {
            let start = place(at);
            start..(start + usize::from(length)).min(length_of_all)
        };
        match breakage {
            Breakage::Flip { at, bit } => {
                if let Some(byte) = document.get_mut(place(*at)) {
                    *byte ^= 1 << bit;
                }
            }
            Breakage::Set { at, byte } => {
                if let Some(place) = document.get_mut(place(*at)) {
                    *place = *byte;
                }
            }
            Breakage::Insert { at, bytes } => put(document, place(*at), bytes),
            Breakage::Remove { at, length } => {
                document.drain(piece(*at, *length));
            }
            Breakage::Cut { at } => document.truncate(place(*at)),
            Breakage::Copy { from, length, to } => {
                let copy = document[piece(*from, *length)].to_vec();
                put(document, place(*to), &copy);
            }
            Breakage::Repeat { at, length, times } => {
                let copy = document[piece(*at, *length)].repeat(usize::from(*times));
                put(document, place(*at), &copy);
            }
            Breakage::Splice { at, other } => {
                let other = pick(&self.documents, *other);
                document.truncate(place(*at));
                let rest = other.len() * place(*at) / length_of_all.max(1);
                document.extend_from_slice(other.get(rest..).unwrap_or_default());
            }
            Breakage::Word { at, word } => put(document, place(*at), pick(&self.words, *word)),
            Breakage::Overwrite { at, word } => {
                let word = pick(&self.words, *word);
                let start = place(*at);
                let end = (start + word.len()).min(length_of_all);
                document.splice(start..end, word.iter().copied());
            }
            Breakage::Nest { at, opening, depth } => {
                put(document, place(*at), &vec![*opening; usize::from(*depth)]);
            }
        }
    }
}

fn put(document: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    document.splice(at..at, bytes.iter().copied());
}

fn pick(of: &[Vec<u8>], which: usize) -> &[u8] {
    let index = which.checked_rem(of.len());
    index.map_or(&[], |index| &of[index])
}
