//! The edits inside a module: uses of imports, `import.meta`, `import()`, and what only a script would take for a comment.

use oxc_allocator::ArenaVec;
use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentTargetPropertyIdentifier, AwaitExpression, BinaryExpression,
    BinaryOperator, CallExpression, ExportAllDeclaration, ExportDeclaration, ExportDefaultDeclaration,
    ExportFromDeclaration, ExportNamedDeclaration, Expression, ForOfStatement, Function, IdentifierReference,
    ImportDeclaration, ImportExpression, ImportMeta, ObjectProperty, Statement, StaticBlock,
    StaticMemberExpression, TaggedTemplateExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::ScopeFlags;
use oxc_span::GetSpan;

use super::Rewriter;
use crate::error::ErrorKind;
use crate::support;

impl<'a> Visit<'a> for Rewriter<'_, '_> {
    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        for statement in statements {
            if let Statement::ExpressionStatement(statement) = statement {
                self.listed.insert(statement.expression.span().start);
            }
            self.visit_statement(statement);
        }
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.drop_statement(import);
    }

    fn visit_export_named_declaration(&mut self, export: &ExportNamedDeclaration<'a>) {
        self.named_export(export);
    }

    fn visit_export_declaration(&mut self, export: &ExportDeclaration<'a>) {
        self.export_declaration(export);
    }

    fn visit_export_from_declaration(&mut self, export: &ExportFromDeclaration<'a>) {
        self.export_from(export);
    }

    fn visit_export_default_declaration(&mut self, export: &ExportDefaultDeclaration<'a>) {
        self.default_export(export);
    }

    fn visit_export_all_declaration(&mut self, export: &ExportAllDeclaration<'a>) {
        self.star_export(export);
    }

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

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.asynchronous |= self.functions_around == 0;
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.asynchronous |= statement.r#await && self.functions_around == 0;
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.mark_called(&call.callee);
        walk::walk_call_expression(self, call);
    }

    fn visit_tagged_template_expression(&mut self, template: &TaggedTemplateExpression<'a>) {
        self.mark_called(&template.tag);
        walk::walk_tagged_template_expression(self, template);
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        let Some(import) = self.import_of(name) else { return };
        let read = format!("{}.{}", self.imports_name, import.local);
        let (start, end) = (name.span.start, name.span.end);
        let text = match (self.called.contains(&start), self.listed.contains(&start)) {
            (false, _) => read,
            // The parenthesis would go on with the line before.
            (true, true) => format!(";(0,{read})"),
            (true, false) => format!("(0,{read})"),
        };
        self.edits.replace(start as usize, end as usize, text);
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        if !property.shorthand {
            walk::walk_object_property(self, property);
        } else if let Expression::Identifier(name) = &property.value {
            if self.import_of(name).is_some() {
                let key = match &self.edits.source()[name.span.start as usize..name.span.end as usize] {
                    // With a colon it would say what the prototype is.
                    _ if name.name == "__proto__" => "[\"__proto__\"]",
                    key => key,
                };
                let key = format!("{key}:");
                self.edits.insert(name.span.start as usize, key);
            }
            self.visit_identifier_reference(name);
        } else {
            self.visit_expression(&property.value);
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        property: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        if self.import_of(&property.binding).is_some() {
            self.edits.insert(property.binding.span.start as usize, format!("{}:", property.binding.name));
        }
        walk::walk_assignment_target_property_identifier(self, property);
    }

    fn visit_import_meta(&mut self, meta: &ImportMeta) {
        let text = format!("{}.meta", self.record);
        self.edits.replace(meta.span.start as usize, meta.span.end as usize, text);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if import.phase.is_some() {
            self.fail(ErrorKind::Unsupported, "imports with a phase are not supported", import);
        }
        let start = import.span.start as usize;
        self.edits.replace(start, start + "import".len(), format!("{}.import", self.record));
        walk::walk_import_expression(self, import);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        match support::text(member) {
            Some(text) => self.edits.replace(member.span.start as usize, member.span.end as usize, text),
            None => walk::walk_static_member_expression(self, member),
        }
    }

    fn visit_binary_expression(&mut self, expression: &BinaryExpression<'a>) {
        let right = expression.right.span().start as usize;
        let source = self.edits.source();
        // In a script this begins a comment.
        if expression.operator == BinaryOperator::LessThan
            && source[..right].ends_with('<')
            && source[right..].starts_with("!--")
        {
            self.edits.insert(right, " ");
        }
        walk::walk_binary_expression(self, expression);
    }
}
