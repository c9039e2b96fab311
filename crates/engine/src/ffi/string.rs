//! The engine's strings.

use std::ffi::c_char;
use std::ptr::NonNull;

use pydeno_wire::Text;

use super::table::{OpaqueString, StringRef, Table};

/// A string of the engine, counted by reference and bound to no context.
pub(crate) struct EngineString {
    table: &'static Table,
    raw: NonNull<OpaqueString>,
}

impl EngineString {
    /// A string with the code units of this text.
    pub(crate) fn new(table: &'static Table, text: &Text) -> Self {
        match text.as_str() {
            Some(string) => Self::from_str(table, string),
            None => Self::from_utf16(table, &text.to_utf16()),
        }
    }

    /// A string with these characters.
    pub(crate) fn from_str(table: &'static Table, string: &str) -> Self {
        if string.as_bytes().contains(&0) {
            return Self::from_utf16(table, &string.encode_utf16().collect::<Vec<_>>());
        }
        let mut terminated = Vec::with_capacity(string.len() + 1);
        terminated.extend_from_slice(string.as_bytes());
        terminated.push(0);
        // SAFETY: the table; `terminated` is a C string that outlives the call, which copies it.
        let raw = unsafe { (table.JSStringCreateWithUTF8CString)(terminated.as_ptr().cast::<c_char>()) };
        Self::owning(table, raw)
    }

    /// A string that the engine reads once and lets go of. Widening ASCII here is quicker than the engine's own decoding;
    /// a string that stays would take twice the memory.
    pub(crate) fn passing(table: &'static Table, string: &str) -> Self {
        if !string.is_ascii() {
            return Self::from_str(table, string);
        }
        Self::from_utf16(table, &string.bytes().map(u16::from).collect::<Vec<_>>())
    }

    /// A string with these code units.
    pub(crate) fn from_utf16(table: &'static Table, units: &[u16]) -> Self {
        // SAFETY: the table; pointer and length are those of `units`, which outlives the call; it copies them.
        let raw = unsafe { (table.JSStringCreateWithCharacters)(units.as_ptr(), units.len()) };
        Self::owning(table, raw)
    }

    /// Takes over one reference.
    pub(super) fn owning(table: &'static Table, raw: StringRef) -> Self {
        let raw = NonNull::new(raw).expect("the engine ends the process rather than return no string");
        Self { table, raw }
    }

    pub(super) fn raw(&self) -> StringRef {
        self.raw.as_ptr()
    }

    /// The number of UTF-16 code units.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the table; the string is alive, this owns a reference.
        unsafe { (self.table.JSStringGetLength)(self.raw()) }
    }

    /// The code units.
    pub(crate) fn units(&self) -> &[u16] {
        let length = self.len();
        // SAFETY: the table; the string is alive, this owns a reference.
        let characters = unsafe { (self.table.JSStringGetCharactersPtr)(self.raw()) };
        if characters.is_null() {
            return &[];
        }
        // SAFETY: the engine's buffer has `length` units and lives, unchanged, as long as the string, to which this
        // owns a reference for the borrow's length.
        unsafe { std::slice::from_raw_parts(characters, length) }
    }

    /// From here on a wide copy that lives for a moment, and narrowing it here, cost less than the engine's encoding.
    const LONG: usize = 64 << 10;

    /// The string if it is all ASCII.
    pub(crate) fn to_ascii(&self) -> Option<String> {
        if self.len() < Self::LONG {
            return self.to_utf8().filter(|string| string.is_ascii());
        }
        let units = self.units();
        if units.iter().fold(0, |all, unit| all | unit) >= 0x80 {
            return None;
        }
        String::from_utf8(units.iter().map(|&unit| unit as u8).collect()).ok()
    }

    /// The string outside the engine, lone surrogates kept.
    pub(crate) fn to_text(&self) -> Text {
        if self.len() >= Self::LONG {
            return Text::from_utf16(self.units());
        }
        self.to_utf8().map_or_else(|| Text::from_utf16(self.units()), Text::from)
    }

    /// The string as UTF-8, or `None` where it may hold a lone surrogate.
    ///
    /// This is the short way for nearly every string: most are held as Latin-1 by the engine, and asking for their
    /// units would make a second, wide copy that lives as long as they do.
    pub(crate) fn to_utf8(&self) -> Option<String> {
        let length = self.len();
        if length == 0 {
            return Some(String::new());
        }
        // One unit takes at most three bytes, and the NUL one.
        let mut bytes: Vec<u8> = Vec::with_capacity(length * 3 + 1);
        let buffer = bytes.as_mut_ptr().cast::<c_char>();
        // SAFETY: the table; the buffer has `capacity` bytes, and at most that many are written.
        let written = unsafe { (self.table.JSStringGetUTF8CString)(self.raw(), buffer, bytes.capacity()) };
        // SAFETY: the engine has written that many bytes, the NUL included, within the capacity.
        unsafe { bytes.set_len(written) };
        // At a lone surrogate builds differ: nothing is written, the text ends before it, or U+FFFD stands for it.
        bytes.pop()?;
        let string = String::from_utf8(bytes).ok()?;
        let is_whole = if string.is_ascii() {
            string.len() == length
        } else {
            string.encode_utf16().count() == length && !string.contains('\u{fffd}')
        };
        is_whole.then_some(string)
    }
}

impl Drop for EngineString {
    fn drop(&mut self) {
        // SAFETY: the table; gives back the one reference that this owns.
        unsafe { (self.table.JSStringRelease)(self.raw()) };
    }
}
