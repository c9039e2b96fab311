//! TypeScript and `using` made into JavaScript that the engine knows. The text is printed anew.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Decorator, Program, TSExportAssignment, TSExternalModuleReference, VariableDeclaration};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_span::SourceType;
use oxc_transformer::{
    DecoratorOptions, ES2026Options, EnvOptions, HelperLoaderMode, HelperLoaderOptions, Module,
    TransformOptions, Transformer,
};

use crate::error::{ErrorKind, TransformError};
use crate::parse::{self, Place};
use crate::position::{Position, PositionMap, Segment, SegmentKind};
use crate::{Decorators, Goal, Language, words};

/// The name under which the printed text has the functions that it needs; see [`crate::support`].
pub(crate) const SUPPORT: &str = "babelHelpers";

/// Indentation grows the text with the square of the nesting: beyond this one it is left out.
const MAX_INDENTED_LEVELS: usize = 64;

/// Prints a source as JavaScript that the engine knows.
pub(crate) fn lower(
    source: &str,
    language: Language,
    goal: Goal,
    decorators: Decorators,
) -> Result<(String, PositionMap), TransformError> {
    let allocator = Allocator::default();
    let source_type = match language {
        Language::JavaScript => SourceType::mjs(),
        Language::TypeScript => SourceType::ts().with_module(true),
    };
    let program = match goal {
        Goal::Module => parse::parse(&allocator, source, source_type)?,
        // A script with `await` at its top level parses only as a module, and is then strict.
        Goal::Script => match parse::parse_script(&allocator, source, source_type) {
            Err(error) if error.kind == ErrorKind::Syntax => {
                let as_module = parse::parse(&allocator, source, source_type);
                as_module.map_err(|other| if words::contains(source, "await") { other } else { error })?
            }
            parsed => parsed?,
        },
    };
    print(&allocator, program, Place::whole(source), decorators)
}

fn print<'a>(
    allocator: &'a Allocator,
    mut program: Program<'a>,
    place: Place<'_>,
    decorators: Decorators,
) -> Result<(String, PositionMap), TransformError> {
    let found = Findings::of(&program);
    if let (Some(at), Decorators::Refuse) = (found.decorator, decorators) {
        return Err(place.error(ErrorKind::Decorators, "decorators are not supported here", at));
    }
    if let Some(at) = found.common_js {
        return Err(place.unsupported(
            "`export =` and `import = require()` are not supported; use export and import",
            at,
        ));
    }
    let scoping = parse::resolve(&program, place)?;
    let options = TransformOptions {
        decorator: DecoratorOptions {
            legacy: decorators == Decorators::Legacy,
            ..DecoratorOptions::default()
        },
        env: EnvOptions {
            module: Module::Esm,
            es2026: ES2026Options { explicit_resource_management: true },
            ..EnvOptions::default()
        },
        helper_loader: HelperLoaderOptions {
            mode: HelperLoaderMode::External,
            ..HelperLoaderOptions::default()
        },
        ..TransformOptions::default()
    };
    let transformed =
        Transformer::new(allocator, Path::new(""), &options).build_with_scoping(scoping, &mut program);
    if let Some(error) = transformed.diagnostics.errors().next() {
        return Err(place.diagnostic(error));
    }
    let options = CodegenOptions {
        source_map_path: Some(Path::new("").to_path_buf()),
        indent_width: usize::from(found.deepest <= MAX_INDENTED_LEVELS),
        ..CodegenOptions::default()
    };
    let printed =
        Codegen::new().with_options(options).with_scoping(Some(transformed.scoping)).build(&program);
    let Some(map) = printed.map else {
        return Err(place.error(ErrorKind::Internal, "the printer left no positions", 0));
    };
    let position = |line: u32, column: u32| Position { line: line + 1, column: column + 1 };
    let mut segments: Vec<_> = map
        .get_tokens()
        .map(|token| Segment {
            output: position(token.get_dst_line(), token.get_dst_col()),
            source: position(token.get_src_line(), token.get_src_col()),
            kind: SegmentKind::Made,
        })
        .collect();
    segments.sort_by_key(|segment| segment.output);
    Ok((printed.code, PositionMap::of(segments)))
}

/// What a program has in it that decides how it is printed.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) decorator: Option<u32>,
    pub(crate) using: bool,
    common_js: Option<u32>,
    depth: usize,
    deepest: usize,
}

impl Findings {
    pub(crate) fn of(program: &Program<'_>) -> Self {
        let mut findings = Self::default();
        findings.visit_program(program);
        findings
    }
}

impl<'a> Visit<'a> for Findings {
    fn enter_node(&mut self, _: oxc_ast::AstKind<'a>) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn leave_node(&mut self, _: oxc_ast::AstKind<'a>) {
        self.depth -= 1;
    }

    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.decorator.get_or_insert(decorator.span.start);
        walk::walk_decorator(self, decorator);
    }

    fn visit_ts_export_assignment(&mut self, export: &TSExportAssignment<'a>) {
        self.common_js.get_or_insert(export.span.start);
        walk::walk_ts_export_assignment(self, export);
    }

    fn visit_ts_external_module_reference(&mut self, reference: &TSExternalModuleReference<'a>) {
        self.common_js.get_or_insert(reference.span.start);
        walk::walk_ts_external_module_reference(self, reference);
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        self.using |= declaration.kind.is_using();
        walk::walk_variable_declaration(self, declaration);
    }
}
