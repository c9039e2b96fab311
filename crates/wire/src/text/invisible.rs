//! Characters that a person does not see, or that change how others are seen.

/// Code points removed from what is shown: `Default_Ignorable_Code_Point` (Unicode 16, DerivedCoreProperties.txt),
/// the line and paragraph separators (general categories Zl, Zp) and the interlinear annotation controls. Sorted.
const INVISIBLE: [(u32, u32); 20] = [
    (0x00AD, 0x00AD),   // soft hyphen
    (0x034F, 0x034F),   // combining grapheme joiner
    (0x061C, 0x061C),   // Arabic letter mark
    (0x115F, 0x1160),   // Hangul fillers
    (0x17B4, 0x17B5),   // Khmer inherent vowels
    (0x180B, 0x180F),   // Mongolian variation selectors and vowel separator
    (0x200B, 0x200F),   // zero-width space and joiners, directional marks
    (0x2028, 0x2029),   // line and paragraph separators
    (0x202A, 0x202E),   // bidirectional embeddings and overrides
    (0x2060, 0x206F),   // word joiner, invisible operators, bidirectional isolates, deprecated controls
    (0x3164, 0x3164),   // Hangul filler
    (0xFE00, 0xFE0F),   // variation selectors
    (0xFEFF, 0xFEFF),   // zero-width no-break space
    (0xFFA0, 0xFFA0),   // halfwidth Hangul filler
    (0xFFF0, 0xFFF8),   // reserved, ignorable
    (0xFFF9, 0xFFFB),   // interlinear annotation
    (0x1BCA0, 0x1BCA3), // shorthand format controls
    (0x1D173, 0x1D17A), // musical format controls
    (0xE0000, 0xE00FF), // language tag and tag characters, reserved
    (0xE0100, 0xE0FFF), // variation selectors supplement, reserved
];

/// Whether the character is a control (general category Cc) or one of [`INVISIBLE`].
pub(crate) fn is_invisible(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    let code_point = u32::from(character);
    let after = INVISIBLE.partition_point(|&(first, _)| first <= code_point);
    character.is_control() || after.checked_sub(1).is_some_and(|index| code_point <= INVISIBLE[index].1)
}
