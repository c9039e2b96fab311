//! How large the engine's heap is, told without touching what the guest has thrown.
//!
//! The engine may ask whether to go on while an exception of the guest's is under way, and every call of its interface that could
//! throw takes that exception for its own and ends it: the guest would go on with a value that nothing has returned. Reading
//! a property is such a call. So the numbers are read where the engine keeps them. It describes the heap by an object that
//! has room in itself for its first properties (`JSGetMemoryUsageStatistics` and `JSFinalObject` in its sources), numbers as
//! `JSCJSValue.h` encodes them. Nothing promises that, so [`is_read_directly`] compares what is there with what the interface
//! says. Where it is not the same, the interface is asked, at the price of an exception now and then.

use crate::ffi::{Context, EngineString, Local};

/// The first properties, in their order.
const NAMES: [&str; 4] = ["heapSize", "heapCapacity", "extraMemorySize", "objectCount"];

/// Reads the size of one engine's heap.
pub(crate) struct HeapReader {
    context: Context,
    directly: bool,
}

impl HeapReader {
    /// A reader that asks the engine's interface unless the heap [can be read directly](is_read_directly).
    pub(crate) fn new(context: &Context, directly: bool) -> Self {
        Self { context: context.clone(), directly }
    }

    /// In bytes, buffers included; 0 where this engine does not tell.
    pub(crate) fn bytes(&self) -> f64 {
        let Some(statistics) = self.context.memory_statistics() else { return 0.0 };
        let direct = if self.directly { read(statistics) } else { None };
        let [size, _, extra, _] = direct.unwrap_or_else(|| ask(&self.context, statistics));
        [size, extra].into_iter().filter(|bytes| bytes.is_finite()).fold(0.0, f64::max)
    }
}

fn read(statistics: Local<'_>) -> Option<[f64; 4]> {
    statistics.first_slots().map(|slots| slots.map(number))
}

fn ask(context: &Context, statistics: Local<'_>) -> [f64; 4] {
    NAMES.map(|name| {
        let told = context.get(statistics, &EngineString::from_str(context.table(), name));
        told.map_or(f64::NAN, |told| context.to_number(told))
    })
}

/// Whether the numbers of this engine are where they are expected. Asked before any guest code has run in the context.
pub(crate) fn is_read_directly(context: &Context) -> bool {
    let string = |text: &str| EngineString::from_str(context.table(), text);
    let Some(statistics) = context.memory_statistics() else { return false };
    let keys = context.evaluate(&string("Object.keys"), &string("")).ok();
    let Some(names) = keys.and_then(|keys| context.call(keys, &[statistics]).ok()) else { return false };
    let is_at = |(index, name): (usize, &str)| {
        let found = context.get_index(names, index as u32).ok().and_then(|found| context.to_string(found));
        found.is_some_and(|found| found.to_text() == *name)
    };
    // Before the first collection, which would start threads in a process that is to fork, only the capacity is not 0.
    NAMES.into_iter().enumerate().all(is_at)
        && read(statistics).is_some_and(|read| read == ask(context, statistics) && read[1] > 0.0)
}

/// What a number's 64 bits mean: an integer of 32 below fifteen ones, or a double to whose own bits 2^49 was added.
fn number(bits: u64) -> f64 {
    const NUMBER: u64 = 0xfffe_0000_0000_0000;
    match bits & NUMBER {
        NUMBER => f64::from(bits as u32 as i32),
        0 => f64::NAN,
        _ => f64::from_bits(bits - (1 << 49)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;

    #[test]
    fn this_engine_has_its_numbers_where_they_are_expected() {
        let engine = Engine::load().unwrap();
        let context = Context::new(engine.table()).unwrap();
        assert!(
            is_read_directly(&context),
            "a question of the engine's could end an exception of the guest's"
        );
        // Before the first collection both are 0.
        context.collect_garbage();
        let [direct, asked] = [true, false].map(|directly| HeapReader::new(&context, directly).bytes());
        assert!(direct > 10_000.0 && direct <= asked && asked < direct * 2.0, "{direct} {asked}");
    }

    #[test]
    fn a_number_is_decoded_as_the_engine_encodes_it() {
        assert_eq!(number(0xfffe_0000_0000_002a), 42.0);
        assert_eq!(number(0xfffe_0000_ffff_ffff), -1.0);
        assert_eq!(number(5e9_f64.to_bits() + (1 << 49)), 5e9);
        assert!(number(0x0000_7f00_1234_5678).is_nan(), "an object");
        assert!(number(0x0a).is_nan(), "undefined");
    }
}
