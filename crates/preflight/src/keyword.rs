//! The words that mean something to the scanner or the rules, and how one is told from other words.

use crate::class::Class;

macro_rules! keywords {
    ($($name:ident = $text:literal $class:ident,)*) => {
        /// A word that can be more than a name, to the scanner.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Keyword {
            /// Any other word.
            Other,
            $($name,)*
        }

        /// Every keyword with its text and class.
        const KEYWORDS: &[(&str, Keyword, Class)] = &[$(($text, Keyword::$name, Class::$class),)*];
    };
}

keywords! {
    Abstract = "abstract" Special,
    As = "as" Special,
    Asserts = "asserts" Special,
    Async = "async" Special,
    Await = "await" Special,
    Break = "break" Statement,
    Case = "case" Special,
    Class = "class" Special,
    Const = "const" Prefix,
    Continue = "continue" Statement,
    Default = "default" Special,
    Delete = "delete" Prefix,
    Do = "do" Statement,
    Else = "else" Statement,
    Enum = "enum" Prefix,
    Export = "export" Special,
    Extends = "extends" Special,
    For = "for" Control,
    Function = "function" Function,
    If = "if" Control,
    Implements = "implements" Special,
    Import = "import" Special,
    In = "in" In,
    Infer = "infer" Special,
    Instanceof = "instanceof" Special,
    Interface = "interface" Special,
    Is = "is" Special,
    Keyof = "keyof" Special,
    Let = "let" Let,
    New = "new" New,
    Of = "of" Special,
    Readonly = "readonly" Special,
    Return = "return" Return,
    Satisfies = "satisfies" Special,
    Throw = "throw" Prefix,
    Type = "type" Special,
    Typeof = "typeof" Prefix,
    Unique = "unique" Special,
    Var = "var" Prefix,
    Void = "void" Prefix,
    While = "while" Control,
    With = "with" Control,
    Yield = "yield" Special,
}

/// The words that rules are about.
pub(crate) const RULE_WORDS: &[&str] = &[
    "import",
    "export",
    "require",
    "fetch",
    "XMLHttpRequest",
    "WebSocket",
    "process",
    "Deno",
    "child_process",
    "globalThis",
    "self",
    "window",
    "global",
    "__proto__",
    "constructor",
    "eval",
    "Function",
];

const SLOTS: usize = 256;

/// The first eight bytes of each word that is no plain name, and what it is. No two share a slot; the compiler would not
/// accept it.
struct Table {
    words: [u64; SLOTS],
    /// In the second half for what is longer than eight bytes.
    classes: [Class; 2 * SLOTS],
    keywords: [Keyword; SLOTS],
}

static TABLE: Table = {
    let mut table =
        Table { words: [0; SLOTS], classes: [Class::Special; 2 * SLOTS], keywords: [Keyword::Other; SLOTS] };
    // What is no word has no bytes, and its slot is the first.
    table.words[0] = u64::MAX;
    let mut index = 0;
    while index < KEYWORDS.len() {
        let (text, keyword, class) = KEYWORDS[index];
        table = table.with(text.as_bytes(), keyword, class);
        index += 1;
    }
    let mut index = 0;
    while index < RULE_WORDS.len() {
        table = table.with(RULE_WORDS[index].as_bytes(), Keyword::Other, Class::Special);
        index += 1;
    }
    table
};

impl Table {
    const fn with(mut self, text: &[u8], keyword: Keyword, class: Class) -> Self {
        let mut word = 0;
        let mut index = 0;
        while index < text.len() && index < 8 {
            word |= (text[index] as u64) << (8 * index);
            index += 1;
        }
        let slot = slot(word);
        if self.words[slot] == word {
            // A keyword that there is a rule for, too.
            assert!(matches!(class, Class::Special) && matches!(self.classes[slot], Class::Special));
            return self;
        }
        assert!(self.words[slot] == 0, "two words share a slot");
        self.words[slot] = word;
        self.classes[slot] = class;
        self.keywords[slot] = keyword;
        self
    }
}

/// Where a word is looked for, by its first eight bytes.
const fn slot(word: u64) -> usize {
    (word.wrapping_mul(0x38ee_0e95_0ff2_2693) >> 56) as usize
}

/// The bytes of a word, by its length.
static MASKS: [u64; 72] = {
    let mut masks = [u64::MAX; 72];
    let mut length = 0;
    while length < 8 {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// What a name is, as the number of its class, that starts with eight bytes, of which the first `length` and perhaps more, up
/// to 71, are the name. One of more than eight bytes that starts like one that is no plain name is special.
#[inline]
pub(crate) fn class_of(eight: u64, length: usize) -> u8 {
    const { assert!(Class::Word as u8 == 0, "what is no keyword has no bits") };
    let word = eight & MASKS[length % 72];
    let slot = slot(word);
    let known = TABLE.classes[slot + SLOTS * usize::from(length > 8)] as u8;
    // A mask, since a branch would not be foreseen.
    known & u8::from(word == TABLE.words[slot]).wrapping_neg()
}

impl Keyword {
    /// What a word is.
    pub(crate) fn of(word: &[u8]) -> Self {
        let mut eight = [0; 8];
        let length = word.len().min(8);
        eight[..length].copy_from_slice(&word[..length]);
        let slot = slot(u64::from_le_bytes(eight));
        let keyword = TABLE.keywords[slot];
        if u64::from_le_bytes(eight) == TABLE.words[slot] && keyword.text() == word {
            keyword
        } else {
            Self::Other
        }
    }

    fn text(self) -> &'static [u8] {
        (self as usize).checked_sub(1).map_or(b"", |index| KEYWORDS[index].0.as_bytes())
    }

    /// The class of a token that is this word.
    pub(crate) fn class(self) -> Class {
        (self as usize).checked_sub(1).map_or(Class::Word, |index| KEYWORDS[index].2)
    }
}
