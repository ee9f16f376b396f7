//! The resource information base (RIB): a tree of objects on which CDAP operates.
//!
//! Names are paths such as `/mgmt/routing/routing`. The tree holds values and says what may be done
//! with them; it runs nothing. Its owner gets each change as a [`RibEvent`], and acts on it.

use crate::cdap::{Message, Opcode, Value, result};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What remote applications may do with an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Read the value.
    pub read: bool,
    /// Write the value.
    pub write: bool,
    /// Start and stop the object.
    pub start: bool,
    /// Create objects below this one, and delete those that were created so.
    pub create_children: bool,
}

impl Access {
    /// Only reading.
    pub const READ: Access = Access {
        read: true,
        write: false,
        start: false,
        create_children: false,
    };
}

/// An object of the RIB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RibObject {
    /// The class.
    pub class: String,
    /// The value.
    pub value: Option<Value>,
    /// What remote applications may do.
    pub access: Access,
    /// Whether the object has been started.
    pub is_started: bool,
    /// Whether a remote application has created the object, and may delete it.
    is_remote: bool,
}

impl RibObject {
    /// An object that has not been started.
    #[must_use]
    pub fn new(class: impl Into<String>, value: Option<Value>, access: Access) -> Self {
        RibObject {
            class: class.into(),
            value,
            access,
            is_started: false,
            is_remote: false,
        }
    }
}

/// A change that a remote application has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RibEvent {
    /// An object was created.
    Created(String),
    /// An object was deleted, and all objects below it.
    Deleted(String),
    /// An object was written; its former value.
    Written(String, Option<Value>),
    /// An object was started, with the value of the message.
    Started(String, Option<Value>),
    /// An object was stopped, with the value of the message.
    Stopped(String, Option<Value>),
}

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RibAnswer {
    /// The responses, none if the request demands none.
    pub responses: Vec<Message>,
    /// The change.
    pub event: Option<RibEvent>,
}

/// Why the owner's operation on the tree fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RibError {
    /// The name is not `/`, or `/` and components that are not empty.
    #[error("a name is a path of components that are not empty")]
    Name,
    /// The parent does not exist.
    #[error("the parent does not exist")]
    NoParent,
    /// There is an object of this name.
    #[error("there is an object of this name")]
    Exists,
    /// The tree has as many objects as its limit allows.
    #[error("the tree is full")]
    Full,
}

/// Results are sent in one message each; all but the last have this flag (`F_RD_INCOMPLETE`).
const MORE_RESULTS: i32 = 2;

/// The tree. It has a root, `/`, always.
#[derive(Debug, Clone)]
pub struct Rib {
    objects: BTreeMap<String, RibObject>,
    limit: usize,
}

impl Rib {
    /// A tree of at most `limit` objects, the root included.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let root = RibObject::new("root", None, Access::READ);
        Rib {
            objects: BTreeMap::from([("/".to_owned(), root)]),
            limit: limit.max(1),
        }
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is only the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// An object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RibObject> {
        self.objects.get(name)
    }

    /// Adds an object.
    ///
    /// # Errors
    /// The name is no path or exists, its parent does not, or the tree is full.
    pub fn insert(&mut self, name: &str, object: RibObject) -> Result<(), RibError> {
        let parent = parent(name).ok_or(RibError::Name)?;
        if !self.objects.contains_key(parent) {
            return Err(RibError::NoParent);
        }
        if self.objects.contains_key(name) {
            return Err(RibError::Exists);
        }
        if self.objects.len() >= self.limit {
            return Err(RibError::Full);
        }
        self.objects.insert(name.to_owned(), object);
        Ok(())
    }

    /// Adds an object and the parents that it lacks, which can be read.
    ///
    /// # Errors
    /// As [`Rib::insert`]; parents that have been added stay.
    pub fn insert_with_parents(&mut self, name: &str, object: RibObject) -> Result<(), RibError> {
        let above = parent(name).ok_or(RibError::Name)?;
        if !self.objects.contains_key(above) {
            self.insert_with_parents(above, RibObject::new("folder", None, Access::READ))?;
        }
        self.insert(name, object)
    }

    /// Replaces the value of an object. Returns whether there is one.
    pub fn set_value(&mut self, name: &str, value: Option<Value>) -> bool {
        let object = self.objects.get_mut(name);
        object.map(|object| object.value = value).is_some()
    }

    /// Removes an object and all objects below it; returns how many. The root stays.
    pub fn remove(&mut self, name: &str) -> usize {
        if name == "/" {
            return 0;
        }
        let names: Vec<String> = self.subtree(name, usize::MAX).map(|(name, _)| name.clone()).collect();
        names.iter().filter(|name| self.objects.remove(*name).is_some()).count()
    }

    /// An object, then those at most `scope` levels below it in the order of names.
    pub fn subtree(&self, name: &str, scope: usize) -> impl Iterator<Item = (&String, &RibObject)> {
        let prefix = if name == "/" { "" } else { name };
        let below = format!("{prefix}/");
        // '0' follows '/', so that this range holds all names with the prefix.
        let end = format!("{prefix}0");
        let range = (Bound::Excluded(below.as_str()), Bound::Excluded(end.as_str()));
        let object = self.objects.get_key_value(name);
        let depth = below.len();
        let descendants = self.objects.range::<str, _>(range);
        let is_within = move |other: &str| other[depth..].matches('/').count() < scope;
        object
            .into_iter()
            .chain(descendants.filter(move |(other, _)| is_within(other)))
    }

    /// Carries out a request of a remote application.
    ///
    /// Responses and requests that are not about objects (M_CONNECT, M_RELEASE, M_CANCELREAD) have
    /// no effect and no answer.
    pub fn apply(&mut self, request: &Message) -> RibAnswer {
        let outcome = match request.opcode {
            Opcode::Create => self.create(request),
            Opcode::Delete => self.delete(request),
            Opcode::Read => return self.read(request),
            Opcode::Write => self.write(request),
            Opcode::Start => self.start(request, true),
            Opcode::Stop => self.start(request, false),
            Opcode::Connect
            | Opcode::ConnectR
            | Opcode::Release
            | Opcode::ReleaseR
            | Opcode::CreateR
            | Opcode::DeleteR
            | Opcode::ReadR
            | Opcode::CancelRead
            | Opcode::CancelReadR
            | Opcode::WriteR
            | Opcode::StartR
            | Opcode::StopR => return RibAnswer::default(),
        };
        let (event, code, reason) = match outcome {
            Ok(event) => (Some(event), result::SUCCESS, ""),
            Err((code, reason)) => (None, code, reason),
        };
        RibAnswer {
            responses: respond(request, code, reason),
            event,
        }
    }

    /// The object of a request, if its class is that of the request, or that is empty.
    fn object(&mut self, request: &Message) -> Result<&mut RibObject, Refused> {
        let object = self.objects.get_mut(&request.object_name);
        let object = object.ok_or((result::NO_SUCH_OBJECT, "no such object"))?;
        if !request.object_class.is_empty() && request.object_class != object.class {
            return Err((result::WRONG_TYPE, "the object has another class"));
        }
        Ok(object)
    }

    fn create(&mut self, request: &Message) -> Result<RibEvent, Refused> {
        let name = &request.object_name;
        let above = parent(name).and_then(|parent| self.objects.get(parent));
        if !above.is_some_and(|above| above.access.create_children) {
            return Err((result::NOT_SUPPORTED, "no object can be created here"));
        }
        let access = Access {
            write: true,
            ..Access::READ
        };
        let object = RibObject {
            is_remote: true,
            ..RibObject::new(request.object_class.clone(), request.value.clone(), access)
        };
        match self.insert(name, object) {
            Ok(()) => Ok(RibEvent::Created(name.clone())),
            Err(RibError::Exists) => Err((result::EXISTS, "the object exists")),
            Err(RibError::Full) => Err((result::LIMIT, "the tree is full")),
            Err(RibError::Name | RibError::NoParent) => Err((result::NO_SUCH_OBJECT, "no such parent")),
        }
    }

    fn delete(&mut self, request: &Message) -> Result<RibEvent, Refused> {
        if !self.object(request)?.is_remote {
            return Err((result::NOT_SUPPORTED, "the object cannot be deleted"));
        }
        self.remove(&request.object_name);
        Ok(RibEvent::Deleted(request.object_name.clone()))
    }

    fn write(&mut self, request: &Message) -> Result<RibEvent, Refused> {
        let object = self.object(request)?;
        if !object.access.write {
            return Err((result::NOT_SUPPORTED, "the object cannot be written"));
        }
        let former = std::mem::replace(&mut object.value, request.value.clone());
        Ok(RibEvent::Written(request.object_name.clone(), former))
    }

    fn start(&mut self, request: &Message, is_started: bool) -> Result<RibEvent, Refused> {
        let object = self.object(request)?;
        if !object.access.start {
            return Err((result::NOT_SUPPORTED, "the object cannot be started or stopped"));
        }
        object.is_started = is_started;
        let (name, value) = (request.object_name.clone(), request.value.clone());
        Ok(if is_started {
            RibEvent::Started(name, value)
        } else {
            RibEvent::Stopped(name, value)
        })
    }

    /// Reads an object, and with a scope those below it that can be read: one response for each.
    fn read(&mut self, request: &Message) -> RibAnswer {
        let refuse = |(code, reason): Refused| RibAnswer {
            responses: respond(request, code, reason),
            event: None,
        };
        match self.object(request) {
            Ok(object) if object.access.read => {}
            Ok(_) => return refuse((result::NOT_SUPPORTED, "the object cannot be read")),
            Err(refused) => return refuse(refused),
        }
        let scope = usize::try_from(request.scope).unwrap_or(0);
        let objects = self.subtree(&request.object_name, scope);
        let mut responses: Vec<Message> = objects
            .filter(|(_, object)| object.access.read)
            .flat_map(|(name, object)| {
                let mut responses = respond(request, result::SUCCESS, "");
                for response in &mut responses {
                    response.object_name.clone_from(name);
                    response.object_class.clone_from(&object.class);
                    response.value.clone_from(&object.value);
                    response.flags = MORE_RESULTS;
                }
                responses
            })
            .collect();
        if let Some(last) = responses.last_mut() {
            last.flags = 0;
        }
        RibAnswer { responses, event: None }
    }
}

/// Result and explanation.
type Refused = (i32, &'static str);

/// The response, if the request demands one.
fn respond(request: &Message, code: i32, reason: &str) -> Vec<Message> {
    let demands = request.invoke_id != 0;
    demands
        .then(|| request.response(code, reason))
        .flatten()
        .into_iter()
        .collect()
}

/// The name of the parent; `None` for the root and for names that are no paths.
fn parent(name: &str) -> Option<&str> {
    let components = name.strip_prefix('/')?;
    if components.split('/').any(str::is_empty) {
        return None;
    }
    let (parent, _) = name.rsplit_once('/')?;
    Some(if parent.is_empty() { "/" } else { parent })
}

#[cfg(test)]
mod tests {
    use super::{Access, Rib, RibError, RibEvent, RibObject};
    use crate::cdap::{Message, Opcode, Value, result};

    fn rib() -> Rib {
        let mut rib = Rib::new(8);
        let flows = Access {
            create_children: true,
            ..Access::READ
        };
        rib.insert_with_parents("/mgmt/flows", RibObject::new("flows", None, flows))
            .unwrap();
        let status = Access {
            start: true,
            write: true,
            ..Access::READ
        };
        rib.insert("/status", RibObject::new("status", Some(Value::Int(1)), status))
            .unwrap();
        rib.insert("/secret", RibObject::new("secret", None, Access::default()))
            .unwrap();
        rib
    }

    fn request(opcode: Opcode, class: &str, name: &str, value: Option<Value>) -> Message {
        Message {
            invoke_id: 3,
            ..Message::about(opcode, class, name, value)
        }
    }

    #[track_caller]
    fn result_of(rib: &mut Rib, request: &Message) -> i32 {
        let answer = rib.apply(request);
        let [response] = &answer.responses[..] else {
            panic!("{answer:?}");
        };
        assert_eq!(response.invoke_id, 3);
        assert_eq!(answer.event.is_some(), response.result == result::SUCCESS);
        response.result
    }

    #[test]
    fn objects_are_created_written_and_deleted_where_that_is_allowed() {
        let mut rib = rib();
        let create = request(Opcode::Create, "flow", "/mgmt/flows/7", Some(Value::Int(7)));
        assert_eq!(
            rib.apply(&create).event,
            Some(RibEvent::Created("/mgmt/flows/7".into()))
        );
        assert_eq!(result_of(&mut rib, &create), result::EXISTS);
        let elsewhere = request(Opcode::Create, "flow", "/mgmt/7", None);
        assert_eq!(result_of(&mut rib, &elsewhere), result::NOT_SUPPORTED);
        let write = request(Opcode::Write, "", "/mgmt/flows/7", Some(Value::Int(8)));
        let former = Some(Value::Int(7));
        assert_eq!(
            rib.apply(&write).event,
            Some(RibEvent::Written("/mgmt/flows/7".into(), former))
        );
        let wrong = request(Opcode::Write, "other", "/mgmt/flows/7", None);
        assert_eq!(result_of(&mut rib, &wrong), result::WRONG_TYPE);
        let delete = request(Opcode::Delete, "", "/mgmt/flows/7", None);
        assert_eq!(result_of(&mut rib, &delete), result::SUCCESS);
        assert_eq!(result_of(&mut rib, &delete), result::NO_SUCH_OBJECT);
        let own = request(Opcode::Delete, "", "/mgmt/flows", None);
        assert_eq!(result_of(&mut rib, &own), result::NOT_SUPPORTED);
    }

    #[test]
    fn reads_with_a_scope_return_what_can_be_read() {
        let mut rib = rib();
        let mut names = |name: &str, scope| {
            let read = Message {
                scope,
                ..request(Opcode::Read, "", name, None)
            };
            let responses = rib.apply(&read).responses;
            let (last, others) = responses.split_last().unwrap();
            assert!(last.flags == 0 && others.iter().all(|r| r.flags == 2));
            responses.into_iter().map(|r| r.object_name).collect::<Vec<_>>()
        };
        assert_eq!(names("/", 0), ["/"]);
        assert_eq!(names("/", 1), ["/", "/mgmt", "/status"]);
        assert_eq!(names("/", 2), ["/", "/mgmt", "/mgmt/flows", "/status"]);
        assert_eq!(names("/mgmt", 9), ["/mgmt", "/mgmt/flows"]);
        let secret = request(Opcode::Read, "", "/secret", None);
        assert_eq!(rib.apply(&secret).responses[0].result, result::NOT_SUPPORTED);
    }

    #[test]
    fn objects_are_started_and_stopped() {
        let mut rib = rib();
        let start = request(Opcode::Start, "status", "/status", None);
        assert_eq!(result_of(&mut rib, &start), result::SUCCESS);
        assert!(rib.get("/status").unwrap().is_started);
        let stop = Message {
            invoke_id: 0,
            ..request(Opcode::Stop, "status", "/status", None)
        };
        let answer = rib.apply(&stop);
        assert_eq!(answer.responses, []);
        assert_eq!(answer.event, Some(RibEvent::Stopped("/status".into(), None)));
        assert!(!rib.get("/status").unwrap().is_started);
        assert_eq!(rib.apply(&Message::new(Opcode::Connect)).responses, []);
    }

    #[test]
    fn the_tree_is_bounded_and_its_names_are_paths() {
        let mut rib = rib();
        let object = || RibObject::new("x", None, Access::READ);
        for name in ["", "/", "x", "//x", "/x/", "/x//y"] {
            assert_eq!(rib.insert(name, object()), Err(RibError::Name), "{name}");
        }
        assert_eq!(rib.insert("/x/y", object()), Err(RibError::NoParent));
        assert_eq!(rib.insert("/mgmt", object()), Err(RibError::Exists));
        rib.insert_with_parents("/mgmt0/a/b", object()).unwrap();
        assert_eq!(rib.len(), 8);
        assert_eq!(rib.insert("/y", object()), Err(RibError::Full));
        let create = request(Opcode::Create, "flow", "/mgmt/flows/7", None);
        assert_eq!(result_of(&mut rib, &create), result::LIMIT);
        // `/mgmt0` is not below `/mgmt`.
        assert_eq!(rib.remove("/mgmt"), 2);
        assert_eq!((rib.remove("/"), rib.len()), (0, 6));
        assert!(rib.set_value("/status", None) && !rib.set_value("/none", None));
    }
}
