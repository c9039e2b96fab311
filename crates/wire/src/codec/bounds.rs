//! How long the parts of a message may be that are under no [`Budget`](crate::Budget).
//!
//! Both directions enforce them. They are generous for honest peers; what they bound is how much memory one frame
//! of a dishonest one can take.

/// A script's source, in bytes of WTF-8.
pub const SOURCE_BYTES: usize = 64 << 20;

/// A script's name, a build or an engine's library, in bytes.
pub const NAME_BYTES: usize = 4 << 10;

/// The name of a bound function or of the object that holds it, in bytes.
pub const BINDING_NAME_BYTES: usize = 1 << 10;

/// Bindings in one `Bind`; more go into several.
pub const BINDINGS: usize = 4096;

/// A WebAssembly module, in bytes.
pub const WASM_BYTES: usize = SOURCE_BYTES;

/// Imports of a WebAssembly module, and as many exports.
pub const WASM_ENTRIES: usize = 4096;

/// The name of something that a WebAssembly module imports or exports, in bytes.
pub const WASM_NAME_BYTES: usize = 1 << 10;

/// Parameters of a function that a WebAssembly module exports.
pub const WASM_PARAMETERS: usize = 1000;

/// Functions in one `Release`; more go into several.
pub const RELEASED: usize = 4096;

/// Unhandled rejections in one `Done`; of more, the first are kept. Each is bounded like an error that another leads to,
/// and leads to none.
pub const UNHANDLED: usize = 8;

/// An error's name, in bytes; longer ones are cut.
pub const ERROR_NAME_BYTES: usize = 4 << 10;

/// An error's message or its stack's text, in bytes; longer ones are cut.
pub const ERROR_TEXT_BYTES: usize = 1 << 20;

/// Frames of an error's stack; of more, the innermost are kept.
pub const FRAMES: usize = 256;

/// Properties that an error carries; of more, the first are kept.
pub const ERROR_PROPERTIES: usize = 64;

/// The name of a property that an error carries, in bytes; those of longer names are left out.
pub const ERROR_PROPERTY_NAME_BYTES: usize = 256;

/// How far an error's causes go, and aggregates in one another; what lies deeper is left out.
pub const ERROR_DEPTH: usize = 8;

/// The errors of an `AggregateError`; of more, the first are kept.
pub const AGGREGATED: usize = 16;

/// Errors that one error leads to, through causes and aggregates together; of more, the first are kept.
pub const RELATED_ERRORS: usize = 32;

/// As [`ERROR_TEXT_BYTES`], of an error that another one leads to.
pub const RELATED_TEXT_BYTES: usize = 16 << 10;

/// As [`FRAMES`], of an error that another one leads to.
pub const RELATED_FRAMES: usize = 16;

/// As [`ERROR_NAME_BYTES`] and [`FRAME_NAME_BYTES`], of an error that another one leads to.
pub const RELATED_NAME_BYTES: usize = 1 << 10;

/// The function or the file of a stack's frame, in bytes; longer ones are cut.
pub const FRAME_NAME_BYTES: usize = 4 << 10;

/// One line of the guest's console, in bytes; longer ones are cut.
pub const CONSOLE_BYTES: usize = 1 << 20;

/// Layers of a sandbox report.
pub const LAYERS: usize = 32;

/// A sentence for a person, such as what a layer found or why a value cannot cross, in bytes; longer ones are cut.
pub const SENTENCE_BYTES: usize = 16 << 10;
