//! How far a source must be scanned: to the last word that a rule could have something to say about.
//!
//! Most sources have few such words or none. They are looked for in the bytes alone, many at once, without knowing what is
//! code, and each is shown to the rules in the role that they would say most about. So this finds places in strings and
//! comments, too, and never misses one that a scan of the whole source would report.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};

use crate::keyword::RULE_WORDS;
use crate::rules::{Options, Rules};
use crate::scanner::Role;

/// How many bytes are looked through at once.
const STRETCH: usize = 1 << 16;

/// The length of the longest word that a rule is about.
const LONGEST: usize = {
    let (mut longest, mut index) = (0, 0);
    while index < RULE_WORDS.len() {
        if RULE_WORDS[index].len() > longest {
            longest = RULE_WORDS[index].len();
        }
        index += 1;
    }
    longest
};

/// `None` where there is no such search for this processor.
static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let mut builder = Config::new().match_kind(MatchKind::LeftmostLongest).builder();
    builder.extend(RULE_WORDS).build()
});

/// A place that a scan must have passed in order to find everything; 0 if there is nothing to find.
pub(crate) fn end(source: &[u8], options: Options) -> usize {
    end_and_steps(source, options).0
}

/// The same, and how many bytes were read ahead of words.
pub(crate) fn end_and_steps(source: &[u8], options: Options) -> (usize, usize) {
    let Some(searcher) = &*SEARCHER else { return (source.len(), 0) };
    let mut rules = Rules::new(options);
    let matters = |rules: &mut Rules, span: &Range<usize>| {
        let (before, after) = (&source[..span.start], &source[span.end..]);
        if before.last().is_some_and(|byte| is_name(*byte))
            || after.first().is_some_and(|byte| is_name(*byte))
        {
            return false;
        }
        let role = role(&source[span.clone()], before);
        rules.would_report(source, span.clone(), role)
    };
    let mut end = 0;
    let mut stretch_end = source.len();
    // From the end backwards: in front of the last such word nothing need be looked for.
    while end == 0 && stretch_end > 0 {
        let start = stretch_end.saturating_sub(STRETCH);
        let stretch = &source[start..source.len().min(stretch_end + LONGEST - 1)];
        // Another name may hold a match that is no word, but a word is never hidden by one: it starts behind what is no name.
        for found in searcher.find_iter(stretch) {
            let span = start + found.start()..start + found.end();
            if matters(&mut rules, &span) {
                end = span.end;
            }
            // What each of many words in one comment is followed by would be read again and again.
            if rules.steps() > source.len() {
                return (source.len(), rules.steps());
            }
        }
        stretch_end = start;
    }
    let is_escape = |at: &usize| may_start_a_letter(&source[end + at + 1..]);
    let escape = memchr::memrchr_iter(b'\\', &source[end..]).find(is_escape);
    (escape.map_or(end, |at| end + at + 1), rules.steps())
}

/// Whether a backslash in front of this can be an escape in a name for a letter of ASCII.
fn may_start_a_letter(escape: &[u8]) -> bool {
    match escape {
        [b'u', b'{', ..] => true,
        [b'u', b'0', b'0', digit, ..] => matches!(digit, b'4'..=b'7'),
        _ => false,
    }
}

/// The role in which most is to be said about a word.
fn role(word: &[u8], before: &[u8]) -> Role {
    match word {
        b"constructor" | b"__proto__" => Role::Member,
        _ if is_member(before) => Role::Member,
        b"import" | b"export" => Role::Keyword,
        b"Function" if may_follow_new(before) => Role::New,
        _ => Role::Reference,
    }
}

/// Whether a word follows a dot that makes it a property: not one of three, nor that of a number.
fn is_member(before: &[u8]) -> bool {
    let Some((b'.', object)) = before.split_last() else { return false };
    let name = object.iter().rev().take_while(|byte| is_name(**byte)).last();
    !object.ends_with(b".") && !name.is_some_and(u8::is_ascii_digit)
}

/// Whether `new` stands in front of a word, or the end of a line, a comment or what is outside ASCII, behind which it may.
fn may_follow_new(before: &[u8]) -> bool {
    let spaces = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)).count();
    matches!(before[..before.len() - spaces], [.., b'n', b'e', b'w'] | [.., b'/' | b'\n' | b'\r' | 0x80..])
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of more than two stretches with one word at a place.
    fn with_word(at: usize, word: &str) -> Vec<u8> {
        let mut source = b"a=(b,c);\n".repeat(5 * STRETCH / 18);
        source[at..at + word.len()].copy_from_slice(word.as_bytes());
        source
    }

    #[test]
    fn a_word_is_found_wherever_stretches_end() {
        let length = with_word(0, "").len();
        for bound in [length - STRETCH, length - 2 * STRETCH] {
            for at in bound - 20..bound + 4 {
                assert_eq!(end(&with_word(at, ";XMLHttpRequest;"), Options::default()), at + 15);
                assert_eq!(end(&with_word(at, ";aXMLHttpRequest"), Options::default()), 0);
            }
        }
    }

    #[test]
    fn an_escape_counts_behind_the_last_word_and_in_front_of_it_does_not_matter() {
        let mut source = with_word(10 + STRETCH, ";fetch(1);");
        assert_eq!(end(&source, Options::default()), 16 + STRETCH);
        source[20..27].copy_from_slice(b";\\u0066");
        assert_eq!(end(&source, Options::default()), 16 + STRETCH);
        source[20 + 2 * STRETCH..27 + 2 * STRETCH].copy_from_slice(b";\\u0066");
        assert_eq!(end(&source, Options::default()), 22 + 2 * STRETCH);
    }
}
