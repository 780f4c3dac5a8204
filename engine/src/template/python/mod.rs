//! Values as Python shows, compares and formats them: what templates written for Ansible expect to see.

pub(crate) mod braces;
pub(crate) mod format;
pub(crate) mod mersenne;
pub(crate) mod methods;
pub(crate) mod mutable;
pub(crate) mod text;
pub(crate) mod truth;
