//! Names that a source does not use.

use std::collections::HashSet;

use oxc_semantic::Scoping;

/// Finds names for what the output adds.
pub(crate) struct FreshNames<'s> {
    source: &'s str,
    taken: HashSet<String>,
}

impl<'s> FreshNames<'s> {
    /// Names beside those of a source. Its text is looked at for the names that only direct `eval` would see, and what was
    /// resolved for those that are written with escapes.
    pub(crate) fn beside(source: &'s str, scoping: &Scoping) -> Self {
        let taken = if source.contains("\\u") {
            let unresolved = scoping.root_unresolved_references().keys().map(ToString::to_string);
            scoping.symbol_names().map(str::to_owned).chain(unresolved).collect()
        } else {
            HashSet::new()
        };
        Self { source, taken }
    }

    /// A name that begins with `$` and the letter, and that nothing has.
    pub(crate) fn name(&mut self, letter: char) -> String {
        let mut number = 0_usize;
        loop {
            let name = if number == 0 { format!("${letter}") } else { format!("${letter}{number}") };
            if !self.source.contains(&name) && self.taken.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }
}
