//! The filters, one file a family.

mod address;
mod encoding;
mod formats;
mod hashing;
mod logic;
mod maps;
mod numbers;
mod operators;
mod paths;
mod regexes;
mod selection;
mod sequences;
mod sets;
mod text;
mod time;
mod yaml;

use minijinja::Environment;

use super::given::{Filter, Takes, add_filters};

pub(crate) use hashing::crypt;
pub(crate) use paths::normalized;
pub(crate) use regexes::python as python_regex;
pub(crate) use sequences::letters;
pub(crate) use time::now;

const FAMILIES: [(&[Filter], Takes); 16] = [
    (operators::FILTERS, Takes::Anything),
    (logic::LENIENT, Takes::Anything),
    (logic::FILTERS, Takes::Values),
    (address::FILTERS, Takes::Values),
    (encoding::FILTERS, Takes::Values),
    (formats::FILTERS, Takes::Values),
    (hashing::FILTERS, Takes::Values),
    (maps::FILTERS, Takes::Values),
    (numbers::FILTERS, Takes::Values),
    (paths::FILTERS, Takes::Values),
    (regexes::FILTERS, Takes::Values),
    (selection::FILTERS, Takes::Values),
    (sequences::FILTERS, Takes::Values),
    (sets::FILTERS, Takes::Values),
    (text::FILTERS, Takes::Values),
    (time::FILTERS, Takes::Values),
];

/// Adds every filter.
pub(crate) fn add(environment: &mut Environment<'static>) {
    for (family, takes) in FAMILIES {
        add_filters(environment, family, takes);
    }
}

/// The names of all filters, without their collection.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES
        .into_iter()
        .flat_map(|(family, _)| family)
        .flat_map(|filter| filter.names.split_whitespace())
        .filter(|name| !name.starts_with("__"))
}
