//! Header types and header instances.

use super::Lowerer;
use super::value::Place;
use crate::types::{Ty, TyKind};
use std::rc::Rc;
use weir_ir::{FLEXIBLE_PADDING, HeaderField, HeaderId, HeaderTypeId, Type, Var, VarId, VarKind};

impl Lowerer<'_, '_> {
    pub(super) fn header_type(&mut self, ty: Ty) -> HeaderTypeId {
        if let Some(&id) = self.header_types.get(&ty) {
            return id;
        }
        let TyKind::Struct(def, arguments) = self.kind(ty) else {
            return HeaderTypeId::new(0);
        };
        let mut fields = Vec::new();
        self.header_fields("", ty, &[], &mut fields);
        if self.checked.has_flexible_fields(def)
            && let Some(padding) = padding_to_bytes(&fields)
        {
            fields.push(padding);
        }
        let name = self.checked.show(ty);
        let name = name.strip_prefix("header ").unwrap_or(&name).to_string();
        let annotations = self.checked.defs[def.0 as usize].annotations;
        let annotations = self.annotations(annotations);
        let _ = arguments;
        let id = self.program.header_types.push(weir_ir::HeaderType {
            name,
            fields,
            annotations,
        });
        self.header_types.insert(ty, id);
        id
    }

    /// The fields of a header, structs and arrays in it taken apart.
    fn header_fields(&mut self, prefix: &str, ty: Ty, inherited: &[weir_ir::Annotation], to: &mut Vec<HeaderField>) {
        match self.kind(ty) {
            TyKind::Struct(def, arguments) => {
                for (index, (name, field)) in self.checked.fields_of(def, &arguments).into_iter().enumerate() {
                    let path = if prefix.is_empty() {
                        name.to_string()
                    } else {
                        format!("{prefix}.{name}")
                    };
                    let annotations = self.field_annotations(def, index);
                    self.header_fields(&path, field, &annotations, to);
                }
            }
            TyKind::Stack(element, n) => {
                for i in 0..n {
                    self.header_fields(&format!("{prefix}[{i}]"), element, inherited, to);
                }
            }
            _ => {
                let field_type = match self.kind(ty) {
                    TyKind::Varbit(w) => Type::Varbit(w),
                    _ => Type::Bits(self.scalar_width(ty).unwrap_or(0)),
                };
                let display = self.display(ty);
                let control = self.control_type(ty);
                to.push(HeaderField {
                    name: prefix.to_string(),
                    ty: field_type,
                    display,
                    control,
                    annotations: inherited.to_vec(),
                });
            }
        }
    }

    /// What the packet has in place of a header's padding is lost, so that equal headers are the
    /// same bytes.
    pub(super) fn clear_padding(&mut self, header: HeaderId) {
        let header = &self.program.headers[header];
        let fields = &self.program.header_types[header.ty].fields;
        if fields.last().is_some_and(|f| f.name == FLEXIBLE_PADDING)
            && let Some(&var) = header.fields.last()
        {
            let width = self.program.vars[var].ty.width();
            self.set(var, super::constant(width, 0));
        }
    }

    pub(super) fn new_header(&mut self, name: &str, ty: Ty) -> Place {
        let header_type = self.header_type(ty);
        let id = HeaderId::new(self.program.headers.len());
        let valid = self.program.vars.push(Var {
            name: format!("{name}.$valid$"),
            ty: Type::Bits(1),
            display: weir_ir::Display::Bool,
            kind: VarKind::Valid { header: id },
        });
        self.program.headers.push(weir_ir::Header {
            name: name.to_string(),
            ty: header_type,
            valid,
            fields: Vec::new(),
        });
        let mut vars = Vec::new();
        let tree = self.header_tree(name, ty, id, &mut vars);
        if let Some(padding) = self.program.header_types[header_type].fields.get(vars.len()) {
            let padding = Var {
                name: format!("{name}.{}", padding.name),
                ty: padding.ty,
                display: padding.display,
                kind: VarKind::Field {
                    header: id,
                    index: vars.len() as u32,
                },
            };
            vars.push(self.program.vars.push(padding));
        }
        self.program.headers[id].fields = vars;
        match tree {
            Place::Struct(fields) => Place::Header { id, fields },
            other => other,
        }
    }

    fn header_tree(&mut self, name: &str, ty: Ty, header: HeaderId, vars: &mut Vec<VarId>) -> Place {
        match self.kind(ty) {
            TyKind::Struct(def, arguments) => {
                let fields = self.checked.fields_of(def, &arguments);
                let fields = fields
                    .into_iter()
                    .map(|(n, t)| {
                        let place = self.header_tree(&format!("{name}.{n}"), t, header, vars);
                        (n, place)
                    })
                    .collect();
                Place::Struct(Rc::new(fields))
            }
            TyKind::Stack(element, n) => {
                let elements = (0..n)
                    .map(|i| self.header_tree(&format!("{name}[{i}]"), element, header, vars))
                    .collect();
                Place::Stack {
                    elements: Rc::new(elements),
                    next: None,
                }
            }
            _ => {
                let var = self.new_var(
                    name,
                    ty,
                    VarKind::Field {
                        header,
                        index: vars.len() as u32,
                    },
                );
                vars.push(var);
                Place::Var(var)
            }
        }
    }
}

/// What fills up a header with `@flexible` fields to whole bytes, if it has none: where such fields
/// lie is the compiler's
/// choice, and a packet has whole bytes. weir leaves the fields where they are and pads after
/// them.
fn padding_to_bytes(fields: &[HeaderField]) -> Option<HeaderField> {
    let fixed = fields.iter().filter(|f| matches!(f.ty, Type::Bits(_)));
    let width: u32 = fixed.map(|f| f.ty.width()).sum();
    let missing = (8 - width % 8) % 8;
    (missing > 0).then(|| HeaderField {
        name: FLEXIBLE_PADDING.into(),
        ty: Type::Bits(missing),
        display: weir_ir::Display::Unsigned,
        control: weir_ir::ControlType::default(),
        annotations: Vec::new(),
    })
}
