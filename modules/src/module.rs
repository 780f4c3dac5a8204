//! What a task module is, and where it is found.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::arguments;
use crate::host::{Fault, Host};
use crate::tasks::{INTERNAL, MODULES};

pub use crate::arguments::ArgumentError;
pub use fleet_wire::Status;

/// How a module is run: with its arguments, on a host.
pub type Run = fn(Value, &mut Host) -> Result<Report, Fault>;

/// One task module, as the engine and the helper see it. Made from its [`Task`] by [`Module::of`].
pub struct Module {
    /// Its name without a collection.
    pub name: &'static str,
    /// Other names of it, `systemd_service` for `systemd`.
    pub aliases: &'static [&'static str],
    /// Other names of arguments: the alias, then the argument.
    pub argument_aliases: &'static [(&'static str, &'static str)],
    /// The argument that takes the free text of `module: text`.
    pub free_form: Option<&'static str>,
    /// Reads the arguments, each for itself.
    pub read: fn(&Value) -> Result<(), ArgumentError>,
    /// Reads the arguments and checks them against each other, without a host.
    pub check: fn(&Value) -> Result<(), ArgumentError>,
    /// Runs the module on a host.
    pub run: Run,
    /// The arguments' JSON Schema: names, documentation, which are required.
    #[cfg(feature = "schema")]
    pub schema: fn() -> schemars::Schema,
}

/// What a module's argument struct says of itself. The struct's doc comments are its manual.
pub trait Task: DeserializeOwned + Documented {
    /// The module's name without a collection.
    const NAME: &'static str;
    /// Other names of the module.
    const ALIASES: &'static [&'static str] = &[];
    /// Other names of arguments: the alias, then the argument.
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// The argument that takes the free text of `module: text`.
    const FREE_FORM: Option<&'static str> = None;

    /// Checks the arguments against each other.
    ///
    /// # Errors
    /// When they do not go together.
    fn check(&self) -> Result<(), ArgumentError> {
        Ok(())
    }

    /// Brings the host to what the arguments say.
    ///
    /// # Errors
    /// When it cannot; the task has failed.
    fn run(self, host: &mut Host) -> Result<Report, Fault>;
}

/// A struct whose documentation can be exported (with the feature `schema`; else anything is).
#[cfg(feature = "schema")]
pub trait Documented: schemars::JsonSchema {}
#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> Documented for T {}

/// A struct whose documentation can be exported (with the feature `schema`; else anything is).
#[cfg(not(feature = "schema"))]
pub trait Documented {}
#[cfg(not(feature = "schema"))]
impl<T> Documented for T {}

/// What `register` sees of a task beyond `changed` and `failed`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The fields, in Ansible's words.
    pub fields: Map<String, Value>,
    /// Only to say [`Status::Skipped`] or [`Status::Unknown`]; the effects decide the rest.
    pub status: Option<Status>,
}

impl Report {
    /// A report of the fields of a JSON object; anything else is an empty one.
    #[must_use]
    pub fn of(fields: Value) -> Self {
        match fields {
            Value::Object(fields) => Self {
                fields,
                status: None,
            },
            _ => Self::default(),
        }
    }

    /// The same with a status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }
}

impl Module {
    /// The module of a [`Task`].
    #[must_use]
    pub const fn of<T: Task>() -> Self {
        Self {
            name: T::NAME,
            aliases: T::ALIASES,
            argument_aliases: T::ARGUMENT_ALIASES,
            free_form: T::FREE_FORM,
            read: |args| arguments::parse::<T>(args.clone(), T::ARGUMENT_ALIASES).map(drop),
            check: |args| parse::<T>(args.clone()).map(drop),
            run: |args, host| parse::<T>(args)?.run(host),
            #[cfg(feature = "schema")]
            schema: || schemars::schema_for!(T),
        }
    }
}

/// A module by its name or an alias; the collections that Ansible ships them in may stand before it. What only the engine
/// calls has a name that begins with `_`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Module> {
    const COLLECTIONS: [&str; 4] = [
        "ansible.builtin.",
        "ansible.legacy.",
        "ansible.posix.",
        "community.general.",
    ];
    let bare = COLLECTIONS
        .iter()
        .find_map(|collection| name.strip_prefix(collection))
        .unwrap_or(name);
    MODULES
        .iter()
        .chain(INTERNAL)
        .copied()
        .find(|module| module.name == bare || module.aliases.contains(&bare))
}

fn parse<T: Task>(args: Value) -> Result<T, ArgumentError> {
    let task: T = arguments::parse(args, T::ARGUMENT_ALIASES)?;
    task.check()?;
    Ok(task)
}
