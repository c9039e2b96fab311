//! An isolate, and short ways to evaluate in it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use pydeno_engine::{CallId, Engine, EvalLimits, Isolate, IsolateOptions, RequestId, StepLimits};
use pydeno_wire::message::{Failure, HostError, JsError, StreamRequest};
use pydeno_wire::{Stream, StreamOwner, Text, Value};

/// A host function that does not ask on whose behalf it is called.
pub type Plain = Box<dyn Fn(Vec<Value>) -> Result<Value, HostError>>;

/// The isolate, and the last number of a call.
pub struct Guest(pub Isolate, Rc<Cell<CallId>>);

/// The calls of an asynchronous function.
#[derive(Clone, Default)]
pub struct Calls {
    pub noted: Rc<RefCell<Vec<Noted>>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    pub id: CallId,
    pub request: RequestId,
    pub arguments: Vec<Value>,
}

impl Calls {
    pub fn len(&self) -> usize {
        self.noted.borrow().len()
    }

    /// The number of the call at this place.
    pub fn id(&self, index: usize) -> CallId {
        self.noted.borrow()[index].id
    }
}

impl Guest {
    pub fn new() -> Self {
        let engine = Engine::load().expect("the tests need JavaScriptCore");
        let isolate = Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made");
        Self::of(isolate)
    }

    pub fn of(isolate: Isolate) -> Self {
        Self(isolate, Rc::default())
    }

    pub fn eval(&self, source: &str) -> Result<Value, Failure> {
        self.0.eval(&Text::from(source), "test.js", &EvalLimits::default())
    }

    pub fn within(&self, timeout: Duration, source: &str) -> Result<Value, Failure> {
        let limits = EvalLimits { timeout, ..EvalLimits::default() };
        self.0.eval(&Text::from(source), "test.js", &limits)
    }

    pub fn value(&self, source: &str) -> Value {
        self.eval(source).unwrap_or_else(|failure| panic!("{source}\nfailed: {failure:?}"))
    }

    pub fn error(&self, source: &str) -> JsError {
        match self.eval(source) {
            Err(Failure::Js(error)) => error,
            other => panic!("{source}\nthrew nothing: {other:?}"),
        }
    }

    /// Path and reason of a refused conversion.
    pub fn refused(&self, source: &str) -> (String, String) {
        match self.eval(source) {
            Err(Failure::Conversion { path, reason }) => (path, reason),
            other => panic!("{source}\nwas converted: {other:?}"),
        }
    }

    pub fn bind(&self, name: &str, function: Plain) {
        let function = Box::new(move |_, arguments| function(arguments));
        self.0.bind(None, &Text::from(name), function).expect("a new name can be bound");
    }

    /// Binds an asynchronous function that only notes its calls.
    pub fn bind_async(&self, name: &str) -> Calls {
        let calls = Calls::default();
        let (noted, ids) = (Rc::clone(&calls.noted), Rc::clone(&self.1));
        let start = move |request, arguments| {
            ids.set(ids.get() + 1);
            noted.borrow_mut().push(Noted { id: ids.get(), request, arguments });
            Ok(ids.get())
        };
        self.0.bind_async(None, &Text::from(name), Box::new(start)).expect("a new name can be bound");
        calls
    }

    pub fn begin(&self, request: RequestId, source: &str) {
        self.begin_within(Duration::from_secs(60), request, source);
    }

    pub fn begin_within(&self, timeout: Duration, request: RequestId, source: &str) {
        let limits = EvalLimits { timeout, ..EvalLimits::default() };
        self.0.begin_eval(request, &Text::from(source), "test.js", &limits);
    }

    pub fn invoke(&self, request: RequestId, function: &Value, arguments: &[Value]) {
        let Value::Function(function) = function else { panic!("not a function: {function:?}") };
        self.0.begin_invoke(request, function.handle, arguments, &EvalLimits::default());
    }

    /// Invokes a function that need not wait.
    pub fn call(&self, function: &Value, arguments: &[Value]) -> Result<Value, Failure> {
        self.invoke(u64::MAX, function, arguments);
        let (request, outcome) = self.ended();
        assert_eq!(request, u64::MAX);
        outcome
    }

    pub fn begin_pull(&self, request: RequestId, stream: &Value, what: StreamRequest) {
        self.0.begin_pull(request, handle_of(stream), what, &EvalLimits::default());
    }

    /// Asks a stream that need not wait.
    pub fn ask(&self, stream: &Value, what: StreamRequest) -> Result<Value, Failure> {
        self.begin_pull(u64::MAX, stream, what);
        let (request, outcome) = self.ended();
        assert_eq!(request, u64::MAX);
        outcome
    }

    pub fn next(&self, stream: &Value) -> Result<Value, Failure> {
        self.ask(stream, StreamRequest::Next)
    }

    /// Lets streams of the host cross, with a function that only notes what they are asked.
    pub fn host_streams(&self) -> Calls {
        let calls = Calls::default();
        let (noted, ids) = (Rc::clone(&calls.noted), Rc::clone(&self.1));
        self.0.set_host_streams(Box::new(move |request, arguments| {
            ids.set(ids.get() + 1);
            noted.borrow_mut().push(Noted { id: ids.get(), request, arguments });
            Ok(ids.get())
        }));
        calls
    }

    pub fn settle(&self, call: CallId, value: Value) {
        self.0.settle(call, Ok(value), &StepLimits::default());
    }

    pub fn reject(&self, call: CallId, message: &str) {
        let error = HostError { name: "Error".into(), message: message.into() };
        self.0.settle(call, Err(error), &StepLimits::default());
    }

    /// The next request that has ended, which left no rejection unhandled.
    pub fn ended(&self) -> (RequestId, Result<Value, Failure>) {
        let ended = self.0.take_ended().expect("a request has ended");
        assert_eq!(ended.unhandled, [], "{ended:?}");
        (ended.request, ended.outcome)
    }

    /// Whether the isolate still works.
    pub fn still_answers(&self) -> bool {
        self.eval("1 + 1") == Ok(number(2.0))
    }
}

pub fn handle_of(stream: &Value) -> u64 {
    match stream {
        Value::Stream(Stream { handle, owner: StreamOwner::Guest }) => *handle,
        other => panic!("not a stream of the guest: {other:?}"),
    }
}

pub fn stream_of_host(handle: u64) -> Value {
    Value::Stream(Stream { handle, owner: StreamOwner::Host })
}

pub fn number(value: f64) -> Value {
    Value::Number(value)
}

pub fn string(value: &str) -> Value {
    Value::String(value.into())
}

pub fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    Value::Object(properties.into_iter().map(|(key, value)| (key.into(), value)).collect())
}
