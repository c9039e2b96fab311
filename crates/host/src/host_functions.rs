//! What a runtime needs from the code that embeds it.

use pydeno_wire::Text;
use pydeno_wire::Value;
use pydeno_wire::message::{ConsoleLevel, HostError, JsError};

/// The host's side of a guest's calls.
pub trait HostFunctions {
    /// Calls a synchronous host function for a request; the guest stands still. Functions of the guest may be invoked meanwhile, on
    /// the same thread.
    ///
    /// # Errors
    ///
    /// The inner error is thrown into the guest. [`Interrupted`] ends the evaluation.
    fn call(
        &mut self,
        request: u64,
        function: u32,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, HostError>, Interrupted>;

    /// Starts an asynchronous host function for a request. The guest goes on; [`Runtime::answer`](crate::Runtime::answer) is called
    /// once with this `call`, unless it is given up before.
    fn start(&mut self, request: u64, call: u64, function: u32, arguments: Vec<Value>);

    /// Takes back the oldest call of a stream of the host's that [`start`](Self::start) was told of and that nobody has begun
    /// to answer: its request, its number and its arguments. A blocking evaluation has it answered by
    /// [`call`](Self::call) when the guest has nothing left to run. Without one, as for whoever has no streams, such a
    /// call is never answered.
    fn take_stream_call(&mut self) -> Option<(u64, u64, Vec<Value>)> {
        None
    }

    /// Takes a line that the guest wrote to its console.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] ends a blocking evaluation.
    fn console(&mut self, level: ConsoleLevel, text: Text) -> Result<(), Interrupted>;

    /// Takes the reason of a promise that was rejected and that nothing handled.
    ///
    /// # Errors
    ///
    /// As [`console`](Self::console), where the evaluation has not ended with it.
    fn unhandled_rejection(&mut self, error: JsError) -> Result<(), Interrupted>;

    /// Asked now and then during a long wait.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] ends the evaluation.
    fn check_interrupt(&mut self) -> Result<(), Interrupted>;
}

/// The embedding code wants the evaluation stopped; it knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;
