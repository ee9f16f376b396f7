//! Annotations: those that P4Info interprets, and the others as it lists them.

use super::P4InfoError;
use rustc_hash::FxHashSet;
use weir_ir::{Annotation, AnnotationBody, AnnotationValue, Loc};
use weir_proto::p4::config::v1 as pb;

/// Annotations that have become something else in P4Info.
const CONSUMED: [&str; 4] = ["name", "id", "brief", "description"];

pub(super) fn find<'a>(list: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    list.iter().find(|a| a.name == name)
}

/// The control plane is not shown it.
pub(crate) fn is_hidden(list: &[Annotation]) -> bool {
    find(list, "hidden").is_some()
}

/// Whether `@name` is something that P4Info only lists.
fn listed(annotation: &Annotation, except: &[&str]) -> bool {
    !CONSUMED.contains(&annotation.name.as_str()) && !except.contains(&annotation.name.as_str())
}

/// `@name` and `@name(text)` as text.
pub(crate) fn texts(list: &[Annotation], except: &[&str]) -> Vec<String> {
    let listed = list.iter().filter(|a| listed(a, except));
    listed
        .filter_map(|a| match &a.body {
            AnnotationBody::Empty => Some(format!("@{}", a.name)),
            AnnotationBody::Text { text, .. } if text.is_empty() => Some(format!("@{}", a.name)),
            AnnotationBody::Text { text, .. } => Some(format!("@{}({text})", a.name)),
            AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_) => None,
        })
        .collect()
}

/// `@name[…]`
pub(super) fn structured(list: &[Annotation], except: &[&str]) -> Vec<pb::StructuredAnnotation> {
    let listed = list.iter().filter(|a| listed(a, except));
    listed
        .filter_map(|a| {
            let body = match &a.body {
                AnnotationBody::Empty | AnnotationBody::Text { .. } => return None,
                // An empty list has no body that would tell its kind.
                AnnotationBody::Expressions(values) if values.is_empty() => None,
                AnnotationBody::Expressions(values) => {
                    let expressions = values.iter().map(expression).collect();
                    Some(pb::structured_annotation::Body::ExpressionList(pb::ExpressionList {
                        expressions,
                    }))
                }
                AnnotationBody::KeyValues(pairs) => {
                    let pair = |(key, value): &(String, AnnotationValue)| pb::KeyValuePair {
                        key: key.clone(),
                        value: Some(expression(value)),
                    };
                    let kv_pairs = pairs.iter().map(pair).collect();
                    Some(pb::structured_annotation::Body::KvPairList(pb::KeyValuePairList {
                        kv_pairs,
                    }))
                }
            };
            Some(pb::StructuredAnnotation {
                name: a.name.clone(),
                body,
                source_location: None,
            })
        })
        .collect()
}

fn expression(value: &AnnotationValue) -> pb::Expression {
    let value = match value {
        AnnotationValue::String(s) => pb::expression::Value::StringValue(s.clone()),
        AnnotationValue::Int(i) => pb::expression::Value::Int64Value(*i),
        AnnotationValue::Bool(b) => pb::expression::Value::BoolValue(*b),
    };
    pb::Expression { value: Some(value) }
}

/// `@brief` and `@description`.
pub(super) fn documentation(list: &[Annotation]) -> Option<pb::Documentation> {
    let text = |name| find(list, name).and_then(string).unwrap_or_default();
    let doc = pb::Documentation {
        brief: text("brief"),
        description: text("description"),
    };
    (doc != pb::Documentation::default()).then_some(doc)
}

/// The string of `@a("…")`; several strings are one.
pub(super) fn string(annotation: &Annotation) -> Option<String> {
    match &annotation.body {
        AnnotationBody::Text { tokens, .. } if !tokens.is_empty() => {
            Some(tokens.iter().filter(|t| *t != "++").map(String::as_str).collect())
        }
        AnnotationBody::Expressions(values) => match values.as_slice() {
            [AnnotationValue::String(s)] => Some(s.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The number of `@a(n)`.
pub(super) fn number(annotation: &Annotation) -> Option<u64> {
    match &annotation.body {
        AnnotationBody::Text { tokens, .. } => match tokens.as_slice() {
            [token] => integer(token),
            _ => None,
        },
        AnnotationBody::Expressions(values) => match values.as_slice() {
            [AnnotationValue::Int(n)] => u64::try_from(*n).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// An integer literal as P4 writes it, its width ignored.
fn integer(token: &str) -> Option<u64> {
    let digits: String = token
        .chars()
        .filter(|&c| c != '_')
        .collect::<String>()
        .to_ascii_lowercase();
    let digits = match digits.split_once(['w', 's']) {
        Some((width, rest)) if width.chars().all(|c| c.is_ascii_digit()) => rest,
        _ => &digits,
    };
    match digits.get(..2) {
        Some("0x") => u64::from_str_radix(&digits[2..], 16).ok(),
        Some("0b") => u64::from_str_radix(&digits[2..], 2).ok(),
        Some("0o") => u64::from_str_radix(&digits[2..], 8).ok(),
        Some("0d") => digits[2..].parse().ok(),
        _ => digits.parse().ok(),
    }
}

/// `@id`: its number, or where it is wrong.
pub(crate) fn id_annotation(list: &[Annotation]) -> Option<Result<(u32, Loc), Loc>> {
    let annotation = find(list, "id")?;
    let id = number(annotation)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|&n| n != 0);
    Some(id.map(|id| (id, annotation.loc)).ok_or(annotation.loc))
}

/// What a key, parameter or header field needs to get its id.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a>(pub(crate) &'a [Annotation]);

/// Ids of the fields of one object: what `@id` says, the others counted from 1 around those.
pub(crate) fn field_ids(fields: &[Field<'_>], errors: &mut Vec<P4InfoError>) -> Vec<u32> {
    let mut taken = FxHashSet::default();
    let given: Vec<Option<u32>> = fields
        .iter()
        .map(|field| match id_annotation(field.0)? {
            Ok((id, loc)) => {
                if !taken.insert(id) {
                    errors.push(P4InfoError::DuplicateId { id, loc });
                }
                Some(id)
            }
            Err(loc) => {
                errors.push(P4InfoError::BadId { loc });
                None
            }
        })
        .collect();
    let mut next = 1;
    given
        .into_iter()
        .map(|id| match id {
            Some(id) => {
                next += 1;
                id
            }
            None => {
                while !taken.insert(next) {
                    next += 1;
                }
                next
            }
        })
        .collect()
}

/// `@pkginfo(name="…", …)`
pub(super) fn package_strings(annotation: &Annotation, package: &mut pb::PkgInfo, errors: &mut Vec<P4InfoError>) {
    let wrong = P4InfoError::BadAnnotation {
        annotation: "pkginfo",
        expected: "strings by key: @pkginfo(name=\"…\", version=\"…\")",
        loc: annotation.loc,
    };
    let Some(pairs) = key_values(annotation) else {
        errors.push(wrong);
        return;
    };
    for (key, value) in pairs {
        let AnnotationValue::String(value) = value else {
            errors.push(wrong.clone());
            continue;
        };
        match key.as_str() {
            "name" => package.name = value,
            "version" => package.version = value,
            "organization" => package.organization = value,
            "contact" => package.contact = value,
            "url" => package.url = value,
            "arch" => package.arch = value,
            _ => {}
        }
    }
}

/// `@platform_property(multicast_group_table_size=…, …)`
pub(super) fn platform_numbers(annotation: &Annotation, package: &mut pb::PkgInfo, errors: &mut Vec<P4InfoError>) {
    let wrong = P4InfoError::BadAnnotation {
        annotation: "platform_property",
        expected: "31-bit numbers by key",
        loc: annotation.loc,
    };
    let Some(pairs) = key_values(annotation) else {
        errors.push(wrong);
        return;
    };
    let properties = package.platform_properties.get_or_insert_default();
    for (key, value) in pairs {
        let number = match value {
            AnnotationValue::Int(n) => i32::try_from(n).ok(),
            _ => None,
        };
        let Some(number) = number else {
            errors.push(wrong.clone());
            continue;
        };
        match key.as_str() {
            "multicast_group_table_size" => properties.multicast_group_table_size = number,
            "multicast_group_table_total_replicas" => properties.multicast_group_table_total_replicas = number,
            "multicast_group_table_max_replicas_per_entry" => {
                properties.multicast_group_table_max_replicas_per_entry = number
            }
            _ => {}
        }
    }
}

/// The pairs of `@a[k=v, …]` and of `@a(k=v, …)`.
fn key_values(annotation: &Annotation) -> Option<Vec<(String, AnnotationValue)>> {
    match &annotation.body {
        AnnotationBody::KeyValues(pairs) => Some(pairs.clone()),
        AnnotationBody::Empty => Some(Vec::new()),
        AnnotationBody::Text { tokens, .. } => tokens
            .split(|t| t == ",")
            .filter(|part| !part.is_empty())
            .map(|part| match part {
                [key, equals, value] if equals == "=" => {
                    let number = integer(value).and_then(|n| i64::try_from(n).ok());
                    let value = number.map_or_else(|| AnnotationValue::String(value.clone()), AnnotationValue::Int);
                    Some((key.clone(), value))
                }
                _ => None,
            })
            .collect(),
        AnnotationBody::Expressions(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(name: &str, body: AnnotationBody) -> Annotation {
        Annotation {
            name: name.to_string(),
            body,
            loc: Loc::default(),
        }
    }

    fn id(n: &str) -> Vec<Annotation> {
        vec![annotation(
            "id",
            AnnotationBody::Text {
                text: n.to_string(),
                tokens: vec![n.to_string()],
            },
        )]
    }

    #[test]
    fn ids_of_fields_go_around_those_that_are_given() {
        let (two, none) = (id("2"), Vec::new());
        let mut errors = Vec::new();
        let fields = [Field(&none), Field(&two), Field(&none), Field(&none)];
        assert_eq!(field_ids(&fields, &mut errors), [1, 2, 3, 4]);
        assert_eq!(field_ids(&[Field(&two), Field(&two)], &mut errors), [2, 2]);
        assert_eq!(
            errors,
            [P4InfoError::DuplicateId {
                id: 2,
                loc: Loc::default()
            }]
        );
    }

    #[test]
    fn literals_of_every_base_are_numbers() {
        for (text, value) in [
            ("16", 16),
            ("0x1_0", 16),
            ("8w16", 16),
            ("32w0x10", 16),
            ("0b10000", 16),
            ("0o20", 16),
            ("0d16", 16),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        assert_eq!(integer("wx"), None);
        assert_eq!(integer("é"), None);
    }

    #[test]
    fn an_id_of_zero_is_wrong() {
        assert_eq!(id_annotation(&id("0")), Some(Err(Loc::default())));
    }

    #[test]
    fn annotations_are_listed_as_text_or_structured_but_those_with_a_meaning_are_not() {
        let list = [
            annotation("name", AnnotationBody::Empty),
            annotation("a", AnnotationBody::Empty),
            annotation(
                "b",
                AnnotationBody::Text {
                    text: "x, \"y\"".into(),
                    tokens: vec!["x".into(), ",".into(), "y".into()],
                },
            ),
            annotation(
                "c",
                AnnotationBody::KeyValues(vec![("k".into(), AnnotationValue::Bool(true))]),
            ),
        ];
        assert_eq!(texts(&list, &[]), ["@a", "@b(x, \"y\")"]);
        assert_eq!(structured(&list, &[]).len(), 1);
        assert_eq!(texts(&list, &["a", "b"]), Vec::<String>::new());
    }
}
