//! The filters, one file a family.

mod address;
mod arrangement;
mod chance;
mod charset;
mod crypt;
mod encoding;
mod formats;
mod hashing;
mod links;
mod logic;
mod maps;
mod numbers;
mod operators;
mod order;
mod paths;
mod query;
mod regexes;
mod selection;
mod sequences;
mod sets;
mod text;
mod time;
mod vault;
mod yaml;

use minijinja::Environment;

use super::given::{Filter, Takes, add_filters};

pub(crate) use chance::{letters, seeded};
pub(crate) use charset::decoded;
pub(crate) use crypt::crypt;
pub(crate) use formats::dumped;
pub(crate) use operators::ordered;
pub(crate) use order::is_group;
pub(crate) use paths::normalized;
pub(crate) use regexes::python as python_regex;
pub(crate) use time::{is_time, now};
pub(crate) use yaml::{YamlStyle, dump as yaml};

const FAMILIES: [(&[Filter], Takes); 23] = [
    (operators::FILTERS, Takes::Anything),
    (logic::LENIENT, Takes::Anything),
    (logic::FILTERS, Takes::Values),
    (address::FILTERS, Takes::Values),
    (arrangement::FILTERS, Takes::Values),
    (chance::FILTERS, Takes::Values),
    (crypt::FILTERS, Takes::Values),
    (encoding::FILTERS, Takes::Values),
    (formats::FILTERS, Takes::Values),
    (hashing::FILTERS, Takes::Values),
    (links::FILTERS, Takes::Values),
    (maps::FILTERS, Takes::Values),
    (numbers::FILTERS, Takes::Values),
    (order::FILTERS, Takes::Values),
    (paths::FILTERS, Takes::Values),
    (query::FILTERS, Takes::Values),
    (regexes::FILTERS, Takes::Values),
    (selection::FILTERS, Takes::Values),
    (sequences::FILTERS, Takes::Values),
    (sets::FILTERS, Takes::Values),
    (text::FILTERS, Takes::Values),
    (time::FILTERS, Takes::Values),
    (vault::FILTERS, Takes::Values),
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
