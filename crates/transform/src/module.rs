//! Modules as functions over a record; see [`Module`] for the protocol.

mod references;

use std::collections::{HashMap, HashSet};

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Declaration, ExportAllDeclaration, ExportDeclaration, ExportDefaultDeclaration,
    ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration, Expression,
    IdentifierReference, ImportAttributeKey, ImportDeclaration, ImportDeclarationSpecifier, ModuleExportName,
    Program, Statement, StringLiteral, WithClause, WithClauseKeyword,
};
use oxc_ast_visit::Visit;
use oxc_ecmascript::BoundNames;
use oxc_semantic::{ScopeFlags, Scoping, SymbolId};
use oxc_span::{GetSpan, SourceType};

use crate::edits::Edits;
use crate::error::{ErrorKind, TransformError};
use crate::lower;
use crate::names::FreshNames;
use crate::parse::{self, Place};
use crate::position::{Lines, Position};
use crate::record::{Export, ExportedAs, Import, ImportedName, Module, Request};
use crate::{Goal, Language, ModuleOptions, words};

/// Makes a function of a module.
pub(crate) fn transform(source: &str, options: &ModuleOptions) -> Result<Module, TransformError> {
    let print = options.language == Language::TypeScript || uses_using(source);
    if !print {
        return transform_javascript(source);
    }
    let (text, map) = lower::lower(source, options.language, Goal::Module, options.decorators)?;
    let mut module =
        transform_javascript(&text).map_err(|error| crate::script::after_printing(error, &map))?;
    for position in module.positions_mut() {
        *position = map.original(*position);
    }
    module.map = module.map.after(map);
    Ok(module)
}

fn uses_using(source: &str) -> bool {
    words::contains(source, "using") && {
        let allocator = Allocator::default();
        parse::parse(&allocator, source, SourceType::mjs())
            .is_ok_and(|program| lower::Findings::of(&program).using)
    }
}

fn transform_javascript(source: &str) -> Result<Module, TransformError> {
    let allocator = Allocator::default();
    let program = parse::parse(&allocator, source, SourceType::mjs())?;
    let scoping = parse::resolve(&program, Place::whole(source))?;
    let mut names = FreshNames::beside(source, &scoping);
    let (record, imports, default) = (names.name('m'), names.name('i'), names.name('d'));
    let mut rewriter = Rewriter {
        edits: Edits::new(source),
        lines: Lines::new(source),
        scoping: &scoping,
        record,
        imports_name: imports,
        default,
        requests: Vec::new(),
        imports: Vec::new(),
        exports: Vec::new(),
        getters: Vec::new(),
        exported: HashSet::new(),
        imported: HashMap::new(),
        called: HashSet::new(),
        listed: HashSet::new(),
        default_function: None,
        asynchronous: false,
        functions_around: 0,
        error: None,
    };
    rewriter.program(&program);
    rewriter.finish()
}

struct Rewriter<'s, 'p> {
    edits: Edits<'s>,
    lines: Lines<'s>,
    scoping: &'p Scoping,
    /// The parameter that is the record.
    record: String,
    /// The parameter that has the imports.
    imports_name: String,
    /// The variable that has the default export.
    default: String,
    requests: Vec<Request>,
    imports: Vec<Import>,
    exports: Vec<Export>,
    /// Exported name and what reads it.
    getters: Vec<(String, String)>,
    exported: HashSet<String>,
    /// The import that a symbol is.
    imported: HashMap<SymbolId, usize>,
    /// Where names begin that are called, or tag a template.
    called: HashSet<u32>,
    /// Where expressions begin that begin a statement of a list.
    listed: HashSet<u32>,
    /// An anonymous function that is the default export.
    default_function: Option<(usize, usize)>,
    asynchronous: bool,
    functions_around: usize,
    error: Option<TransformError>,
}

impl Rewriter<'_, '_> {
    fn program(&mut self, program: &Program<'_>) {
        if let Some(hashbang) = &program.hashbang {
            self.edits.remove(hashbang.span.start as usize, hashbang.span.end as usize);
        }
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(import) => self.import(import),
                Statement::ExportFromDeclaration(export) => {
                    self.request(&export.source, export.with_clause.as_deref());
                }
                Statement::ExportAllDeclaration(export) => {
                    self.request(&export.source, export.with_clause.as_deref());
                }
                _ => {}
            }
        }
        self.visit_statements(&program.body);
    }

    fn finish(self) -> Result<Module, TransformError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (record, imports_name) = (&self.record, &self.imports_name);
        let mut output = self.edits.output();
        let function = if self.asynchronous { "async function*" } else { "function*" };
        let mut start =
            format!("({function}({record},{imports_name}){{\"use strict\";{record}.define({{__proto__:null");
        for (name, value) in &self.getters {
            start.push_str(&format!(",{}:()=>{value}", property_key(name)));
        }
        start.push_str("});");
        output.push(&start, 0);
        if let Some((start, end)) = self.default_function {
            output.push(&format!("const {}={{default:", self.default), start);
            output.push_range(start, end);
            output.push("}.default;", end);
        }
        output.push("yield;", 0);
        output.push_rest();
        output.push("\n})", usize::MAX);
        let (text, map) = output.finish();
        Ok(Module {
            text,
            map,
            requests: self.requests,
            imports: self.imports,
            exports: self.exports,
            asynchronous: self.asynchronous,
        })
    }

    fn position(&self, node: &impl GetSpan) -> Position {
        self.lines.position(node.span().start as usize)
    }

    fn fail(&mut self, kind: ErrorKind, message: impl Into<String>, node: &impl GetSpan) {
        if self.error.is_none() {
            self.error = Some(TransformError::new(kind, message, self.position(node)));
        }
    }

    /// Leaves an empty statement, which ends the line before as the declaration did.
    fn drop_statement(&mut self, node: &impl GetSpan) {
        self.edits.replace(node.span().start as usize, node.span().end as usize, ";");
    }

    fn text(&mut self, literal: &StringLiteral<'_>) -> String {
        if literal.lone_surrogates {
            self.fail(ErrorKind::Syntax, "a name of a module is no well-formed text", literal);
        }
        literal.value.to_string()
    }

    fn export_name(&mut self, name: &ModuleExportName<'_>) -> String {
        match name {
            ModuleExportName::IdentifierName(name) => name.name.to_string(),
            ModuleExportName::IdentifierReference(name) => name.name.to_string(),
            ModuleExportName::StringLiteral(literal) => self.text(literal),
        }
    }

    /// The index of a request; one for each pair of specifier and attributes.
    fn request(&mut self, source: &StringLiteral<'_>, with: Option<&WithClause<'_>>) -> usize {
        let specifier = self.text(source);
        if let Some(with) = with
            && with.keyword == WithClauseKeyword::Assert
        {
            // The parser takes it; the language has given it up, and the engine does not know it.
            self.fail(ErrorKind::Syntax, "import attributes begin with `with` and not with `assert`", with);
        }
        let mut attributes = Vec::new();
        for attribute in with.iter().flat_map(|with| &with.with_entries) {
            let key = match &attribute.key {
                ImportAttributeKey::Identifier(name) => name.name.to_string(),
                ImportAttributeKey::StringLiteral(literal) => self.text(literal),
            };
            if attributes.iter().any(|(known, _)| *known == key) {
                self.fail(
                    ErrorKind::Syntax,
                    format!("the import attribute '{key}' is there twice"),
                    attribute,
                );
            }
            let value = self.text(&attribute.value);
            attributes.push((key, value));
        }
        // Their order says nothing.
        attributes.sort();
        let known = self
            .requests
            .iter()
            .position(|known| known.specifier == specifier && known.attributes == attributes);
        known.unwrap_or_else(|| {
            let position = self.position(source);
            self.requests.push(Request { specifier, attributes, position });
            self.requests.len() - 1
        })
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) {
        if import.phase.is_some() {
            self.fail(ErrorKind::Unsupported, "imports with a phase are not supported", import);
        }
        let request = self.request(&import.source, import.with_clause.as_deref());
        for specifier in import.specifiers.iter().flatten() {
            let (local, name) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(specifier) => {
                    (&specifier.local, ImportedName::Name(self.export_name(&specifier.imported)))
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(specifier) => {
                    (&specifier.local, ImportedName::Name("default".to_owned()))
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(specifier) => {
                    (&specifier.local, ImportedName::Namespace)
                }
            };
            if let Some(symbol) = local.symbol_id.get() {
                self.imported.insert(symbol, self.imports.len());
            }
            let position = self.position(specifier);
            self.imports.push(Import { local: local.name.to_string(), request, name, position });
        }
    }

    fn export(&mut self, name: String, exported_as: ExportedAs, node: &impl GetSpan) {
        if !self.exported.insert(name.clone()) {
            self.fail(ErrorKind::Syntax, format!("the name '{name}' is exported twice"), node);
        }
        let position = self.position(node);
        self.exports.push(Export { name: Some(name), exported_as, position });
    }

    /// An export of a variable of this module.
    fn export_local(&mut self, name: String, variable: &str, node: &impl GetSpan) {
        self.getters.push((name.clone(), variable.to_owned()));
        self.export(name, ExportedAs::Local, node);
    }

    fn import_of(&self, name: &IdentifierReference<'_>) -> Option<&Import> {
        let symbol = self.scoping.get_reference(name.reference_id.get()?).symbol_id()?;
        self.imported.get(&symbol).map(|&index| &self.imports[index])
    }

    fn mark_called(&mut self, callee: &Expression<'_>) {
        if let Expression::Identifier(name) = callee.without_parentheses() {
            self.called.insert(name.span.start);
        }
    }

    fn export_from(&mut self, export: &ExportFromDeclaration<'_>) {
        let request = self.request(&export.source, export.with_clause.as_deref());
        for specifier in &export.specifiers {
            let name = ImportedName::Name(self.export_name(&specifier.local));
            let exported = self.export_name(&specifier.exported);
            self.export(exported, ExportedAs::Indirect { request, name }, specifier);
        }
        self.drop_statement(export);
    }

    fn export_declaration(&mut self, export: &ExportDeclaration<'_>) {
        let mut names = Vec::new();
        match &export.declaration {
            Declaration::VariableDeclaration(declaration) => {
                declaration.bound_names(&mut |name| names.push((name.name.to_string(), name.span)));
            }
            Declaration::FunctionDeclaration(function) => {
                names.extend(function.id.iter().map(|name| (name.name.to_string(), name.span)));
            }
            Declaration::ClassDeclaration(class) => {
                names.extend(class.id.iter().map(|name| (name.name.to_string(), name.span)));
            }
            _ => self.fail(ErrorKind::Unsupported, "this declaration cannot be exported", export),
        }
        for (name, span) in names {
            self.export_local(name.clone(), &name, &span);
        }
        self.edits.remove(export.span.start as usize, export.declaration.span().start as usize);
        self.visit_declaration(&export.declaration);
    }

    fn named_export(&mut self, export: &ExportNamedDeclaration<'_>) {
        for specifier in &export.specifiers {
            let exported = self.export_name(&specifier.exported);
            let ModuleExportName::IdentifierReference(local) = &specifier.local else {
                self.fail(ErrorKind::Syntax, "what is exported must be a variable", specifier);
                continue;
            };
            if let Some(import) = self.import_of(local) {
                let (request, name) = (import.request, import.name.clone());
                self.export(exported, ExportedAs::Indirect { request, name }, specifier);
            } else if self.scoping.get_root_binding(local.name).is_some() {
                self.export_local(exported, &local.name, specifier);
            } else {
                let message = format!("there is no variable '{}' to export", local.name);
                self.fail(ErrorKind::Syntax, message, specifier);
            }
        }
        self.drop_statement(export);
    }

    fn default_export(&mut self, export: &ExportDefaultDeclaration<'_>) {
        let (start, end) = (export.span.start as usize, export.span.end as usize);
        let value = export.declaration.span();
        let (value_start, value_end) = (value.start as usize, value.end as usize);
        let name = "default".to_owned();
        let variable = self.default.clone();
        match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                if let Some(id) = &function.id {
                    self.export_local(name, &id.name, export);
                    self.edits.remove(start, value_start);
                } else {
                    self.export_local(name, &variable, export);
                    self.edits.remove(start, value_start);
                    self.edits.take_out(value_start, value_end);
                    self.default_function = Some((value_start, value_end));
                }
                self.visit_function(function, ScopeFlags::Function);
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                if let Some(id) = &class.id {
                    self.export_local(name, &id.name, export);
                    self.edits.remove(start, value_start);
                    self.visit_class(class);
                } else {
                    self.export_local(name, &variable, export);
                    self.edits.replace(start, value_start, format!("const {variable}={{default:"));
                    self.visit_class(class);
                    self.edits.insert(value_end, "}.default;");
                }
            }
            declaration => {
                let Some(expression) = declaration.as_expression() else {
                    self.fail(ErrorKind::Unsupported, "this declaration cannot be exported", export);
                    return;
                };
                self.export_local(name, &variable, export);
                // A function without a name gets the one of the property that it is the value of.
                let (before, after) =
                    if is_anonymous_function(expression) { ("{default:", "}.default;") } else { ("(", ");") };
                self.edits.replace(start, value_start, format!("const {variable}={before}"));
                self.visit_expression(expression);
                self.edits.replace(value_end, end, after);
            }
        }
    }

    fn star_export(&mut self, export: &ExportAllDeclaration<'_>) {
        let request = self.request(&export.source, export.with_clause.as_deref());
        if let Some(name) = &export.exported {
            let exported = self.export_name(name);
            self.export(exported, ExportedAs::Indirect { request, name: ImportedName::Namespace }, name);
        } else {
            let position = self.position(export);
            self.exports.push(Export { name: None, exported_as: ExportedAs::Star { request }, position });
        }
        self.drop_statement(export);
    }
}

fn is_anonymous_function(expression: &Expression<'_>) -> bool {
    match expression.without_parentheses() {
        Expression::ArrowFunctionExpression(_) => true,
        Expression::FunctionExpression(function) => function.id.is_none(),
        Expression::ClassExpression(class) => class.id.is_none(),
        _ => false,
    }
}

/// A key of an object literal that is nothing but a key.
fn property_key(name: &str) -> String {
    let plain = !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '$'));
    if plain && !name.is_empty() && name != "__proto__" {
        return name.to_owned();
    }
    let mut key = String::from("[\"");
    for character in name.chars() {
        match character {
            '"' | '\\' => key.extend(['\\', character]),
            '\0'..='\x1f' | '\u{2028}' | '\u{2029}' => key.push_str(&format!("\\u{:04x}", character as u32)),
            _ => key.push(character),
        }
    }
    key + "\"]"
}
