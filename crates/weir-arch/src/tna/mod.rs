//! The Tofino native architectures, of the first chip and of the second: described, so that programs are checked and
//! compiled and control planes are told of them. Nobody has written yet how they run.

mod target;

use crate::error::LoadError;
use crate::registry::{Loader, Observer, Registration};
use weir_ir::Program;

/// How everyone else finds the first.
pub(crate) const TNA: Registration = Registration {
    target: target::TNA,
    ingress_port: INGRESS_PORT,
    observes: everything,
    load: REFUSE,
};

/// How everyone else finds the second.
pub(crate) const T2NA: Registration = Registration {
    target: target::T2NA,
    ingress_port: INGRESS_PORT,
    observes: everything,
    load: REFUSE,
};

const INGRESS_PORT: (&str, &str) = ("pipe0.ingress_intrinsic_metadata", "ingress_port");

/// What it will read is decided when it runs; until then nothing may be dropped.
fn everything(_: &Program) -> Observer {
    Box::new(|_, _| true)
}

const REFUSE: Loader = |engine, _| {
    Err(vec![LoadError::NotRun {
        target: engine.program().target.clone(),
    }])
};

#[cfg(test)]
mod tests {
    use crate::{Externs, LoadError, load};
    use std::sync::Arc;
    use weir_interp::Interpreter;
    use weir_ir::Program;

    #[test]
    fn running_is_refused_with_the_reason() {
        for target in ["tna", "t2na"] {
            let program = Program {
                target: target.to_owned(),
                ..Program::default()
            };
            let refused = load(Arc::new(Interpreter::new(Arc::new(program))), &Externs::default());
            let error = refused.err().expect("nobody runs it");
            assert_eq!(error, LoadError::NotRun { target: target.into() });
            assert!(error.to_string().contains("not run yet"), "{error}");
        }
    }
}
