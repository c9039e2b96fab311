//! The engine's functions, looked up once.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;

use super::library::Library;

/// What `JSContextRef` points to.
pub(crate) enum OpaqueContext {}
/// What `JSContextGroupRef` points to.
pub(crate) enum OpaqueGroup {}
/// What `JSValueRef` and `JSObjectRef` point to; a primitive may be encoded in the pointer itself.
pub(crate) enum OpaqueValue {}
/// What `JSStringRef` points to.
pub(crate) enum OpaqueString {}
/// What `JSScriptRef` points to.
pub(crate) enum OpaqueScript {}

pub(crate) type ContextRef = *mut OpaqueContext;
pub(crate) type GroupRef = *const OpaqueGroup;
pub(crate) type ValueRef = *const OpaqueValue;
pub(crate) type ObjectRef = *mut OpaqueValue;
pub(crate) type StringRef = *mut OpaqueString;
pub(crate) type ScriptRef = *mut OpaqueScript;

/// `JSObjectCallAsFunctionCallback`: context, function, `this`, argument count, arguments, exception.
pub(crate) type FunctionCallback =
    unsafe extern "C" fn(ContextRef, ObjectRef, ObjectRef, usize, *const ValueRef, *mut ValueRef) -> ValueRef;

/// `JSShouldTerminateCallback`: context, data.
pub(crate) type ShouldTerminateCallback = unsafe extern "C" fn(ContextRef, *mut c_void) -> bool;

/// A function that every usable engine has and this library lacks.
#[derive(Debug)]
pub(crate) struct MissingSymbol(pub(crate) &'static CStr);

impl fmt::Display for MissingSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string_lossy())
    }
}

macro_rules! table {
    (
        required { $( fn $required:ident($($in:ty),*) $(-> $out:ty)?; )* }
        optional { $( fn $optional:ident = $symbol:literal ($($opt_in:ty),*) $(-> $opt_out:ty)?; )* }
    ) => {
        /// The engine's functions under their own names. The optional ones are private to the engine or young, and
        /// each has an answer for its absence where it is used.
        #[allow(non_snake_case, reason = "the engine's own names")]
        pub(crate) struct Table {
            $( pub(crate) $required: unsafe extern "C" fn($($in),*) $(-> $out)?, )*
            $( pub(crate) $optional: Option<unsafe extern "C" fn($($opt_in),*) $(-> $opt_out)?>, )*
        }

        impl Table {
            /// Looks every function up.
            pub(crate) fn resolve(library: &Library) -> Result<Self, MissingSymbol> {
                Ok(Self {
                    $( $required: {
                        const NAME: &CStr = match CStr::from_bytes_with_nul(
                            concat!(stringify!($required), "\0").as_bytes()
                        ) {
                            Ok(name) => name,
                            Err(_) => panic!("a symbol's name has no NUL"),
                        };
                        let address = library.symbol(NAME).ok_or(MissingSymbol(NAME))?;
                        // SAFETY: the symbol of this name is a C function with this signature in the engine's
                        // headers, and the library is never unloaded.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($in),*) $(-> $out)?>(
                                address.as_ptr(),
                            )
                        }
                    }, )*
                    $( $optional: library.symbol($symbol).map(|address| {
                        // SAFETY: the symbol of this name is a function with this signature and the C calling
                        // convention in the engine's sources, and the library is never unloaded.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($opt_in),*) $(-> $opt_out)?,
                            >(address.as_ptr())
                        }
                    }), )*
                })
            }
        }
    };
}

table! {
    required {
        fn JSContextGroupCreate() -> GroupRef;
        fn JSContextGroupRelease(GroupRef);
        fn JSGlobalContextCreateInGroup(GroupRef, *mut c_void) -> ContextRef;
        fn JSGlobalContextRelease(ContextRef);
        fn JSContextGetGlobalObject(ContextRef) -> ObjectRef;
        fn JSEvaluateScript(ContextRef, StringRef, ObjectRef, StringRef, c_int, *mut ValueRef) -> ValueRef;

        fn JSStringCreateWithCharacters(*const u16, usize) -> StringRef;
        fn JSStringCreateWithUTF8CString(*const c_char) -> StringRef;
        fn JSStringRelease(StringRef);
        fn JSStringGetLength(StringRef) -> usize;
        fn JSStringGetCharactersPtr(StringRef) -> *const u16;
        fn JSStringGetUTF8CString(StringRef, *mut c_char, usize) -> usize;

        fn JSValueGetType(ContextRef, ValueRef) -> c_uint;
        fn JSValueIsArray(ContextRef, ValueRef) -> bool;
        fn JSValueIsDate(ContextRef, ValueRef) -> bool;
        fn JSValueGetTypedArrayType(ContextRef, ValueRef, *mut ValueRef) -> c_uint;
        fn JSValueMakeUndefined(ContextRef) -> ValueRef;
        fn JSValueMakeNull(ContextRef) -> ValueRef;
        fn JSValueMakeBoolean(ContextRef, bool) -> ValueRef;
        fn JSValueMakeNumber(ContextRef, f64) -> ValueRef;
        fn JSValueMakeString(ContextRef, StringRef) -> ValueRef;
        fn JSValueMakeFromJSONString(ContextRef, StringRef) -> ValueRef;
        fn JSValueToBoolean(ContextRef, ValueRef) -> bool;
        fn JSValueToNumber(ContextRef, ValueRef, *mut ValueRef) -> f64;
        fn JSValueToStringCopy(ContextRef, ValueRef, *mut ValueRef) -> StringRef;
        fn JSValueProtect(ContextRef, ValueRef);
        fn JSValueUnprotect(ContextRef, ValueRef);

        fn JSBigIntCreateWithInt64(ContextRef, i64, *mut ValueRef) -> ValueRef;
        fn JSBigIntCreateWithString(ContextRef, StringRef, *mut ValueRef) -> ValueRef;

        fn JSObjectMakeDate(ContextRef, usize, *const ValueRef, *mut ValueRef) -> ObjectRef;
        fn JSObjectMakeDeferredPromise(
            ContextRef, *mut ObjectRef, *mut ObjectRef, *mut ValueRef
        ) -> ObjectRef;
        fn JSObjectMakeFunctionWithCallback(ContextRef, StringRef, FunctionCallback) -> ObjectRef;
        fn JSObjectMakeTypedArray(ContextRef, c_uint, usize, *mut ValueRef) -> ObjectRef;
        fn JSObjectGetTypedArrayBytesPtr(ContextRef, ObjectRef, *mut ValueRef) -> *mut c_void;
        fn JSObjectGetTypedArrayByteLength(ContextRef, ObjectRef, *mut ValueRef) -> usize;
        fn JSObjectIsFunction(ContextRef, ObjectRef) -> bool;
        fn JSObjectGetPrototype(ContextRef, ObjectRef) -> ValueRef;
        fn JSObjectGetProxyTarget(ObjectRef) -> ObjectRef;
        fn JSObjectGetProperty(ContextRef, ObjectRef, StringRef, *mut ValueRef) -> ValueRef;
        fn JSObjectSetProperty(ContextRef, ObjectRef, StringRef, ValueRef, c_uint, *mut ValueRef);
        fn JSObjectGetPropertyAtIndex(ContextRef, ObjectRef, c_uint, *mut ValueRef) -> ValueRef;
        fn JSObjectSetPropertyAtIndex(ContextRef, ObjectRef, c_uint, ValueRef, *mut ValueRef);
        fn JSObjectCallAsFunction(
            ContextRef, ObjectRef, ObjectRef, usize, *const ValueRef, *mut ValueRef
        ) -> ValueRef;
        fn JSObjectCallAsConstructor(ContextRef, ObjectRef, usize, *const ValueRef, *mut ValueRef) -> ObjectRef;
    }
    optional {
        fn script_create = c"JSScriptCreateFromString" (
            GroupRef, StringRef, c_int, StringRef, *mut StringRef, *mut c_int
        ) -> ScriptRef;
        fn script_evaluate = c"JSScriptEvaluate" (ContextRef, ScriptRef, ValueRef, *mut ValueRef) -> ValueRef;
        fn script_release = c"JSScriptRelease" (ScriptRef);
        fn set_execution_time_limit = c"JSContextGroupSetExecutionTimeLimit" (
            GroupRef, f64, ShouldTerminateCallback, *mut c_void
        );
        fn clear_execution_time_limit = c"JSContextGroupClearExecutionTimeLimit" (GroupRef);
        fn set_unhandled_rejection_callback = c"JSGlobalContextSetUnhandledRejectionCallback" (
            ContextRef, ObjectRef, *mut ValueRef
        );
        fn set_eval_enabled = c"JSGlobalContextSetEvalEnabled" (ContextRef, bool, StringRef);
        fn memory_usage_statistics = c"JSGetMemoryUsageStatistics" (ContextRef) -> ObjectRef;
        fn collect_garbage_now = c"JSSynchronousGarbageCollectForDebugging" (ContextRef);
        fn configure_signal_for_gc = c"JSConfigureSignalForGC" (c_int) -> bool;
        fn fast_disable_scavenger = c"_ZN3WTF20fastDisableScavengerEv" ();
        fn set_boolean_option = c"jsc_options_set_boolean" (*const c_char, c_int) -> c_int;
        fn set_unsigned_option = c"jsc_options_set_uint" (*const c_char, c_uint) -> c_int;
    }
}
