//! Tests of what a task registered.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Given, Test, failed};
use crate::template::poison;
use crate::template::python::text;

/// `skipped` can be told even of a result that is not known: what is going to run is not skipped.
pub(super) const LENIENT: &[Test] = &[Test {
    names: "skipped skip",
    parameters: "",
    run: |_, value, _| {
        if poison::is_poison(value) {
            Ok(false)
        } else {
            flag(value, "skipped")
        }
    },
}];

/// Whether a text may be taken for a template. Ansible has this test for its own test suite only; of its tags there is
/// one here.
fn tagged_with(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let tag = given.text(0, "")?;
    Ok(tag == "TrustedAsTemplate" && value.is_safe())
}

pub(super) const TESTS: &[Test] = &[
    Test {
        names: "failed failure",
        parameters: "",
        run: |_, value, _| flag(value, "failed"),
    },
    Test {
        names: "succeeded success successful",
        parameters: "",
        run: |_, value, _| Ok(!flag(value, "failed")?),
    },
    Test {
        names: "changed change",
        parameters: "",
        run: |_, value, _| changed(value),
    },
    Test {
        names: "ansible._protomatter.tagged_with",
        parameters: "tag",
        run: tagged_with,
    },
    Test {
        names: "unreachable",
        parameters: "",
        run: |_, value, _| flag(value, "unreachable"),
    },
    Test {
        names: "reachable",
        parameters: "",
        run: |_, value, _| Ok(!flag(value, "unreachable")?),
    },
    Test {
        names: "timedout",
        parameters: "",
        run: |_, value, _| Ok(part(value, "timedout")?.is_true()),
    },
    Test {
        names: "started",
        parameters: "",
        // What was never put into the background was started, too.
        run: |_, value, _| Ok(part(value, "started")?.is_undefined() || flag(value, "started")?),
    },
    Test {
        names: "finished",
        parameters: "",
        // What was never put into the background has finished.
        run: |_, value, _| Ok(part(value, "finished")?.is_undefined() || flag(value, "finished")?),
    },
];

fn part(value: &Value, name: &str) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(poison::undefined(value));
    }
    if value.kind() != ValueKind::Map {
        return Err(failed(format!(
            "this test needs what a task registered, found {}",
            text::type_name(value)
        )));
    }
    value.get_attr(name)
}

fn flag(value: &Value, name: &str) -> Result<bool, Error> {
    let found = part(value, name)?;
    Ok(!poison::touch(&found) && !found.is_undefined() && found.is_true())
}

/// A loop's result has changed if one of its items has.
fn changed(value: &Value) -> Result<bool, Error> {
    let own = part(value, "changed")?;
    if !own.is_undefined() {
        return flag(value, "changed");
    }
    let results = part(value, "results")?;
    if results.is_undefined() {
        return Ok(false);
    }
    for result in results.try_iter()?.checked() {
        if flag(&result?, "changed")? {
            return Ok(true);
        }
    }
    Ok(false)
}
