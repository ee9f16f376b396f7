//! Objects of extern types whose constructor takes a count.

use crate::shape::Shape;
use std::sync::Arc;
use weir_extern_api::{ConstructError, Constructor, Extern, Keys, Object};
use weir_ir::ExternInstance;
use weir_ir::program::ConstValue;

/// The most keys or associations of an instance.
const MAX_COUNT: u64 = 1 << 20;

/// An extern type of this crate. Its constructor takes one number.
pub(crate) struct Type {
    /// Its name in P4.
    pub(crate) name: &'static str,
    /// The name of the constructor's parameter.
    pub(crate) count: &'static str,
    /// Makes the object of an instance with this number of keys or associations.
    pub(crate) make: fn(usize) -> Members,
}

impl Type {
    pub(crate) fn constructor(&self) -> Constructor {
        let (name, count, make) = (self.name, self.count, self.make);
        Arc::new(move |instance, _| {
            let members = make(count_of(instance, name, count)?);
            Ok(Arc::new(members) as Arc<dyn Object>)
        })
    }
}

/// An extern, with the declaration that it expects.
pub(crate) type Declared = (&'static Shape, Arc<dyn Extern>);

/// The object of an instance: methods by name, and keys.
pub(crate) struct Members {
    pub(crate) methods: Vec<Declared>,
    keys: Arc<dyn Keys>,
}

impl Members {
    pub(crate) fn new(keys: Arc<dyn Keys>) -> Self {
        Members {
            methods: Vec::new(),
            keys,
        }
    }

    pub(crate) fn with(mut self, method: Declared) -> Self {
        self.methods.push(method);
        self
    }
}

impl Object for Members {
    fn method(&self, name: &str) -> Option<Arc<dyn Extern>> {
        let found = self.methods.iter().find(|(shape, _)| shape.name == name);
        found.map(|(_, method)| Arc::clone(method))
    }

    fn keys(&self) -> Option<&dyn Keys> {
        Some(&*self.keys)
    }
}

/// The constructor's argument.
fn count_of(instance: &ExternInstance, name: &str, parameter: &str) -> Result<usize, ConstructError> {
    let count = match instance.arguments.as_slice() {
        [(_, ConstValue::Bits(bits))] => bits.to_u64(),
        [(_, ConstValue::Int(number))] => u64::try_from(number).ok(),
        _ => {
            return Err(format!(
                "the constructor of `{name}` takes one number: `{name}(bit<32> {parameter})`"
            ));
        }
    };
    let count = count.filter(|c| (1..=MAX_COUNT).contains(c));
    count
        .and_then(|c| usize::try_from(c).ok())
        .ok_or_else(|| format!("`{name}` can have from 1 to {MAX_COUNT} {parameter}"))
}
