//! The last scripts as the engine has read them. One that comes again, as that of a loop in the host does, is not read
//! again, which takes as long as running a short one.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use pydeno_wire::Text;

use crate::ffi::ParsedScript;

/// How many are kept.
const MOST: usize = 8;
/// How long one that is kept may be, in bytes.
const LONGEST: usize = 4 << 10;

/// Scripts by their text and name, the last one first.
#[derive(Default)]
pub(crate) struct RecentScripts(RefCell<VecDeque<Recent>>);

struct Recent {
    text: Text,
    name: Text,
    script: Rc<ParsedScript>,
}

impl RecentScripts {
    /// The script with this text and name, if it is one of the last.
    pub(crate) fn find(&self, text: &Text, name: &str) -> Option<Rc<ParsedScript>> {
        let mut scripts = self.0.borrow_mut();
        let index = scripts.iter().position(|recent| recent.text == *text && recent.name == name)?;
        if index > 0 {
            let found = scripts.remove(index)?;
            scripts.push_front(found);
        }
        scripts.front().map(|recent| Rc::clone(&recent.script))
    }

    /// Keeps a script that was not found, in the place of the one that was longest not asked for.
    pub(crate) fn keep(&self, text: &Text, name: &str, script: &Rc<ParsedScript>) {
        if text.len_bytes().saturating_add(name.len()) > LONGEST {
            return;
        }
        let mut scripts = self.0.borrow_mut();
        scripts.truncate(MOST - 1);
        scripts.push_front(Recent { text: text.clone(), name: name.into(), script: Rc::clone(script) });
    }
}
