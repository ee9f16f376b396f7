//! The items of a program: one function for each kind, and for what only it has.

use super::Parsed;
use super::cursor::Parser;
use super::tokens::Token;
use crate::program::*;

impl Parser {
    pub(super) fn program(&mut self) -> Parsed<Program> {
        let mut p = Program::default();
        self.word("weir")?;
        // In version 1 there were no numbers of calculations; all else is as in version 2.
        if !(1..=2).contains(&self.number::<u32>()?) {
            self.at -= 1;
            return self.fail("version 1 or 2 of the format");
        }
        self.word("target")?;
        p.target = self.string()?;
        while *self.peek() != Token::End {
            self.item(&mut p)?;
        }
        Ok(p)
    }

    fn item(&mut self, p: &mut Program) -> Parsed<()> {
        match self.any_word()?.as_str() {
            "pipeline" => p.pipelines.push(self.string()?),
            "file" => p.files.push(self.string()?),
            "error" => p.errors.push(self.string()?),
            "enum" => {
                let e = self.enum_type()?;
                p.enums.push(e);
            }
            "header_type" => {
                let t = self.header_type()?;
                p.header_types.push(t);
            }
            "var" => {
                let v = self.variable(p.vars.len())?;
                p.vars.push(v);
            }
            "header" => {
                let h = self.header(p.headers.len())?;
                p.headers.push(h);
            }
            "shared" => p.shared.push(self.shared()?),
            "value_set" => {
                let v = self.value_set()?;
                p.value_sets.push(v);
            }
            "action" => {
                let a = self.action()?;
                p.actions.push(a);
            }
            "extern" => {
                let x = self.extern_instance()?;
                p.externs.push(x);
            }
            "table" => {
                let t = self.table()?;
                p.tables.push(t);
            }
            "type" => {
                let name = self.string()?;
                self.punctuation('=')?;
                p.type_info.push(NamedType {
                    name,
                    spec: self.type_spec()?,
                    annotations: self.annotations()?,
                });
            }
            "main" => p.annotations = self.annotations()?,
            "block" => p.blocks.push(self.block()?),
            _ => {
                self.at -= 1;
                return self.fail("an item: pipeline, file, error, enum, header_type, var, header, shared, value_set, action, extern, table, type, main or block");
            }
        }
        Ok(())
    }

    fn enum_type(&mut self) -> Parsed<EnumType> {
        let name = self.string()?;
        self.punctuation('{')?;
        let mut members = Vec::new();
        let mut values = Vec::new();
        while !self.eat('}') {
            members.push(self.string()?);
            if self.eat('=') {
                values.push(self.bits()?);
            }
        }
        if !values.is_empty() && values.len() != members.len() {
            return self.fail("a value for each member or for none");
        }
        let values = (!values.is_empty()).then_some(values);
        Ok(EnumType { name, members, values })
    }

    fn header_type(&mut self) -> Parsed<HeaderType> {
        let name = self.string()?;
        self.punctuation('{')?;
        let fields = self.list('}', |s| {
            let name = s.string()?;
            s.punctuation(':')?;
            Ok(HeaderField {
                name,
                ty: s.ty()?,
                display: s.display()?,
                control: s.control()?,
                annotations: s.annotations()?,
            })
        })?;
        Ok(HeaderType {
            name,
            fields,
            annotations: self.annotations()?,
        })
    }

    fn variable(&mut self, expected: usize) -> Parsed<Var> {
        if self.var()?.index() != expected {
            self.at -= 1;
            return self.fail(&format!("variables in order: %{expected}"));
        }
        let name = self.string()?;
        self.punctuation(':')?;
        let (ty, display) = (self.ty()?, self.display()?);
        let kind = match self.any_word()?.as_str() {
            "shared" => VarKind::Shared,
            "local" => VarKind::Local,
            "temporary" => VarKind::Temporary,
            "field_copy" => VarKind::FieldCopy {
                valid: VarId::new(self.number::<u32>()? as usize),
            },
            "action_parameter" => VarKind::ActionParameter,
            "field" => VarKind::Field {
                header: self.id('h')?,
                index: self.number()?,
            },
            "valid" => VarKind::Valid { header: self.id('h')? },
            _ => {
                self.at -= 1;
                return self.fail("the kind of a variable");
            }
        };
        Ok(Var {
            name,
            ty,
            display,
            kind,
        })
    }

    fn header(&mut self, expected: usize) -> Parsed<Header> {
        let id: HeaderId = self.id('h')?;
        if id.index() != expected {
            self.at -= 1;
            return self.fail(&format!("headers in order: h{expected}"));
        }
        let name = self.string()?;
        self.punctuation(':')?;
        let ty = self.id('y')?;
        self.word("valid")?;
        let valid = self.var()?;
        self.word("fields")?;
        Ok(Header {
            name,
            ty,
            valid,
            fields: self.vars()?,
        })
    }

    fn shared(&mut self) -> Parsed<Shared> {
        let (role, name) = (self.string()?, self.string()?);
        self.punctuation(':')?;
        let ty = self.type_spec()?;
        self.word("headers")?;
        self.punctuation('(')?;
        let headers = self.list(')', |s| s.id('h'))?;
        self.punctuation('{')?;
        let leaves = self.list('}', |s| {
            Ok(SharedLeaf {
                var: s.var()?,
                path: s.string()?,
                annotations: s.annotations()?,
            })
        })?;
        Ok(Shared {
            role,
            name,
            leaves,
            headers,
            ty,
        })
    }

    fn keys(&mut self) -> Parsed<Vec<Key>> {
        self.punctuation('(')?;
        self.list(')', |s| {
            let name = s.string()?;
            s.punctuation(':')?;
            let width = s.number()?;
            let Some(match_kind) = MatchKind::from_name(&s.any_word()?) else {
                s.at -= 1;
                return s.fail("a match kind");
            };
            Ok(Key {
                name,
                width,
                match_kind,
                own_kind: s.optional_string(),
                display: s.display()?,
                control: s.control()?,
                annotations: s.annotations()?,
                loc: s.loc()?,
            })
        })
    }

    fn value_set(&mut self) -> Parsed<ValueSet> {
        let name = self.string()?;
        self.word("size")?;
        let size = self.number()?;
        Ok(ValueSet {
            name,
            size,
            fields: self.keys()?,
            annotations: self.annotations()?,
            loc: self.loc()?,
        })
    }

    fn action(&mut self) -> Parsed<Action> {
        let name = self.string()?;
        self.punctuation('(')?;
        let parameters = self.list(')', |s| {
            let name = s.string()?;
            s.punctuation(':')?;
            Ok(ActionParameter {
                name,
                width: s.number()?,
                display: s.display()?,
                control: s.control()?,
                annotations: s.annotations()?,
            })
        })?;
        Ok(Action {
            name,
            parameters,
            annotations: self.annotations()?,
            loc: self.loc()?,
        })
    }

    fn extern_instance(&mut self) -> Parsed<ExternInstance> {
        let (name, type_name) = (self.string()?, self.string()?);
        self.punctuation('<')?;
        let type_arguments = self.list('>', Self::type_spec)?;
        self.punctuation('(')?;
        let arguments = self.list(')', |s| {
            let name = s.string()?;
            s.punctuation('=')?;
            Ok((name, s.const_value()?))
        })?;
        let annotations = self.annotations()?;
        let loc = self.loc()?;
        self.punctuation('{')?;
        let methods = self.list('}', |s| {
            s.word("method")?;
            let name = s.string()?;
            let closure = if s.eat_word("closure") { s.number()? } else { 0 };
            s.punctuation('(')?;
            let parameters = s.list(')', |s| Ok((s.string()?, s.vars()?)))?;
            s.word("results")?;
            let results = s.vars()?;
            s.punctuation('{')?;
            Ok(Method {
                name,
                closure,
                parameters,
                results,
                body: s.body()?,
            })
        })?;
        Ok(ExternInstance {
            name,
            type_name,
            type_arguments,
            arguments,
            methods,
            annotations,
            loc,
        })
    }

    fn action_call(&mut self) -> Parsed<ActionCall> {
        let action = self.number()?;
        self.punctuation('(')?;
        Ok(ActionCall {
            action,
            arguments: self.list(')', Self::bits)?,
        })
    }

    fn table(&mut self) -> Parsed<Table> {
        let name = self.string()?;
        let annotations = self.annotations()?;
        let loc = self.loc()?;
        let mut t = Table {
            annotations,
            loc,
            ..Table::new(name)
        };
        self.punctuation('{')?;
        while !self.eat('}') {
            self.table_item(&mut t)?;
        }
        Ok(t)
    }

    fn table_item(&mut self, t: &mut Table) -> Parsed<()> {
        let is_const = self.eat_word("const");
        match self.any_word()?.as_str() {
            "key" => t.keys = self.keys()?,
            "action" => {
                let action = self.id('a')?;
                let parameters = self.vars()?;
                let (default_only, table_only) = (self.eat_word("default_only"), self.eat_word("table_only"));
                let mut executes = Vec::new();
                while self.eat_word("executes") {
                    executes.push(self.id('x')?);
                }
                t.actions.push(TableAction {
                    action,
                    parameters,
                    default_only,
                    table_only,
                    executes,
                    annotations: self.annotations()?,
                });
            }
            "default" => {
                t.default_action = self.action_call()?;
                t.const_default = is_const;
            }
            "size" => t.size = Some(self.number()?),
            "implementation" => t.implementation = Some(self.id('x')?),
            "direct" => t.direct.push(self.id('x')?),
            "idle_timeout" => t.idle_timeout = true,
            "const_entries" => t.const_entries = true,
            "property" => {
                let name = self.string()?;
                self.punctuation('=')?;
                t.properties.push((name, self.const_value()?));
            }
            "entry" => {
                let priority = self.number()?;
                self.punctuation('(')?;
                let matches = self.list(')', Self::key_match)?;
                let action = self.action_call()?;
                t.entries.push(Entry {
                    matches,
                    action,
                    priority,
                    is_const,
                    annotations: self.annotations()?,
                    loc: self.loc()?,
                });
            }
            _ => {
                self.at -= 1;
                return self.fail("a part of a table");
            }
        }
        Ok(())
    }

    fn key_match(&mut self) -> Parsed<KeyMatch> {
        Ok(match self.any_word()?.as_str() {
            "exact" => KeyMatch::Exact(self.bits()?),
            "lpm" => KeyMatch::Lpm {
                value: self.bits()?,
                prefix_length: self.number()?,
            },
            "ternary" => KeyMatch::Ternary {
                value: self.bits()?,
                mask: self.bits()?,
            },
            "range" => KeyMatch::Range {
                low: self.bits()?,
                high: self.bits()?,
            },
            "optional" => KeyMatch::Optional(if self.eat_word("_") { None } else { Some(self.bits()?) }),
            _ => {
                self.at -= 1;
                return self.fail("a match");
            }
        })
    }
}
