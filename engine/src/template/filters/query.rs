//! `json_query`: JMESPath, as `community.general` has it.

use minijinja::{Error, State, Value};

use super::formats::{of_json, to_plain_json};
use crate::template::given::{Filter, Given, failed};
use crate::template::python::text;
use crate::template::resolve::resolve;

pub(super) const FILTERS: &[Filter] = &[Filter {
    names: "json_query community.general.json_query",
    parameters: "expr",
    run: json_query,
}];

fn json_query(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let written = given.need(0).and_then(text::str)?;
    let query = jmespath::compile(&written)
        .map_err(|error| failed(format!("`{written}` is no JMESPath expression: {error}")))?;
    let data = to_plain_json(&resolve(value)?)?;
    let found = query
        .search(data)
        .map_err(|error| failed(format!("`{written}` does not fit its data: {error}")))?;
    let found = serde_json::to_value(&*found)
        .map_err(|error| failed(format!("what `{written}` finds is no value: {error}")))?;
    Ok(of_json(&found))
}
