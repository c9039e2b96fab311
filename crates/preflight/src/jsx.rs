//! JSX: where an element starts, what of it is text, and where code goes on.
//!
//! An element is a frame from its `<` to the `>` of its closing tag. Elements nest in frames and not in calls.

use std::collections::BTreeMap;

use crate::characters::{name_end, skip_trivia, starts_name};
use crate::frame::{Expect, Kind};
use crate::keyword::Keyword;
use crate::literal::find;
use crate::scanner::{Role, Scanner, Sink, TextKind};

/// How many names of closing tags are remembered.
const MAX_CLOSING_TAGS: usize = 1024;

/// How far the end of a tag's type arguments is looked for, in bytes.
const MAX_TYPE_ARGUMENTS: usize = 256;

/// Where the source last closes each element, collected when first asked. `<T>(x)` in TypeScript looks like the start of an
/// element; that nothing closes it tells the two apart.
#[derive(Default)]
pub(crate) struct ClosingTags<'a> {
    tags: Option<BTreeMap<&'a [u8], usize>>,
    /// How far the source was read for the ends of type arguments, so that none of it is read again and again.
    arguments_read: usize,
}

impl<'a> ClosingTags<'a> {
    fn closes(&mut self, source: &'a [u8], name: &[u8], position: usize) -> bool {
        let tags = self.tags.get_or_insert_with(|| Self::collect(source));
        tags.get(name).is_some_and(|&last| last > position)
    }

    fn collect(source: &'a [u8]) -> BTreeMap<&'a [u8], usize> {
        let mut tags = BTreeMap::new();
        let mut position = 0;
        loop {
            position = find(source, position, [b'<']);
            if position == source.len() {
                return tags;
            }
            if source.get(position + 1) == Some(&b'/') {
                let start = skip_spaces(source, position + 2);
                let name = &source[start..tag_name_end(source, start)];
                if tags.len() < MAX_CLOSING_TAGS || tags.contains_key(name) {
                    tags.insert(name, position);
                }
            }
            position += 1;
        }
    }
}

impl<S: Sink> Scanner<'_, S> {
    /// Whether the `<` where an operand may stand starts an element, and no types.
    pub(crate) fn starts_element(&mut self, start: usize) -> bool {
        let source = self.source;
        let name_start = skip_spaces(source, start + 1);
        if source.get(name_start) == Some(&b'>') {
            return true;
        }
        if !starts_name(source, name_start) {
            return false;
        }
        let name_end = tag_name_end(source, name_start);
        let name = &source[name_start..name_end];
        let after = skip_trivia(source, name_end).position;
        self.sink.steps(after - start);
        if name.iter().any(|byte| matches!(byte, b'-' | b':')) {
            return true;
        }
        match source.get(after) {
            Some(b'/' | b'{') => true,
            Some(b'>') => self.is_closed(name, after),
            Some(b'<') => {
                let end = self.type_arguments_end(after);
                match source.get(end) {
                    _ if end == after => false,
                    Some(b'>') => self.is_closed(name, end),
                    Some(b'/' | b'{') => true,
                    _ => starts_name(source, end),
                }
            }
            _ if starts_name(source, after) => self.is_followed_by_attribute(name, after),
            _ => false,
        }
    }

    fn is_closed(&mut self, name: &[u8], position: usize) -> bool {
        if self.closing_tags.tags.is_none() {
            self.sink.steps(self.source.len());
        }
        self.closing_tags.closes(self.source, name, position)
    }

    /// What follows type arguments; their own start where they have no end.
    fn type_arguments_end(&mut self, start: usize) -> usize {
        if start < self.closing_tags.arguments_read {
            return start;
        }
        let window = &self.source[start..self.source.len().min(start + MAX_TYPE_ARGUMENTS)];
        let mut open = 0;
        for (index, byte) in window.iter().enumerate() {
            match byte {
                b'<' => open += 1,
                b'>' if index > 0 && window[index - 1] == b'=' => {}
                b'>' => open -= 1,
                _ => {}
            }
            if open == 0 {
                self.sink.steps(index);
                self.closing_tags.arguments_read = start + index;
                return skip_trivia(self.source, start + index + 1).position;
            }
        }
        self.sink.steps(window.len());
        self.closing_tags.arguments_read = start + window.len();
        start
    }

    /// Whether a word after a tag's name is an attribute, and no part of a type.
    fn is_followed_by_attribute(&mut self, name: &[u8], start: usize) -> bool {
        let end = name_end(self.source, start).0;
        self.sink.steps(end - start);
        match (Keyword::of(name), Keyword::of(&self.source[start..end])) {
            (
                Keyword::Keyof
                | Keyword::Readonly
                | Keyword::Typeof
                | Keyword::Unique
                | Keyword::Const
                | Keyword::New
                | Keyword::Abstract
                | Keyword::In
                | Keyword::Infer
                | Keyword::Asserts,
                _,
            ) => false,
            (_, Keyword::Extends) => matches!(self.follows(end), b'=' | b'>' | b'/'),
            _ => true,
        }
    }

    /// Reads the start of an element, and its text where it has no attributes.
    pub(crate) fn element(&mut self, start: usize, then: Expect) -> usize {
        let end = self.open_tag(start, then);
        if self.expect == Expect::JsxText { self.jsx_text(end) } else { end }
    }

    /// Reads `<` and a name.
    fn open_tag(&mut self, start: usize, then: Expect) -> usize {
        let name_start = skip_spaces(self.source, start + 1);
        self.push(Kind::Jsx, then);
        if self.source.get(name_start) == Some(&b'>') {
            self.expect = Expect::JsxText;
            return name_start + 1;
        }
        self.expect = Expect::JsxAttribute;
        self.tag_name(name_start, true)
    }

    /// Reads the name of a tag, which in an opening tag stands for a variable unless it is one of HTML.
    fn tag_name(&mut self, start: usize, opens: bool) -> usize {
        let end = tag_name_end(self.source, start);
        let name = &self.source[start..end];
        let is_variable = name.contains(&b'.') || name.first().is_some_and(u8::is_ascii_uppercase);
        let mut role = if opens && is_variable { Role::Reference } else { Role::Name };
        let mut position = start;
        while position < end {
            if starts_name(self.source, position) {
                let (part_end, escaped) = name_end(self.source, position);
                self.sink.word(self.source, position..part_end.min(end), escaped, role);
                position = part_end;
                role = if opens { Role::Member } else { Role::Name };
            } else {
                position += 1;
            }
        }
        end
    }

    /// Reads a token inside of a tag.
    pub(crate) fn in_tag(&mut self, start: usize) -> usize {
        let source = self.source;
        match source[start] {
            _ if starts_name(source, start) => {
                let (end, escaped) = name_end(source, start);
                self.sink.word(source, start..end, escaped, Role::Member);
                self.expect = Expect::JsxAttribute;
                end
            }
            b'=' => {
                self.expect = Expect::JsxValue;
                start + 1
            }
            quote @ (b'"' | b'\'') => {
                // It has no escapes and may go over lines.
                let end = (find(source, start + 1, [quote]) + 1).min(source.len());
                self.expect = Expect::JsxAttribute;
                self.text(start, end, TextKind::String)
            }
            b'{' => {
                self.push(Kind::JsxHole, Expect::JsxAttribute);
                self.expect = Expect::Operand;
                start + 1
            }
            b'<' if self.expect == Expect::JsxValue && opens_tag(source, start) => {
                self.element(start, Expect::JsxAttribute)
            }
            b'<' => {
                self.push(Kind::Angle, Expect::JsxAttribute);
                self.expect = Expect::InType;
                start + 1
            }
            b'/' if source.get(skip_spaces(source, start + 1)) == Some(&b'>') => {
                let end = skip_spaces(source, start + 1) + 1;
                if self.end_element() { self.jsx_text(end) } else { end }
            }
            b'>' => self.jsx_text(start + 1),
            _ => start + 1,
        }
    }

    /// Ends the innermost element; whether the text of the one around it goes on.
    fn end_element(&mut self) -> bool {
        self.expect = self.pop().then();
        self.expect == Expect::JsxText
    }

    /// Reads text up to where code goes on.
    pub(crate) fn jsx_text(&mut self, mut start: usize) -> usize {
        let source = self.source;
        let mut position = start;
        loop {
            position = find(source, position, [b'<', b'{']);
            let is_tag = source.get(position) == Some(&b'<');
            let closes = is_tag && source.get(position + 1) == Some(&b'/');
            if is_tag && !closes && !opens_tag(source, position) {
                position += 1;
                continue;
            }
            if position > start {
                self.text(start, position, TextKind::Jsx);
            }
            if position == source.len() {
                self.expect = Expect::JsxText;
                return position;
            }
            if !is_tag {
                self.push(Kind::JsxHole, Expect::JsxText);
                self.expect = Expect::Operand;
                return position + 1;
            }
            let end;
            if closes {
                end = self.closing_tag(position);
                if !self.end_element() {
                    return end;
                }
            } else {
                end = self.open_tag(position, Expect::JsxText);
                if self.expect != Expect::JsxText {
                    return end;
                }
            }
            start = end;
            position = end;
        }
    }

    fn closing_tag(&mut self, start: usize) -> usize {
        let name_start = skip_spaces(self.source, start + 2);
        let name_end = self.tag_name(name_start, false);
        let end = skip_spaces(self.source, name_end);
        self.sink.steps(end - start);
        end + usize::from(self.source.get(end) == Some(&b'>'))
    }
}

/// Whether a `<` among the text of an element starts another one.
fn opens_tag(source: &[u8], start: usize) -> bool {
    let position = skip_spaces(source, start + 1);
    source.get(position) == Some(&b'>') || starts_name(source, position)
}

fn skip_spaces(source: &[u8], position: usize) -> usize {
    let rest = source.get(position..).unwrap_or_default();
    position + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of a tag's name: names with points, dashes and colons.
fn tag_name_end(source: &[u8], start: usize) -> usize {
    let mut position = start;
    while starts_name(source, position) {
        position = name_end(source, position).0;
        while matches!(source.get(position), Some(b'-'))
            || source.get(position).is_some_and(u8::is_ascii_digit)
        {
            position += 1;
        }
        if matches!(source.get(position), Some(b'.' | b':')) && starts_name(source, position + 1) {
            position += 1;
        }
    }
    position
}
