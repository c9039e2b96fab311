//! What kind of object a guest's object is, told without touching it.

use crate::ffi::{Context, Kept, Kind, Local, Thrown};

/// The class of an object. The prelude's JavaScript knows these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Other = 0,
    Array = 1,
    Function = 2,
    Proxy = 3,
    Date = 4,
    Bytes = 5,
    Map = 6,
    Set = 7,
    View = 8,
    Promise = 9,
    Error = 10,
}

/// The bits that a class takes where several are told at once.
const BITS: usize = 4;

/// The prototypes that make an object a `Map`, a `Promise` and so on.
pub(crate) struct Prototypes {
    object: Kept,
    classes: [(Kept, Class); 5],
}

/// A guest can make a chain of any length; nothing real is this far from its class.
const MAX_HOPS: usize = 100;

impl Prototypes {
    /// Takes the prototypes from the built-ins' record, by name.
    pub(crate) fn new<'c>(
        mut named: impl FnMut(&str) -> Result<Kept, Thrown<'c>>,
    ) -> Result<Self, Thrown<'c>> {
        Ok(Self {
            object: named("ObjectPrototype")?,
            classes: [
                (named("MapPrototype")?, Class::Map),
                (named("SetPrototype")?, Class::Set),
                (named("DataViewPrototype")?, Class::View),
                (named("PromisePrototype")?, Class::Promise),
                (named("ErrorPrototype")?, Class::Error),
            ],
        })
    }

    /// The class of a value; `Other` for a primitive and for every object that is none of the rest.
    ///
    /// Nothing of the guest's runs: the engine gives the prototype that an object holds, and for a proxy `null` without
    /// asking its trap. `Map`, `Set`, `DataView`, `Promise` and `Error` go by the chain of prototypes, as `instanceof`
    /// does; an object whose prototype is `Object.prototype` is a plain one, whatever it was made as, unless it is an
    /// array.
    pub(crate) fn classify(&self, context: &Context, value: Local<'_>) -> Class {
        if context.kind(value) != Kind::Object {
            return Class::Other;
        }
        let mut object = context.prototype(value);
        if self.object.is(object) {
            // By far the most common. A proxy has no prototype of its own, so it is none.
            return if context.is_array(value) { Class::Array } else { Class::Other };
        }
        if context.is_proxy(value) {
            return Class::Proxy;
        }
        if context.is_array(value) {
            return Class::Array;
        }
        if context.has_bytes(value) {
            return Class::Bytes;
        }
        if context.is_date(value) {
            return Class::Date;
        }
        if context.is_function(value) {
            return Class::Function;
        }
        for _ in 0..MAX_HOPS {
            if self.object.is(object) || context.kind(object) != Kind::Object || context.is_proxy(object) {
                break;
            }
            if let Some((_, class)) = self.classes.iter().find(|(prototype, _)| prototype.is(object)) {
                return *class;
            }
            object = context.prototype(object);
        }
        Class::Other
    }

    /// The classes of several values in one number, the first in the lowest bits.
    pub(crate) fn classify_all(&self, context: &Context, values: &[Local<'_>]) -> u32 {
        let held = (u32::BITS as usize / BITS).min(values.len());
        values[..held].iter().enumerate().fold(0, |classes, (index, &value)| {
            classes | (self.classify(context, value) as u32) << (BITS * index)
        })
    }
}
