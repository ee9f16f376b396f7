//! Which names of a program stand for which externs.

use crate::{Extern, Files, Keys, NoFiles};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use weir_ir::ExternInstance;

/// Why an instance cannot be made: a sentence for the author of the program.
pub type ConstructError = String;

/// Makes the object of an instance, from its constructor arguments and the files that they name.
pub type Constructor =
    Arc<dyn Fn(&ExternInstance, &dyn Files) -> Result<Arc<dyn Object>, ConstructError> + Send + Sync>;

/// The object behind an extern instance.
pub trait Object: Send + Sync {
    /// A method by its name.
    fn method(&self, name: &str) -> Option<Arc<dyn Extern>>;

    /// Its keys, if it has any.
    fn keys(&self) -> Option<&dyn Keys> {
        None
    }
}

/// The externs that programs may call besides those of their architecture.
///
/// ```
/// use std::sync::Arc;
/// use weir_extern_api::{Call, Extern, Outcome, Registry};
///
/// /// `extern void double(out bit<32> twice, in bit<32> number);`
/// struct Double;
///
/// impl Extern for Double {
///     fn call(&self, call: &mut Call<'_>) -> Outcome {
///         call.set(0, call.get(1) * 2);
///         Outcome::Continue
///     }
/// }
///
/// let mut registry = Registry::default();
/// registry.function("double", Arc::new(Double));
/// assert!(registry.find_function("double").is_some());
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    functions: BTreeMap<String, Arc<dyn Extern>>,
    types: BTreeMap<String, Constructor>,
    files: Option<Arc<dyn Files>>,
}

impl Registry {
    /// Registers an extern function. Replaces one of the same name.
    pub fn function(&mut self, name: &str, function: Arc<dyn Extern>) -> &mut Self {
        self.functions.insert(name.to_owned(), function);
        self
    }

    /// Registers an extern type. Replaces one of the same name.
    pub fn object(&mut self, type_name: &str, constructor: Constructor) -> &mut Self {
        self.types.insert(type_name.to_owned(), constructor);
        self
    }

    /// Sets where constructors find the files that programs name. Without, they find none.
    pub fn set_files(&mut self, files: Arc<dyn Files>) -> &mut Self {
        self.files = Some(files);
        self
    }

    /// Where constructors find the files that programs name.
    #[must_use]
    pub fn files(&self) -> &dyn Files {
        self.files.as_deref().unwrap_or(&NoFiles)
    }

    /// The function of a name.
    #[must_use]
    pub fn find_function(&self, name: &str) -> Option<&Arc<dyn Extern>> {
        self.functions.get(name)
    }

    /// The constructor of a type.
    #[must_use]
    pub fn find_type(&self, name: &str) -> Option<&Constructor> {
        self.types.get(name)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("functions", &self.functions.keys())
            .field("types", &self.types.keys())
            .finish()
    }
}
