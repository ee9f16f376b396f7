//! Declarations that externs expect, and externs made of a declaration and a closure.

use crate::Status;
use crate::object::Declared;
use std::fmt;
use std::sync::Arc;
use weir_extern_api::{Call, Extern, Outcome, Parameter, ParameterKind, PayloadAccess, Signature};

/// What an extern expects of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The payload, with this access or a stronger one.
    Payload(PayloadAccess),
    /// An `in` number of this width in bits.
    In(u32),
    /// `in` values of any type; the name of their type parameter.
    Fields(&'static str),
    /// An `out` number of this width in bits.
    Out(u32),
    /// The status of the call.
    Status,
}

const STATUS_BITS: u32 = 8;

impl Expected {
    fn fits(self, parameter: &Parameter) -> bool {
        match (&parameter.kind, self) {
            (ParameterKind::Payload(access), Expected::Payload(needed)) => *access >= needed,
            (ParameterKind::Values { is_input, widths, .. }, Expected::In(width)) => *is_input && *widths == [width],
            (ParameterKind::Values { is_input, .. }, Expected::Fields(_)) => *is_input,
            (ParameterKind::Values { is_output, widths, .. }, Expected::Out(width)) => *is_output && *widths == [width],
            (ParameterKind::Values { is_output, widths, .. }, Expected::Status) => {
                *is_output && *widths == [STATUS_BITS]
            }
            (ParameterKind::Values { .. }, Expected::Payload(_))
            | (
                ParameterKind::Payload(_),
                Expected::In(_) | Expected::Fields(_) | Expected::Out(_) | Expected::Status,
            )
            | (ParameterKind::Text(_), _) => false,
        }
    }

    fn type_parameter(self) -> Option<&'static str> {
        match self {
            Expected::Fields(name) => Some(name),
            Expected::Payload(_) | Expected::In(_) | Expected::Out(_) | Expected::Status => None,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Payload(access) => f.write_str(access.type_name()),
            Expected::In(width) => write!(f, "in bit<{width}>"),
            Expected::Fields(name) => write!(f, "in {name}"),
            Expected::Out(width) => write!(f, "out bit<{width}>"),
            Expected::Status => f.write_str("out extern_status_t"),
        }
    }
}

/// The declaration of an extern function or method without results.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its parameters in order, with their names.
    pub(crate) parameters: &'static [(&'static str, Expected)],
}

impl Shape {
    /// Whether a declaration of a program fits.
    pub(crate) fn check(&self, signature: &Signature) -> Result<(), String> {
        let found = signature.parameters();
        if found.len() != self.parameters.len() {
            return Err(format!(
                "`{}` has {} parameters here; expected is `{self}`",
                self.name,
                found.len()
            ));
        }
        for (parameter, (_, expected)) in found.iter().zip(self.parameters) {
            if !expected.fits(parameter) {
                return Err(format!(
                    "parameter `{}` of `{}` is {} here, but `{expected}` is expected: `{self}`",
                    parameter.name,
                    self.name,
                    found_kind(parameter)
                ));
            }
        }
        if !signature.results().is_empty() {
            return Err(format!("`{}` returns a value here; expected is `{self}`", self.name));
        }
        Ok(())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "void {}", self.name)?;
        let generic = self.parameters.iter().find_map(|(_, e)| e.type_parameter());
        if let Some(name) = generic {
            write!(f, "<{name}>")?;
        }
        f.write_str("(")?;
        for (i, (name, expected)) in self.parameters.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{expected} {name}")?;
        }
        f.write_str(")")
    }
}

/// The kind of a parameter of a program, for an error message.
fn found_kind(parameter: &Parameter) -> String {
    match &parameter.kind {
        ParameterKind::Payload(access) => format!("`{}`", access.type_name()),
        ParameterKind::Text(_) => "a string".to_owned(),
        ParameterKind::Values {
            is_input,
            is_output,
            widths,
            ..
        } => {
            let direction = match (is_input, is_output) {
                (true, true) => "inout",
                (false, true) => "out",
                (true | false, false) => "in",
            };
            match widths.as_slice() {
                [width] => format!("`{direction} bit<{width}>`"),
                several => format!("`{direction}` with {} fields", several.len()),
            }
        }
    }
}

/// A method or function of a declaration. The closure returns the status, which goes to the
/// parameter that the declaration has for it.
pub(crate) struct Method<F> {
    shape: &'static Shape,
    growth: fn(usize) -> usize,
    status: Option<usize>,
    run: F,
}

impl<F> Method<F>
where
    F: Fn(&mut Call<'_>) -> Status + Send + Sync + 'static,
{
    /// Keeps the payload's length, or shrinks it.
    pub(crate) fn declared(shape: &'static Shape, run: F) -> Declared {
        Method::growing(shape, |_| 0, run)
    }

    /// `growth` says by how many bytes a payload of a length may grow.
    pub(crate) fn growing(shape: &'static Shape, growth: fn(usize) -> usize, run: F) -> Declared {
        let status = shape.parameters.iter().position(|(_, e)| *e == Expected::Status);
        let method = Method {
            shape,
            growth,
            status,
            run,
        };
        (shape, Arc::new(method))
    }
}

impl<F> Extern for Method<F>
where
    F: Fn(&mut Call<'_>) -> Status + Send + Sync,
{
    fn check(&self, signature: &Signature) -> Result<(), String> {
        self.shape.check(signature)
    }

    fn growth(&self, payload_bytes: usize) -> usize {
        (self.growth)(payload_bytes)
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let status = (self.run)(call);
        if let Some(parameter) = self.status {
            call.set(parameter, u64::from(status.code()));
        }
        Outcome::Continue
    }
}
