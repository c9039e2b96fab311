//! The first look at a script: is there anything in it that could need work?

use memchr::memmem;

/// Words without which a JavaScript script is one that the engine can evaluate as it is.
const WORDS: [&str; 4] = ["await", "import", "export", "using"];

/// Words with which a script declares a name that it could not declare again.
const DECLARING_WORDS: [&str; 3] = ["let", "const", "class"];

/// Whether any of the words is in the text, be it in a comment.
pub(crate) fn occur(source: &str, redeclare: bool) -> bool {
    WORDS.iter().any(|word| contains(source, word))
        || redeclare && DECLARING_WORDS.iter().any(|word| contains(source, word))
}

pub(crate) fn contains(source: &str, word: &str) -> bool {
    memmem::find(source.as_bytes(), word.as_bytes()).is_some()
}
