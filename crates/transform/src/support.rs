//! What the printed text calls, written where it is called: a script has no other place that is its own.

use oxc_ast::ast::{Expression, StaticMemberExpression};

use crate::lower::SUPPORT;

/// `usingCtx()`: an object that disposes, in the end, of what `u` and `a` were given (`using`, `await using`). `e` takes
/// what the block threw; `d` disposes, and returns a promise if anything of it is asynchronous.
const USING_CONTEXT: &str = include_str!("js/using_context.js");

/// `decorate(decorators, target, key, descriptor)`: applies decorators as TypeScript's `experimentalDecorators` does.
const DECORATE: &str = include_str!("js/decorate.js");

/// `decorateParam(index, decorator)`: a decorator of a parameter as one of its method.
const DECORATE_PARAMETER: &str = include_str!("js/decorate_parameter.js");

/// The text that stands for a member of the object [`SUPPORT`].
pub(crate) fn text(member: &StaticMemberExpression<'_>) -> Option<String> {
    let Expression::Identifier(object) = &member.object else { return None };
    if object.name != SUPPORT {
        return None;
    }
    let text = match member.property.name.as_str() {
        "usingCtx" => USING_CONTEXT,
        "decorate" => DECORATE,
        "decorateParam" => DECORATE_PARAMETER,
        _ => return None,
    };
    // One line, so that the lines after it keep their numbers. None of the functions has a line comment.
    Some(text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}
