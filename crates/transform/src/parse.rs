//! Parsing, and the parser's complaints as errors with positions of the source.

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, Expression, JSXElement, JSXFragment, Program, Statement,
};
use oxc_ast_visit::Visit;
use oxc_diagnostics::{Diagnostics, OxcDiagnostic};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{GetSpan, LabeledSpan, SourceType};

use crate::error::{ErrorKind, TransformError};
use crate::position::Lines;
use crate::words;

/// Parses a script. One that would parse as a module, and has its declarations, is an error of its own kind.
pub(crate) fn parse_script<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    source_type: SourceType,
) -> Result<Program<'a>, TransformError> {
    let parsed = parse(allocator, source, source_type.with_script(true));
    let declaration = match &parsed {
        Ok(program) => module_declaration(program),
        Err(_) if MODULE_WORDS.iter().any(|word| words::contains(source, word)) => {
            let allocator = Allocator::default();
            let module = parse(&allocator, source, source_type.with_module(true));
            module.ok().and_then(|program| module_declaration(&program))
        }
        Err(_) => None,
    };
    match declaration {
        None => parsed,
        Some(at) => Err(Place::whole(source).error(
            ErrorKind::ModuleSyntax,
            "import and export declarations are for modules; a script can use import()",
            at,
        )),
    }
}

const MODULE_WORDS: [&str; 2] = ["import", "export"];

fn module_declaration(program: &Program<'_>) -> Option<u32> {
    program
        .body
        .iter()
        .find(|statement| statement.is_module_declaration())
        .map(|statement| statement.span().start)
}

/// What stands around a script that may use `await`: an arrow function, so that `this` and sloppy mode stay.
pub(crate) const BODY_START: &str = "(async()=>{";
const BODY_END: &str = "\n})";

/// A text as the parser gets it, and how much of it stands before the source.
#[derive(Clone, Copy)]
pub(crate) struct Place<'t> {
    /// The source.
    pub(crate) source: &'t str,
    /// Bytes before it.
    pub(crate) before: usize,
}

impl<'t> Place<'t> {
    pub(crate) const fn whole(source: &'t str) -> Self {
        Self { source, before: 0 }
    }

    /// An offset of the parser as one of the source.
    pub(crate) const fn offset(self, offset: u32) -> usize {
        (offset as usize).saturating_sub(self.before)
    }

    pub(crate) fn error(self, kind: ErrorKind, message: impl Into<String>, offset: u32) -> TransformError {
        TransformError::new(kind, message, Lines::new(self.source).position(self.offset(offset)))
    }

    pub(crate) fn unsupported(self, message: impl Into<String>, offset: u32) -> TransformError {
        self.error(ErrorKind::Unsupported, message, offset)
    }

    fn first_error(self, diagnostics: &Diagnostics) -> Option<TransformError> {
        diagnostics.errors().min_by_key(|error| start(error)).map(|error| self.diagnostic(error))
    }

    pub(crate) fn diagnostic(self, diagnostic: &OxcDiagnostic) -> TransformError {
        let mut message = diagnostic.message.to_string();
        if let Some(help) = &diagnostic.help {
            message = format!("{message}: {help}");
        }
        self.error(ErrorKind::Syntax, message, start(diagnostic))
    }
}

/// Of several places the last: what opened the bracket, or declared the name first, is before what is wrong.
fn start(diagnostic: &OxcDiagnostic) -> u32 {
    diagnostic.labels.iter().map(LabeledSpan::offset).max().unwrap_or(0)
}

/// Parses a whole source.
pub(crate) fn parse<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    source_type: SourceType,
) -> Result<Program<'a>, TransformError> {
    parse_at(allocator, source, Place::whole(source), source_type)
}

fn parse_at<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    place: Place<'_>,
    source_type: SourceType,
) -> Result<Program<'a>, TransformError> {
    let options = ParseOptions { preserve_parens: true, ..ParseOptions::default() };
    let parsed = Parser::new(allocator, text, source_type).with_options(options).parse();
    match place.first_error(&parsed.diagnostics) {
        None if !parsed.panicked => Ok(parsed.program),
        error => Err(jsx(text, place, source_type)
            .or(error)
            .unwrap_or_else(|| place.error(ErrorKind::Internal, "the parser gave up without an error", 0))),
    }
}

/// The error for a source that would parse if JSX were allowed.
fn jsx(text: &str, place: Place<'_>, source_type: SourceType) -> Option<TransformError> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, source_type.with_jsx(true)).parse();
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return None;
    }
    let mut first = FirstJsx(None);
    first.visit_program(&parsed.program);
    first.0.map(|at| {
        place.error(
            ErrorKind::Jsx,
            "JSX is not supported; call the function that it stands for, or compile it before",
            at,
        )
    })
}

struct FirstJsx(Option<u32>);

impl<'a> Visit<'a> for FirstJsx {
    fn visit_jsx_element(&mut self, element: &JSXElement<'a>) {
        self.0.get_or_insert(element.span.start);
    }

    fn visit_jsx_fragment(&mut self, fragment: &JSXFragment<'a>) {
        self.0.get_or_insert(fragment.span.start);
    }
}

/// The text that [`parse_body`] parses: the source inside an arrow function. A hashbang becomes a comment of the same
/// length.
pub(crate) fn body_text(source: &str) -> String {
    let rest = source.strip_prefix("#!");
    let (before, rest) = rest.map_or(("", source), |rest| ("//", rest));
    [BODY_START, before, rest, BODY_END].concat()
}

/// Parses the text of [`body_text`]. The function's body is the source and nothing else.
pub(crate) fn parse_body<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    source: &str,
) -> Result<Program<'a>, TransformError> {
    let place = Place { source, before: BODY_START.len() };
    let program = parse_at(allocator, text, place, SourceType::cjs().with_script(true))?;
    // The source can close the function and open another one.
    if body_of(&program).is_some() {
        return Ok(program);
    }
    let end = first_body_end(&program).unwrap_or(BODY_START.len() as u32 + 1);
    Err(place.error(ErrorKind::Syntax, "Unexpected token `}`", end - 1))
}

/// The function around a source that [`parse_body`] parsed.
pub(crate) fn body_of<'p, 'a>(program: &'p Program<'a>) -> Option<&'p ArrowFunctionExpression<'a>> {
    let [Statement::ExpressionStatement(statement)] = program.body.as_slice() else { return None };
    let Expression::ParenthesizedExpression(parentheses) = &statement.expression else { return None };
    let Expression::ArrowFunctionExpression(arrow) = &parentheses.expression else { return None };
    let ArrowFunctionBody::FunctionBody(body) = &arrow.body else { return None };
    let end = program.source_text.len() - ")".len();
    let whole = body.span.start as usize == BODY_START.len() - 1 && body.span.end as usize == end;
    whole.then_some(arrow)
}

/// The end of the body of the first function.
fn first_body_end(program: &Program<'_>) -> Option<u32> {
    struct First(Option<u32>);
    impl<'a> Visit<'a> for First {
        fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
            self.0.get_or_insert(arrow.body.span().end);
        }
    }
    let mut first = First(None);
    first.visit_program(program);
    first.0
}

/// Resolves names, and refuses what breaks a rule that is checked before anything runs.
pub(crate) fn resolve<'a>(program: &'a Program<'a>, place: Place<'_>) -> Result<Scoping, TransformError> {
    let resolved = SemanticBuilder::new_compiler().with_enum_eval(true).build(program);
    match place.first_error(&resolved.diagnostics) {
        None => Ok(resolved.semantic.into_scoping()),
        Some(error) => Err(error),
    }
}
