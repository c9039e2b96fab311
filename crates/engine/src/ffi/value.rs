//! Making values and reading them. Nothing here runs guest code.

use std::ffi::c_uint;
use std::ptr::{self, NonNull};

use super::context::{Context, Thrown};
use super::local::{Kind, Local};
use super::string::EngineString;
use super::table::ValueRef;

/// `kJSTypedArrayTypeUint8Array`.
const UINT8_ARRAY: c_uint = 3;
/// `kJSTypedArrayTypeNone`.
const NO_TYPED_ARRAY: c_uint = 10;

impl Context {
    /// `undefined`.
    pub(crate) fn undefined(&self) -> Local<'_> {
        // SAFETY: the table, one thread; the context is alive.
        let raw = unsafe { (self.table().JSValueMakeUndefined)(self.raw()) };
        Local::new(self, raw).expect("undefined is a value")
    }

    /// `null`.
    pub(crate) fn null(&self) -> Local<'_> {
        // SAFETY: the table, one thread; the context is alive.
        self.local(unsafe { (self.table().JSValueMakeNull)(self.raw()) })
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, value: bool) -> Local<'_> {
        // SAFETY: the table, one thread; the context is alive.
        self.local(unsafe { (self.table().JSValueMakeBoolean)(self.raw(), value) })
    }

    /// A number.
    pub(crate) fn number(&self, value: f64) -> Local<'_> {
        // A NaN's payload could be read as one of the engine's own values; the canonical one cannot.
        let value = if value.is_nan() { f64::NAN } else { value };
        // SAFETY: the table, one thread; the context is alive.
        self.local(unsafe { (self.table().JSValueMakeNumber)(self.raw(), value) })
    }

    /// A string.
    pub(crate) fn string(&self, value: &EngineString) -> Local<'_> {
        // SAFETY: the table, one thread; the string outlives the call.
        self.local(unsafe { (self.table().JSValueMakeString)(self.raw(), value.raw()) })
    }

    /// A BigInt.
    pub(crate) fn big_int(&self, value: i64) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the context is alive.
        let raw = unsafe { (self.table().JSBigIntCreateWithInt64)(self.raw(), value, &raw mut exception) };
        self.outcome(raw, exception)
    }

    /// The BigInt that `BigInt(text)` makes.
    pub(crate) fn big_int_from_text(&self, text: &EngineString) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the string outlives the call.
        let raw =
            unsafe { (self.table().JSBigIntCreateWithString)(self.raw(), text.raw(), &raw mut exception) };
        self.outcome(raw, exception)
    }

    /// A `Date` of this many milliseconds.
    pub(crate) fn date(&self, milliseconds: f64) -> Result<Local<'_>, Thrown<'_>> {
        let arguments = [self.number(milliseconds)];
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the argument is a transparent value reference on this stack.
        let raw = unsafe {
            (self.table().JSObjectMakeDate)(
                self.raw(),
                arguments.len(),
                arguments.as_ptr().cast::<ValueRef>(),
                &raw mut exception,
            )
        };
        self.outcome(raw, exception)
    }

    /// A `Uint8Array` of so many zeros.
    pub(crate) fn zeros(&self, length: usize) -> Result<Local<'_>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the context is alive.
        let raw = unsafe {
            (self.table().JSObjectMakeTypedArray)(self.raw(), UINT8_ARRAY, length, &raw mut exception)
        };
        self.outcome(raw, exception)
    }

    /// A `Uint8Array` with these bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<Local<'_>, Thrown<'_>> {
        let array = self.zeros(bytes.len())?;
        self.overwrite(array, bytes)?;
        Ok(array)
    }

    /// Overwrites the beginning of a typed array that only this crate holds.
    pub(crate) fn overwrite(&self, array: Local<'_>, bytes: &[u8]) -> Result<(), Thrown<'_>> {
        if let Some(target) = self.bytes_of(array)? {
            // SAFETY: pointer and length are the engine's for this array, which is on the stack and therefore alive; no
            // call of the engine comes between, and it does not overlap Rust's slice.
            unsafe {
                ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    target.as_ptr().cast::<u8>(),
                    bytes.len().min(target.len()),
                );
            };
        }
        Ok(())
    }

    /// A copy of the bytes of a typed array that only this crate holds. (Taking the pointer of a buffer pins it for
    /// ever: the guest could see that of its own.)
    pub(crate) fn copy_bytes(&self, array: Local<'_>) -> Result<Vec<u8>, Thrown<'_>> {
        let mut bytes = Vec::new();
        self.append_bytes(array, usize::MAX, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the first `count` bytes of a typed array that only this crate holds, or all that it has.
    pub(crate) fn append_bytes(
        &self,
        array: Local<'_>,
        count: usize,
        to: &mut Vec<u8>,
    ) -> Result<(), Thrown<'_>> {
        if let Some(source) = self.bytes_of(array)? {
            // SAFETY: pointer and length are the engine's for this array, which is on the stack and therefore alive; no
            // call of the engine comes between.
            let source = unsafe { source.as_ref() };
            to.extend_from_slice(&source[..count.min(source.len())]);
        }
        Ok(())
    }

    /// A copy of the numbers of a `Float64Array` that only this crate holds. The first says how many there are, itself
    /// included.
    pub(crate) fn copy_counted_numbers(&self, array: Local<'_>) -> Result<Vec<f64>, Thrown<'_>> {
        let Some(source) = self.bytes_of(array)? else { return Ok(Vec::new()) };
        let start = source.cast::<f64>();
        if source.len() < size_of::<f64>() {
            return Ok(Vec::new());
        }
        // SAFETY: pointer and length are the engine's for this array, which is on the stack and therefore alive; there is
        // room for one number, every bit pattern is one, and a typed array's bytes are aligned for it.
        let count = unsafe { start.read() } as usize;
        let mut numbers = vec![0.0; count.min(source.len() / size_of::<f64>())];
        // SAFETY: as above, and `numbers` has room for as many as are copied; no call of the engine came between.
        unsafe { ptr::copy_nonoverlapping(start.as_ptr(), numbers.as_mut_ptr(), numbers.len()) };
        Ok(numbers)
    }

    /// How many bytes a typed array has.
    pub(crate) fn byte_length(&self, array: Local<'_>) -> Result<usize, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the array is on the stack.
        let length = unsafe {
            (self.table().JSObjectGetTypedArrayByteLength)(self.raw(), array.object(), &raw mut exception)
        };
        if exception.is_null() { Ok(length) } else { Err(Thrown(self.local(exception))) }
    }

    /// Where a typed array's bytes are until the engine's next call; `None` when there are none.
    fn bytes_of(&self, array: Local<'_>) -> Result<Option<NonNull<[u8]>>, Thrown<'_>> {
        let mut exception: ValueRef = ptr::null();
        let length = self.byte_length(array)?;
        // SAFETY: the table, one thread; the array is on the stack.
        let pointer = unsafe {
            (self.table().JSObjectGetTypedArrayBytesPtr)(self.raw(), array.object(), &raw mut exception)
        };
        if !exception.is_null() {
            return Err(Thrown(self.local(exception)));
        }
        Ok(NonNull::new(pointer.cast::<u8>())
            .filter(|_| length > 0)
            .map(|start| NonNull::slice_from_raw_parts(start, length)))
    }

    /// The value of a JSON text, or `None` when it is none. Runs no guest code.
    pub(crate) fn parse_json(&self, text: &EngineString) -> Option<Local<'_>> {
        // SAFETY: the table, one thread; the string outlives the call.
        Local::new(self, unsafe { (self.table().JSValueMakeFromJSONString)(self.raw(), text.raw()) })
    }

    /// What a value is.
    pub(crate) fn kind(&self, value: Local<'_>) -> Kind {
        // SAFETY: the table, one thread; the value is on the stack.
        match unsafe { (self.table().JSValueGetType)(self.raw(), value.raw()) } {
            1 => Kind::Null,
            2 => Kind::Boolean,
            3 => Kind::Number,
            4 => Kind::String,
            5 => Kind::Object,
            6 => Kind::Symbol,
            7 => Kind::BigInt,
            _ => Kind::Undefined,
        }
    }

    /// Whether a value is an `Array`; a proxy of one is not.
    pub(crate) fn is_array(&self, value: Local<'_>) -> bool {
        // SAFETY: the table, one thread; the value is on the stack.
        unsafe { (self.table().JSValueIsArray)(self.raw(), value.raw()) }
    }

    /// Whether a value is a `Date`.
    pub(crate) fn is_date(&self, value: Local<'_>) -> bool {
        // SAFETY: the table, one thread; the value is on the stack.
        unsafe { (self.table().JSValueIsDate)(self.raw(), value.raw()) }
    }

    /// Whether an object can be called.
    pub(crate) fn is_function(&self, object: Local<'_>) -> bool {
        // SAFETY: the table, one thread; the object is on the stack.
        unsafe { (self.table().JSObjectIsFunction)(self.raw(), object.object()) }
    }

    /// Whether an object is a proxy that has not been revoked.
    pub(crate) fn is_proxy(&self, object: Local<'_>) -> bool {
        // SAFETY: the table, one thread; the object is on the stack.
        !unsafe { (self.table().JSObjectGetProxyTarget)(object.object()) }.is_null()
    }

    /// Whether a value is an `ArrayBuffer` or a typed array. A `DataView` is not.
    pub(crate) fn has_bytes(&self, value: Local<'_>) -> bool {
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the value is on the stack.
        let kind =
            unsafe { (self.table().JSValueGetTypedArrayType)(self.raw(), value.raw(), &raw mut exception) };
        kind != NO_TYPED_ARRAY && exception.is_null()
    }

    /// The prototype that an object holds. That of a proxy is `null`; its trap is not asked.
    pub(crate) fn prototype(&self, object: Local<'_>) -> Local<'_> {
        // SAFETY: the table, one thread; the object is on the stack.
        self.local(unsafe { (self.table().JSObjectGetPrototype)(self.raw(), object.object()) })
    }

    /// A boolean's value.
    pub(crate) fn to_bool(&self, value: Local<'_>) -> bool {
        // SAFETY: the table, one thread; the value is on the stack.
        unsafe { (self.table().JSValueToBoolean)(self.raw(), value.raw()) }
    }

    /// A number's value; NaN for anything but a primitive number. (Guest code would run for an object.)
    pub(crate) fn to_number(&self, value: Local<'_>) -> f64 {
        self.number_of(value, self.kind(value))
    }

    /// As [`to_number`](Self::to_number), of a value that is known to be of this kind: asking takes as long as reading.
    pub(crate) fn number_of(&self, value: Local<'_>, kind: Kind) -> f64 {
        if kind != Kind::Number {
            return f64::NAN;
        }
        // SAFETY: the table, one thread; the value is on the stack; a primitive throws nothing.
        unsafe { (self.table().JSValueToNumber)(self.raw(), value.raw(), ptr::null_mut()) }
    }

    /// A string's or BigInt's text, or `None` for what only guest code could turn into text and where the engine has
    /// no memory for it.
    pub(crate) fn to_string(&self, value: Local<'_>) -> Option<EngineString> {
        self.string_of(value, self.kind(value))
    }

    /// As [`to_string`](Self::to_string), of a value that is known to be of this kind.
    pub(crate) fn string_of(&self, value: Local<'_>, kind: Kind) -> Option<EngineString> {
        if matches!(kind, Kind::Object | Kind::Symbol) {
            return None;
        }
        let mut exception: ValueRef = ptr::null();
        // SAFETY: the table, one thread; the value is on the stack; it is a primitive, so no guest code runs.
        let raw = unsafe { (self.table().JSValueToStringCopy)(self.raw(), value.raw(), &raw mut exception) };
        (exception.is_null() && !raw.is_null()).then(|| EngineString::owning(self.table(), raw))
    }
}
