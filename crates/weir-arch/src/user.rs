//! Externs that the embedder brings along.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use weir_interp::{CallContext, CallEffect};

/// What an extern does. It must be a function of its arguments (and of state of its own that it
/// guards itself): it may run on several packets at once.
pub type UserFunction = Arc<dyn Fn(&mut CallContext<'_>) -> CallEffect + Send + Sync>;

/// Functions and methods that programs may call besides those of their architecture.
///
/// ```
/// use std::sync::Arc;
/// use weir_arch::Externs;
/// use weir_interp::CallEffect;
///
/// // extern void double(out bit<32> d, in bit<32> s);
/// let mut externs = Externs::default();
/// externs.function("double", Arc::new(|call| {
///     if let Some(s) = call.scalar(1).cloned() {
///         call.set(0, &s.add(&s));
///     }
///     CallEffect::Continue
/// }));
/// ```
#[derive(Clone, Default)]
pub struct Externs {
    functions: BTreeMap<String, UserFunction>,
    methods: BTreeMap<(String, String), UserFunction>,
}

impl Externs {
    /// Registers an extern function.
    pub fn function(&mut self, name: &str, function: UserFunction) {
        self.functions.insert(name.to_owned(), function);
    }

    /// Registers a method of an extern type. The instance is in [`weir_ir::Call::instance`].
    pub fn method(&mut self, type_name: &str, method: &str, function: UserFunction) {
        self.methods.insert((type_name.to_owned(), method.to_owned()), function);
    }

    /// Whether any method of an extern type is registered.
    pub(crate) fn has_type(&self, type_name: &str) -> bool {
        self.methods.keys().any(|(t, _)| t == type_name)
    }

    /// The function, or the method of a type.
    pub(crate) fn find(&self, type_name: Option<&str>, name: &str) -> Option<UserFunction> {
        match type_name {
            None => self.functions.get(name).cloned(),
            Some(t) => self.methods.get(&(t.to_owned(), name.to_owned())).cloned(),
        }
    }
}

impl fmt::Debug for Externs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Externs")
            .field("functions", &self.functions.keys())
            .field("methods", &self.methods.keys())
            .finish()
    }
}
