//! The tests: what stands after `is`.

mod files;
mod results;
mod values;
mod version;

use minijinja::Environment;

use super::given::{Takes, Test, add_tests};

const FAMILIES: [(&[Test], Takes); 6] = [
    (values::LENIENT, Takes::Anything),
    (results::LENIENT, Takes::Anything),
    (values::TESTS, Takes::Values),
    (results::TESTS, Takes::Values),
    (files::TESTS, Takes::Values),
    (version::TESTS, Takes::Values),
];

/// Adds every test.
pub(crate) fn add(environment: &mut Environment<'static>) {
    for (family, takes) in FAMILIES {
        add_tests(environment, family, takes);
    }
}

/// The names of all tests, without their collection.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES
        .into_iter()
        .flat_map(|(family, _)| family)
        .flat_map(|test| test.names.split_whitespace())
}
