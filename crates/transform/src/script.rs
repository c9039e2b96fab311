//! Scripts: top-level `await`, names that can be declared again, `import()`.
//!
//! A script with top-level `await` becomes an async arrow function that is called, after the declarations of the names
//! that later scripts are to see:
//!
//! ```text
//! const x = await f()            let x;(async()=>{let $v;x = await f()
//! function g() { return x }      ;
//! g() + 1                        $v=(g() + 1)
//!                                ;return{__proto__:null,value:$v}})();function g() { return x }
//! ```
//!
//! Functions are taken out of the arrow function, after it: there they are hoisted and take no line from the script.

mod rewriter;

use std::borrow::Cow;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, AwaitExpression, ForOfStatement, Function, Program,
    ReturnStatement, StaticBlock,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::ScopeFlags;
use oxc_span::SourceType;

use crate::error::{ErrorKind, TransformError};
use crate::lower;
use crate::names::FreshNames;
use crate::parse::{self, BODY_START, Place};
use crate::position::PositionMap;
use crate::{Completion, Goal, Language, Script, ScriptOptions, words};

use rewriter::{Mode, Rewriter};

/// Makes a script of a source in which something may need work.
pub(crate) fn transform<'s>(
    source: &'s str,
    options: &ScriptOptions<'_>,
) -> Result<Script<'s>, TransformError> {
    if options.language == Language::TypeScript || uses_using(source) {
        let (text, map) = lower::lower(source, options.language, Goal::Script, options.decorators)?;
        let script =
            transform_javascript(&text, options, true).map_err(|error| after_printing(error, &map))?;
        let map = script.map.after(map);
        return Ok(Script { text: Cow::Owned(script.text.into_owned()), completion: script.completion, map });
    }
    transform_javascript(source, options, false)
}

/// An error in a text that was printed anew, as one of the author's.
pub(crate) fn after_printing(error: TransformError, map: &PositionMap) -> TransformError {
    TransformError { position: map.original(error.position), ..error }
}

fn uses_using(source: &str) -> bool {
    words::contains(source, "using") && {
        let allocator = Allocator::default();
        [SourceType::mjs().with_script(true), SourceType::mjs()]
            .into_iter()
            .find_map(|source_type| parse::parse(&allocator, source, source_type).ok())
            .is_some_and(|program| lower::Findings::of(&program).using)
    }
}

fn transform_javascript<'s>(
    source: &'s str,
    options: &ScriptOptions<'_>,
    printed: bool,
) -> Result<Script<'s>, TransformError> {
    let allocator = Allocator::default();
    let mut complaint = None;
    if words::contains(source, "await") {
        let text = parse::body_text(source);
        match parse::parse_body(&allocator, &text, source) {
            Ok(program) => match asynchronous(source, &program, options) {
                Ok(Some(script)) => return Ok(script),
                Ok(None) => {}
                Err(error) => {
                    // Inside a function the declarations of a module are no syntax at all.
                    let as_script = parse::parse_script(&allocator, source, SourceType::cjs()).err();
                    return Err(as_script
                        .filter(|error| error.kind == ErrorKind::ModuleSyntax)
                        .unwrap_or(error));
                }
            },
            Err(error) => complaint = Some(error),
        }
    }
    let unchanged = || Script {
        text: Cow::Borrowed(source),
        completion: Completion::Value,
        map: PositionMap::identity(),
    };
    match parse::parse_script(&allocator, source, SourceType::cjs()) {
        Ok(program) => Ok(plain(source, &program, options, printed)?.unwrap_or_else(unchanged)),
        Err(error) => match complaint {
            _ if error.kind != ErrorKind::Syntax || options.redeclare || printed => Err(error),
            // As a module it is parsed without a function around it, of which the author knows nothing.
            Some(complaint) => {
                Err(parse::parse(&allocator, source, SourceType::mjs()).err().unwrap_or(complaint))
            }
            // The engine says better than this what is wrong, if anything is.
            None => Ok(unchanged()),
        },
    }
}

/// A script without top-level `await`; `None` where nothing has to change.
fn plain<'s>(
    source: &'s str,
    program: &Program<'_>,
    options: &ScriptOptions<'_>,
    printed: bool,
) -> Result<Option<Script<'s>>, TransformError> {
    let place = Place::whole(source);
    let scoping = if options.redeclare { Some(parse::resolve(program, place)?) } else { None };
    let mut rewriter = Rewriter::new(source, place, options, scoping.as_ref(), Mode::Plain);
    rewriter.declare(&program.body);
    rewriter.statements(&program.directives, &program.body);
    let Rewriter { edits, error, .. } = rewriter;
    if let Some(error) = error {
        return Err(error);
    }
    // What was changed is not left to the engine: its complaint would be about another text.
    if scoping.is_none() && (printed || !edits.is_empty()) {
        parse::resolve(program, place)?;
    }
    if edits.is_empty() {
        return Ok(None);
    }
    let mut output = edits.output();
    output.push_rest();
    let (text, map) = output.finish();
    Ok(Some(Script { text: Cow::Owned(text), completion: Completion::Value, map }))
}

/// A script with top-level `await`; `None` where there is none.
fn asynchronous<'s>(
    source: &'s str,
    program: &Program<'_>,
    options: &ScriptOptions<'_>,
) -> Result<Option<Script<'s>>, TransformError> {
    let place = Place { source, before: BODY_START.len() };
    let Some(ArrowFunctionBody::FunctionBody(body)) = parse::body_of(program).map(|arrow| &arrow.body) else {
        return Ok(None);
    };
    let mut awaits = Awaits::default();
    awaits.visit_statements(&body.statements);
    if !awaits.found {
        return Ok(None);
    }
    if let Some(at) = awaits.returns {
        return Err(place.error(ErrorKind::Syntax, "a `return` statement can only be in a function", at));
    }
    let scoping = parse::resolve(program, place)?;
    let value = FreshNames::beside(source, &scoping).name('v');
    let mut rewriter =
        Rewriter::new(source, place, options, Some(&scoping), Mode::Asynchronous { value: value.clone() });
    if let Some(rest) = source.strip_prefix("#!") {
        let end = rest.find(['\n', '\r', '\u{2028}', '\u{2029}']).map_or(source.len(), |end| end + 2);
        rewriter.edits.remove(0, end);
    }
    rewriter.declare(&body.statements);
    rewriter.statements(&body.directives, &body.statements);
    let Rewriter { edits, error, variables, lexical, functions, .. } = rewriter;
    if let Some(error) = error {
        return Err(error);
    }
    let mut output = edits.output();
    if body.directives.iter().any(|directive| directive.directive == "use strict") {
        output.push("\"use strict\";", 0);
    }
    for (keyword, names) in [("var", variables), (if options.redeclare { "var" } else { "let" }, lexical)] {
        if !names.is_empty() {
            output.push(&format!("{keyword} {};", names.join(",")), 0);
        }
    }
    output.push(BODY_START, 0);
    output.push_rest();
    output.push(&format!("\n;return{{__proto__:null,value:{value}}}}})();"), source.len());
    for (start, end) in functions {
        output.push_range(start, end);
        output.push("\n", end);
    }
    let (text, map) = output.finish();
    Ok(Some(Script { text: Cow::Owned(text), completion: Completion::Promise, map }))
}

/// Whether there is an `await` outside of every function, and a `return`.
#[derive(Default)]
struct Awaits {
    found: bool,
    returns: Option<u32>,
}

impl<'a> Visit<'a> for Awaits {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_static_block(&mut self, _: &StaticBlock<'a>) {}

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.found = true;
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.found |= statement.r#await;
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        self.returns.get_or_insert(statement.span.start);
        walk::walk_return_statement(self, statement);
    }
}
