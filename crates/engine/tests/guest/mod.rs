//! An isolate, and short ways to evaluate in it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::time::Duration;

use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions};
use pydeno_wire::message::{Failure, HostError, JsError};
use pydeno_wire::{Text, Value};

/// A host function that does not ask on whose behalf it is called.
pub type Plain = Box<dyn Fn(Vec<Value>) -> Result<Value, HostError>>;

pub struct Guest(pub Isolate);

impl Guest {
    pub fn new() -> Self {
        let engine = Engine::load().expect("the tests need JavaScriptCore");
        Self(Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made"))
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

    /// Whether the isolate still works.
    pub fn still_answers(&self) -> bool {
        self.eval("1 + 1") == Ok(number(2.0))
    }
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
