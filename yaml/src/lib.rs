//! YAML with places, as Ansible reads it, over a maintained event parser.
//!
//! [`load`] turns a [`Source`] into [`Node`]s: scalars are those of PyYAML, merge keys are merged, aliases
//! share, and every node knows the [`Span`] where it was written. [`de::from_node`] reads a node into a type
//! of one's own. Whatever is wrong is a [`Diagnostic`], for all files that people write; [`render`] shows it
//! as a compiler does.

pub mod de;
mod diagnostic;
mod load;
mod nearest;
mod node;
mod render;
mod scalar;
mod source;
mod syntax;

pub use diagnostic::{Details, Diagnostic, Severity, code};
pub use load::{Loaded, Partly, load, load_around};
pub use nearest::nearest;
pub use node::{Kind, Map, Node, Str, Style};
pub use render::render;
pub use source::{Source, Span};
