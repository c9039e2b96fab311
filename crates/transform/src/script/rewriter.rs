//! The edits of a script: declarations, values of statements, constants, `import()`.

use std::collections::HashSet;

use oxc_allocator::ArenaVec;
use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentTargetPropertyIdentifier, BindingPattern, Class, Directive,
    ExpressionStatement, ForInStatement, ForOfStatement, ForStatement, ForStatementInit, ForStatementLeft,
    Function, IdentifierReference, ImportExpression, ObjectProperty, Statement, StaticBlock,
    StaticMemberExpression, TryStatement, VariableDeclaration, VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_ecmascript::BoundNames;
use oxc_semantic::{ScopeFlags, Scoping, SymbolId};
use oxc_span::GetSpan;

use crate::edits::Edits;
use crate::error::TransformError;
use crate::parse::Place;
use crate::{ScriptOptions, support};

pub(super) enum Mode {
    /// Declarations stay where they are.
    Plain,
    /// Declarations become assignments, and statements leave their value in a variable.
    Asynchronous { value: String },
}

/// Makes the edits of a script.
pub(super) struct Rewriter<'s, 'o> {
    pub(super) edits: Edits<'s>,
    place: Place<'s>,
    options: &'o ScriptOptions<'o>,
    scoping: Option<&'o Scoping>,
    mode: Mode,
    pub(super) error: Option<TransformError>,
    /// Names of `var`, in the order of the source.
    pub(super) variables: Vec<String>,
    /// Names of `let`, `const` and `class` at the top level.
    pub(super) lexical: Vec<String>,
    /// Function declarations at the top level.
    pub(super) functions: Vec<(usize, usize)>,
    constants: HashSet<SymbolId>,
    /// Where the last statement of a list begins.
    listed_at: usize,
    /// Functions around the place.
    functions_around: usize,
    /// `finally` blocks around the place, whose statements leave no value.
    finally: usize,
}

impl<'s, 'o> Rewriter<'s, 'o> {
    pub(super) fn new(
        source: &'s str,
        place: Place<'s>,
        options: &'o ScriptOptions<'o>,
        scoping: Option<&'o Scoping>,
        mode: Mode,
    ) -> Self {
        Self {
            edits: Edits::new(source),
            place,
            options,
            scoping,
            mode,
            error: None,
            variables: Vec::new(),
            lexical: Vec::new(),
            functions: Vec::new(),
            constants: HashSet::new(),
            listed_at: usize::MAX,
            functions_around: 0,
            finally: 0,
        }
    }

    const fn is_asynchronous(&self) -> bool {
        matches!(self.mode, Mode::Asynchronous { .. })
    }

    /// Whether declarations of the top level are changed.
    const fn redeclares(&self) -> bool {
        self.options.redeclare || self.is_asynchronous()
    }

    fn start(&self, node: &impl GetSpan) -> usize {
        self.place.offset(node.span().start)
    }

    fn end(&self, node: &impl GetSpan) -> usize {
        self.place.offset(node.span().end)
    }

    /// The constants of the top level: they are no longer declared as such.
    pub(super) fn declare(&mut self, statements: &[Statement<'_>]) {
        if !self.redeclares() {
            return;
        }
        for statement in statements {
            if let Statement::VariableDeclaration(declaration) = statement
                && declaration.kind == VariableDeclarationKind::Const
            {
                declaration.bound_names(&mut |name| self.constants.extend(name.symbol_id.get()));
            }
        }
    }

    pub(super) fn statements<'a>(&mut self, directives: &[Directive<'a>], statements: &[Statement<'a>]) {
        if let Mode::Asynchronous { value } = &self.mode {
            let at = directives.last().map_or(0, |directive| self.place.offset(directive.span.end));
            // After a directive without a semicolon it ends that.
            let text = if directives.is_empty() { format!("let {value};") } else { format!(";let {value};") };
            self.edits.insert(at, text);
        }
        for statement in statements {
            self.listed(statement);
            match statement {
                Statement::VariableDeclaration(declaration)
                    if declaration.kind.is_lexical() && self.redeclares() =>
                {
                    self.lexical_declaration(declaration);
                }
                Statement::ClassDeclaration(class) if self.redeclares() => self.class_declaration(class),
                Statement::FunctionDeclaration(function) if self.is_asynchronous() => {
                    let range = (self.start(&**function), self.end(&**function));
                    self.edits.take_out(range.0, range.1);
                    self.functions.push(range);
                    self.visit_function(function, ScopeFlags::Function);
                }
                _ => self.visit_statement(statement),
            }
        }
    }

    /// A statement of a list: what leaves a value even if nothing in it runs begins with none.
    fn listed(&mut self, statement: &Statement<'_>) {
        self.listed_at = self.start(statement);
        let Mode::Asynchronous { value } = &self.mode else { return };
        if self.functions_around > 0 || self.finally > 0 {
            return;
        }
        let mut statement = statement;
        while let Statement::LabeledStatement(labeled) = statement {
            statement = &labeled.body;
        }
        if matches!(
            statement,
            Statement::IfStatement(_)
                | Statement::ForStatement(_)
                | Statement::ForInStatement(_)
                | Statement::ForOfStatement(_)
                | Statement::WhileStatement(_)
                | Statement::DoWhileStatement(_)
                | Statement::SwitchStatement(_)
                | Statement::TryStatement(_)
                | Statement::WithStatement(_)
        ) {
            let text = format!("{value}=void 0;");
            self.edits.insert(self.listed_at, text);
        }
    }

    /// `let`, `const` of the top level.
    fn lexical_declaration(&mut self, declaration: &VariableDeclaration<'_>) {
        if self.is_asynchronous() {
            declaration.bound_names(&mut |name| self.lexical.push(name.name.to_string()));
            self.assignments(declaration, true);
            self.terminate(declaration);
            return;
        }
        let start = self.start(declaration);
        self.edits.replace(start, start + declaration.kind.as_str().len(), "var");
        for declarator in &declaration.declarations {
            if declarator.init.is_none() {
                let end = self.end(&declarator.id);
                self.edits.insert(end, "=void 0");
            }
        }
        walk::walk_variable_declaration(self, declaration);
        self.terminate(declaration);
    }

    /// Ends a statement that the end of its line ended: with what it has become, the next line could go on.
    fn terminate(&mut self, statement: &impl GetSpan) {
        let end = self.end(statement);
        if !self.edits.source()[..end].ends_with(';') {
            self.edits.insert(end, ";");
        }
    }

    fn class_declaration(&mut self, class: &Class<'_>) {
        if let Some(name) = &class.id {
            let start = self.start(class);
            if self.is_asynchronous() {
                self.lexical.push(name.name.to_string());
                self.edits.insert(start, format!("{}=", name.name));
            } else {
                self.edits.insert(start, format!("var {}=", name.name));
            }
        }
        walk::walk_class(self, class);
        let end = self.end(class);
        self.edits.insert(end, ";");
    }

    /// Makes a declaration a list of assignments. `reset` says that a name without a value gets none.
    fn assignments(&mut self, declaration: &VariableDeclaration<'_>, reset: bool) {
        let start = self.start(declaration);
        let keyword = start + declaration.kind.as_str().len();
        let first = declaration.declarations.first();
        // A pattern at the beginning of a statement would be taken for a block, or for what follows the line before.
        let listed = self.listed_at == start;
        let opening = match first.map(|declarator| &declarator.id) {
            Some(BindingPattern::ObjectPattern(_)) if listed => ";(",
            Some(BindingPattern::ObjectPattern(_)) => "(",
            Some(BindingPattern::ArrayPattern(_)) if listed => ";",
            _ => "",
        };
        self.edits.replace(start, keyword, opening);
        for (index, declarator) in declaration.declarations.iter().enumerate() {
            let object = matches!(declarator.id, BindingPattern::ObjectPattern(_));
            if object && index > 0 {
                let start = self.start(&declarator.id);
                self.edits.insert(start, "(");
            }
            let end = self.end(&declarator.id);
            if declarator.init.is_some() {
                self.visit_variable_declarator(declarator);
            } else if reset {
                self.edits.insert(end, "=void 0");
            } else {
                let start = self.start(&declarator.id);
                self.edits.replace(start, end, "0");
            }
            if object {
                let end = self.end(declarator);
                self.edits.insert(end, ")");
            }
        }
    }

    /// The head of `for (var x of y)` and the like, without `var`.
    fn for_head(&mut self, declaration: &VariableDeclaration<'_>) {
        self.collect_variables(declaration);
        let start = self.start(declaration);
        self.edits.remove(start, start + "var".len());
        if let [declarator] = declaration.declarations.as_slice() {
            if declarator.init.is_some() {
                let error = self
                    .place
                    .unsupported("a for-in loop cannot give its variable a value", declaration.span.start);
                self.error.get_or_insert(error);
            }
            self.visit_binding_pattern(&declarator.id);
            // Words that would begin another kind of loop.
            if let BindingPattern::BindingIdentifier(name) = &declarator.id
                && matches!(name.name.as_str(), "async" | "let")
            {
                let (start, end) = (self.start(&**name), self.end(&**name));
                self.edits.insert(start, "(");
                self.edits.insert(end, ")");
            }
        }
    }

    fn collect_variables(&mut self, declaration: &VariableDeclaration<'_>) {
        declaration.bound_names(&mut |name| {
            if !self.variables.iter().any(|known| known == name.name.as_str()) {
                self.variables.push(name.name.to_string());
            }
        });
    }

    /// Whether this is a `var` that belongs to the script, which is a function now.
    fn hoists(&self, declaration: &VariableDeclaration<'_>) -> bool {
        self.is_asynchronous() && self.functions_around == 0 && declaration.kind.is_var()
    }

    fn is_constant_written(&self, name: &IdentifierReference<'_>) -> bool {
        let (Some(scoping), Some(reference)) = (self.scoping, name.reference_id.get()) else { return false };
        let reference = scoping.get_reference(reference);
        reference.is_write() && reference.symbol_id().is_some_and(|symbol| self.constants.contains(&symbol))
            // In a class, whose code is strict, these are no names.
            && !STRICT_ONLY.contains(&name.name.as_str())
    }

    fn guarded(name: &str) -> String {
        format!("new class{{get x(){{return {name}}}set x(v){{const x=0;x=v}}}}().x")
    }
}

const STRICT_ONLY: [&str; 9] =
    ["implements", "interface", "let", "package", "private", "protected", "public", "static", "yield"];

impl<'a> Visit<'a> for Rewriter<'_, '_> {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.functions_around += 1;
        walk::walk_function(self, function, flags);
        self.functions_around -= 1;
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.functions_around += 1;
        walk::walk_arrow_function_expression(self, arrow);
        self.functions_around -= 1;
    }

    fn visit_static_block(&mut self, block: &StaticBlock<'a>) {
        self.functions_around += 1;
        walk::walk_static_block(self, block);
        self.functions_around -= 1;
    }

    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        for statement in statements {
            self.listed(statement);
            self.visit_statement(statement);
        }
    }

    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        let value = match &self.mode {
            Mode::Asynchronous { value } if self.functions_around == 0 && self.finally == 0 => {
                Some(value.clone())
            }
            _ => None,
        };
        let (start, end) = (self.start(&statement.expression), self.end(&statement.expression));
        if let Some(value) = &value {
            self.edits.insert(start, format!("{value}=("));
        }
        walk::walk_expression_statement(self, statement);
        if value.is_some() {
            self.edits.insert(end, ")");
            self.terminate(statement);
        }
    }

    fn visit_try_statement(&mut self, statement: &TryStatement<'a>) {
        self.visit_block_statement(&statement.block);
        if let Some(handler) = &statement.handler {
            self.visit_catch_clause(handler);
        }
        if let Some(finalizer) = &statement.finalizer {
            self.finally += 1;
            self.visit_block_statement(finalizer);
            self.finally -= 1;
        }
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        if self.hoists(declaration) {
            self.collect_variables(declaration);
            self.assignments(declaration, false);
            self.terminate(declaration);
        } else {
            walk::walk_variable_declaration(self, declaration);
        }
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        if let Some(ForStatementInit::VariableDeclaration(declaration)) = &statement.init
            && self.hoists(declaration)
        {
            self.collect_variables(declaration);
            self.assignments(declaration, false);
            if let Some(test) = &statement.test {
                self.visit_expression(test);
            }
            if let Some(update) = &statement.update {
                self.visit_expression(update);
            }
            self.visit_statement(&statement.body);
        } else {
            walk::walk_for_statement(self, statement);
        }
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        match &statement.left {
            ForStatementLeft::VariableDeclaration(declaration) if self.hoists(declaration) => {
                self.for_head(declaration);
            }
            left => self.visit_for_statement_left(left),
        }
        self.visit_expression(&statement.right);
        self.visit_statement(&statement.body);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        match &statement.left {
            ForStatementLeft::VariableDeclaration(declaration) if self.hoists(declaration) => {
                self.for_head(declaration);
            }
            left => self.visit_for_statement_left(left),
        }
        self.visit_expression(&statement.right);
        self.visit_statement(&statement.body);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if let Some(function) = self.options.import_function {
            let start = self.start(import);
            self.edits.replace(start, start + "import".len(), function);
            if import.phase.is_some() {
                let error =
                    self.place.unsupported("imports with a phase are not supported", import.span.start);
                self.error.get_or_insert(error);
            }
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        match support::text(member) {
            Some(text) => {
                let (start, end) = (self.start(member), self.end(member));
                self.edits.replace(start, end, text);
            }
            None => walk::walk_static_member_expression(self, member),
        }
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        if self.is_constant_written(name) {
            let (start, end) = (self.start(name), self.end(name));
            self.edits.replace(start, end, Self::guarded(&name.name));
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        property: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        if self.is_constant_written(&property.binding) {
            let start = self.start(&property.binding);
            self.edits.insert(start, format!("{}:", property.binding.name));
        }
        walk::walk_assignment_target_property_identifier(self, property);
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        // The key of a shorthand is no reference of its own.
        if property.shorthand {
            self.visit_expression(&property.value);
        } else {
            walk::walk_object_property(self, property);
        }
    }
}
