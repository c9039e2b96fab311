//! What kind of object a guest's object is, told without touching it.

use crate::ffi::{Context, EngineString, Kept, Kind, Local, Thrown};

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
    /// A typed array of a kind that the engine's C interface does not know, such as `Float16Array`.
    NewerBytes = 11,
    /// An instance of a built-in class that is none of the above, such as `RegExp` or a generator.
    Opaque = 12,
}

/// The prototypes that make an object a `Map`, a `Promise` and so on.
pub(crate) struct Prototypes {
    object: Kept,
    classes: Vec<(Kept, Class)>,
}

/// A guest can make a chain of any length; nothing real is this far from its class.
const MAX_HOPS: usize = 100;

impl Prototypes {
    /// Takes the prototypes from the built-ins' record.
    pub(crate) fn new<'c>(context: &'c Context, builtins: Local<'c>) -> Result<Self, Thrown<'c>> {
        let field = |name: &str| context.get(builtins, &EngineString::from_str(context.table(), name));
        let kept = |name: &str| field(name).map(|value| Kept::new(context, value));
        let mut classes = vec![
            (kept("MapPrototype")?, Class::Map),
            (kept("SetPrototype")?, Class::Set),
            (kept("DataViewPrototype")?, Class::View),
            (kept("PromisePrototype")?, Class::Promise),
            (kept("ErrorPrototype")?, Class::Error),
            (kept("TypedArrayPrototype")?, Class::NewerBytes),
        ];
        let opaque = field("opaquePrototypes")?;
        let count =
            context.to_number(context.get(opaque, &EngineString::from_str(context.table(), "length"))?);
        for index in 0..count as u32 {
            classes.push((Kept::new(context, context.get_index(opaque, index)?), Class::Opaque));
        }
        Ok(Self { object: kept("ObjectPrototype")?, classes })
    }

    /// The class of a value; `Other` for a primitive and for every object that is none of the rest.
    ///
    /// Nothing of the guest's runs: the engine gives the prototype that an object holds, and for a proxy `null` without
    /// asking its trap. `Map`, `Set`, `DataView`, `Promise`, `Error` and the built-in classes after them go by the chain of prototypes, as `instanceof`
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

    /// The class of the first of a function's arguments, as its number.
    pub(crate) fn classify_first(&self, context: &Context, values: &[Local<'_>]) -> u32 {
        values.first().map_or(Class::Other, |&value| self.classify(context, value)) as u32
    }
}
