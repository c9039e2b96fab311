//! What a guest finds: its tools by name, and the way to the catalog.

use std::collections::HashMap;

use pydeno_wire::{Text, Value};

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: Text,
    /// How often a session may call it.
    pub max_calls: Option<u64>,
}

/// The tools of a session.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    /// The global object that holds what is declared, or `None` for globals.
    pub namespace: Option<Text>,
    /// Every tool; the first `declared` are functions of the guest.
    pub tools: Vec<Tool>,
    /// How many of them the guest finds as functions of their own.
    pub declared: usize,
    /// Whether the guest finds `search_tools`, `describe_tool` and `call_tool`.
    pub has_catalog: bool,
}

/// What a function of the guest stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Tool(usize),
    Search,
    Describe,
    CallTool,
}

const CATALOG: [(&str, Function); 3] = [
    ("search_tools", Function::Search),
    ("describe_tool", Function::Describe),
    ("call_tool", Function::CallTool),
];

impl Surface {
    /// The names to bind, in the order of their numbers.
    pub(crate) fn names(&self) -> Vec<Text> {
        let tools = self.tools[..self.declared].iter().map(|tool| tool.name.clone());
        let catalog = CATALOG.iter().filter(|_| self.has_catalog).map(|&(name, _)| Text::from(name));
        tools.chain(catalog).collect()
    }

    /// What the function with this number stands for.
    pub(crate) fn function(&self, number: u32) -> Option<Function> {
        let number = number as usize;
        if number < self.declared {
            return Some(Function::Tool(number));
        }
        CATALOG.get(number - self.declared).filter(|_| self.has_catalog).map(|&(_, function)| function)
    }

    /// The numbers of the tools by name.
    pub(crate) fn by_name(&self) -> HashMap<Text, usize> {
        self.tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect()
    }
}

/// Whether a function or stream of the guest is anywhere in a value. The depth of what a worker sends is bounded.
pub(crate) fn has_function(value: &Value) -> bool {
    match value {
        Value::Function(_) | Value::Stream(_) => true,
        Value::Array(items) | Value::Set(items) => items.iter().any(has_function),
        Value::Object(entries) => entries.iter().any(|(_, value)| has_function(value)),
        Value::Map(entries) => entries.iter().any(|(key, value)| has_function(key) || has_function(value)),
        _ => false,
    }
}
