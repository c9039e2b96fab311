//! Which objects have the same properties, told by the mark that the engine's own inline caches compare.
//!
//! Reading an object takes two steps in JavaScript for each property: is it data, and what is its value? Objects made by
//! one piece of code share a *shape*: names, their order and the kind of each property. Once the first of them has been
//! read in two steps, the others can be read in one.
//!
//! The engine keeps the mark of the shape, of the class and of the storage of elements in the first eight bytes of every
//! object (`JSCell` in its sources). Nothing promises that, so [`Marks::of_engine`] compares some hundred objects made for the
//! purpose, by every means that could give two objects the same mark and different properties. Where any of them is not
//! as expected every object is read in two steps.
//!
//! A shape that the engine has given to one object alone can change while that object keeps its mark. No guest code runs
//! while a value is read, so marks are good for the length of that; [`Shapes::forget`] is called before the next.

use std::cell::RefCell;

use crate::class::{Class, Prototypes};
use crate::ffi::{Context, EngineString, Kept, Kind, Local, Mark, Table, Thrown};

const SAMPLES: &str = include_str!("js/shapes.js");

/// A plain object of a shape that is not known yet; flatten.js knows the number, and the next two.
const RECORD: u32 = 13;
/// An array that inherits from `Array.prototype` and whose elements are its own data, or holes.
const DENSE: u32 = 14;
/// The first known shape.
const SHAPES: u32 = 16;
/// The numbers fit into the low byte of what `look` answers.
const MAX_SHAPES: usize = 200;

/// The shapes that are known in one reading.
pub(crate) struct Shapes {
    marks: Option<&'static Marks>,
    array_prototype: Kept,
    known: RefCell<Vec<Shape>>,
}

/// The prototype is compared too, because the engine may keep it outside the shape.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    mark: u32,
    prototype: usize,
}

/// What the marks of this engine look like, in whatever context.
#[derive(Debug)]
pub(crate) struct Marks {
    plain: u8,
    no_elements: u8,
    array: u8,
    dense: Vec<u8>,
}

impl Shapes {
    /// No shapes yet; without marks there will be none.
    pub(crate) fn new<'c>(
        context: &'c Context,
        builtins: Local<'c>,
        marks: Option<&'static Marks>,
    ) -> Result<Self, Thrown<'c>> {
        let name = EngineString::from_str(context.table(), "ArrayPrototype");
        let array_prototype = context.get(builtins, &name)?;
        Ok(Self { marks, array_prototype: Kept::new(context, array_prototype), known: RefCell::default() })
    }

    /// Begins another reading.
    pub(crate) fn forget(&self) {
        self.known.borrow_mut().clear();
    }

    /// What the first of several objects is, and, times 256, how many of them in a row are the same.
    pub(crate) fn look(&self, context: &Context, prototypes: &Prototypes, objects: &[Local<'_>]) -> u32 {
        let Some((&first, rest)) = objects.split_first() else { return 0 };
        let found = self.look_at(context, prototypes, first);
        let like_it = rest.iter().take_while(|&&object| self.look_at(context, prototypes, object) == found);
        found | (1 + like_it.count() as u32) << 8
    }

    fn look_at(&self, context: &Context, prototypes: &Prototypes, object: Local<'_>) -> u32 {
        let Some(marks) = self.marks else { return prototypes.classify(context, object) as u32 };
        if context.kind(object) != Kind::Object {
            return Class::Other as u32;
        }
        let mark = object.mark();
        if mark.class == marks.plain && mark.elements == marks.no_elements {
            let shape = Shape::of(context, object, mark);
            if let Some(position) = self.known.borrow().iter().position(|&known| known == shape) {
                return SHAPES + position as u32;
            }
            return match prototypes.classify(context, object) {
                Class::Other => RECORD,
                class => class as u32,
            };
        }
        if mark.class == marks.array
            && marks.dense.contains(&mark.elements)
            && self.array_prototype.is(context.prototype(object))
        {
            return DENSE;
        }
        prototypes.classify(context, object) as u32
    }

    /// Remembers the shape of an object whose properties are all data, and gives its number; 0 where it has none.
    pub(crate) fn learn(&self, context: &Context, object: Local<'_>) -> u32 {
        let Some(marks) = self.marks else { return 0 };
        if context.kind(object) != Kind::Object {
            return 0;
        }
        let mark = object.mark();
        let mut known = self.known.borrow_mut();
        if mark.class != marks.plain || mark.elements != marks.no_elements || known.len() >= MAX_SHAPES {
            return 0;
        }
        known.push(Shape::of(context, object, mark));
        SHAPES + (known.len() - 1) as u32
    }
}

impl Shape {
    fn of(context: &Context, object: Local<'_>, mark: Mark) -> Self {
        Self { mark: mark.shape, prototype: context.prototype(object).address() }
    }
}

impl Marks {
    /// Takes them from the samples of shapes.js, in a context of their own; `None` where they are not as expected.
    pub(crate) fn of_engine(table: &'static Table) -> Option<Self> {
        let context = Context::new(table)?;
        let string = |text: &str| EngineString::from_str(table, text);
        let make = context.evaluate(&string(SAMPLES), &string("")).ok()?;
        let samples = context.call(make, &[]).ok()?;
        let field = |name: &str| context.get(samples, &string(name)).ok();
        let marks = |objects| {
            let length = context.get(objects, &string("length")).ok()?;
            (0..context.to_number(length) as u32)
                .map(|index| context.get_index(objects, index).ok().map(Local::mark))
                .collect::<Option<Vec<Mark>>>()
        };
        let lists = |objects| {
            let length = context.get(objects, &string("length")).ok()?;
            (0..context.to_number(length) as u32)
                .map(|index| marks(context.get_index(objects, index).ok()?))
                .collect::<Option<Vec<Vec<Mark>>>>()
        };
        Samples {
            alike: lists(field("alike")?)?,
            unlike: lists(field("unlike")?)?,
            special: marks(field("special")?)?,
            dense: marks(field("dense")?)?,
            accessors: marks(field("accessors")?)?,
        }
        .marks()
    }
}

/// The marks of the objects of shapes.js.
struct Samples {
    alike: Vec<Vec<Mark>>,
    unlike: Vec<Vec<Mark>>,
    special: Vec<Mark>,
    dense: Vec<Mark>,
    accessors: Vec<Mark>,
}

impl Samples {
    /// What they have in common, or `None` where they are not as expected.
    fn marks(&self) -> Option<Marks> {
        let plain = *self.alike.first()?.first()?;
        let dense: Vec<u8> = self.dense.iter().map(|mark| mark.elements).collect();
        let array = self.dense.first()?.class;
        let is_plain = |mark: &Mark| mark.class == plain.class && mark.elements == plain.elements;
        let as_expected = self
            .alike
            .iter()
            .all(|list| list.iter().all(|mark| is_plain(mark) && mark.shape == list[0].shape))
            && self.unlike.iter().all(|list| list[1..].iter().all(|mark| mark.shape != list[0].shape))
            && !self.special.iter().any(is_plain)
            && self.dense.iter().all(|mark| mark.class == array)
            && array != plain.class
            && !self.accessors.iter().any(|mark| dense.contains(&mark.elements));
        as_expected.then_some(Marks { plain: plain.class, no_elements: plain.elements, array, dense })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    fn samples() -> Samples {
        let mark = |shape, elements, class| Mark { shape, elements, class };
        Samples {
            alike: vec![vec![mark(1, 0, 7), mark(1, 0, 7)]],
            unlike: vec![vec![mark(1, 0, 7), mark(2, 0, 7)]],
            special: vec![mark(3, 4, 7), mark(4, 0, 8)],
            dense: vec![mark(5, 4, 9), mark(6, 5, 9)],
            accessors: vec![mark(7, 6, 9)],
        }
    }

    #[test]
    fn the_marks_of_this_engine_are_as_expected() {
        let engine = Engine::load().expect("the tests need JavaScriptCore");
        engine.ensure_started();
        assert!(engine.marks().is_some(), "every object would be read the slow way");
    }

    #[test]
    fn an_engine_with_other_marks_is_not_trusted() {
        assert!(samples().marks().is_some());
        let spoilt: [fn(&mut Samples); 7] = [
            |samples| samples.alike[0][1].shape = 2,
            |samples| samples.unlike[0][1].shape = 1,
            |samples| samples.special[0].elements = 0,
            |samples| samples.special[1].class = 7,
            |samples| samples.dense[1].class = 7,
            |samples| samples.accessors[0].elements = 5,
            |samples| samples.alike.clear(),
        ];
        for spoil in spoilt {
            let mut samples = samples();
            spoil(&mut samples);
            assert!(samples.marks().is_none());
        }
    }
}
