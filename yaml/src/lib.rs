//! YAML with places, as Ansible reads it: a tree of nodes that know where they were written, over a
//! maintained event parser, and the one error type of all files that people write.

mod diagnostic;
mod load;
mod nearest;
mod node;
mod render;
mod scalar;
mod source;

pub use diagnostic::{Diagnostic, Severity};
pub use load::{Loaded, load};
pub use nearest::nearest;
pub use node::{Kind, Map, Node, Str, Style};
pub use render::render;
pub use source::{Source, Span};
