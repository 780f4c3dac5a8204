//! What a module answers: the JSON object in its output, and what goes before and behind it.

use serde_json::{Map, Value};

use crate::host::{Fault, Output, Verdict};
use crate::module::{Report, Status};

/// What stays of a module's output in a failure, in bytes.
const SHOWN: usize = 64 << 10;

/// A module's answer.
#[derive(Debug)]
pub(super) struct Answer {
    fields: Map<String, Value>,
    failed: bool,
}

impl Answer {
    /// Reads the output of a module that has ended.
    pub(super) fn read(output: &Output) -> Self {
        let stdout = output.text();
        match parse(&stdout) {
            Ok((mut fields, junk)) => {
                if let Some(junk) = junk {
                    let warning = format!("Module invocation had junk after the JSON data: {junk}");
                    match fields.get_mut("warnings") {
                        Some(Value::Array(warnings)) => warnings.push(warning.into()),
                        _ => drop(fields.insert("warnings".to_owned(), vec![warning].into())),
                    }
                }
                for stream in ["stdout", "stderr"] {
                    let lines = format!("{stream}_lines");
                    if let Some(Value::String(text)) = fields.get(stream)
                        && !fields.contains_key(&lines)
                    {
                        let text: Vec<&str> = text.lines().collect();
                        let text = text.into();
                        fields.insert(lines, text);
                    }
                }
                let failed = fields.get("failed").map_or_else(|| rc_says(&fields), truth);
                Self { fields, failed }
            }
            Err(why) => {
                let why = match output.cut {
                    true => format!("{why}: its output is longer than 2 MiB"),
                    false => why,
                };
                let mut fields = Map::new();
                let message = format!("Module result deserialization failed: {why}");
                fields.insert("msg".to_owned(), message.into());
                fields.insert("module_stdout".to_owned(), shown(&stdout).into());
                fields.insert(
                    "module_stderr".to_owned(),
                    shown(&output.error_text()).into(),
                );
                fields.insert("rc".to_owned(), output.rc.into());
                Self {
                    fields,
                    failed: true,
                }
            }
        }
    }

    /// Whether it changed something, as it says itself.
    pub(super) fn verdict(&self) -> Verdict {
        match (self.says("changed"), self.failed) {
            (true, _) => Verdict::Changed,
            (false, true) => Verdict::Failed,
            (false, false) => Verdict::Unchanged,
        }
    }

    pub(super) fn skipped(&self) -> bool {
        !self.failed && self.says("skipped")
    }

    fn says(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(truth)
    }

    /// The answer as a task's report, or its failure.
    pub(super) fn report(self) -> Result<Report, Fault> {
        if self.failed {
            let mut fields = self.fields;
            let message = match fields.remove("msg") {
                Some(Value::String(message)) => message,
                Some(other) => other.to_string(),
                None => "the module failed and did not say why".to_owned(),
            };
            let mut fault = Fault::new(message);
            fault.fields = fields;
            return Err(fault);
        }
        let status = self.skipped().then_some(Status::Skipped);
        Ok(Report {
            status,
            ..self.fields()
        })
    }

    /// The answer's fields alone.
    pub(super) fn fields(self) -> Report {
        Report {
            fields: self.fields,
            status: None,
        }
    }
}

fn truth(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::String(text) => matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "yes" | "on" | "1" | "y" | "t"
        ),
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        _ => false,
    }
}

/// A module that does not say whether it failed says it by the exit status that it tells of.
fn rc_says(fields: &Map<String, Value>) -> bool {
    match fields.get("rc") {
        Some(Value::Number(rc)) => rc.as_i64() != Some(0),
        Some(Value::String(rc)) => rc != "0",
        _ => false,
    }
}

/// The object and what is behind it. Lines before it are the talk of programs that the module ran.
fn parse(stdout: &str) -> Result<(Map<String, Value>, Option<String>), String> {
    let mut start = None;
    let mut at = 0;
    for line in stdout.split_inclusive('\n') {
        if line.trim_start().starts_with('{') {
            start = Some(at);
            break;
        }
        at += line.len();
    }
    let Some(start) = start else {
        return Err("No start of json char found".to_owned());
    };
    let text = stdout[start..].trim_end();
    // The object may go over many lines; it ends with the last line that ends with a bracket.
    let mut ends = text
        .char_indices()
        .filter(|(at, letter)| {
            *letter == '}'
                && text[at + 1..]
                    .split('\n')
                    .next()
                    .is_none_or(|rest| rest.trim().is_empty())
        })
        .map(|(at, _)| at + 1)
        .collect::<Vec<_>>();
    let Some(end) = ends.pop() else {
        return Err("No end of json char found".to_owned());
    };
    let junk = text[end..].trim();
    match serde_json::from_str(&text[..end]) {
        Ok(fields) => Ok((fields, (!junk.is_empty()).then(|| junk.to_owned()))),
        Err(problem) => Err(problem.to_string()),
    }
}

/// A text that is not too long for a result.
fn shown(text: &str) -> &str {
    let mut end = text.len().min(SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Answer;
    use crate::host::{Output, Verdict};
    use crate::module::Status;

    fn read(stdout: &str, rc: i32) -> Answer {
        Answer::read(&Output {
            rc,
            stdout: stdout.into(),
            stderr: b"err\n".to_vec(),
            cut: false,
        })
    }

    fn fields(stdout: &str) -> Value {
        read(stdout, 0).fields().fields.into()
    }

    #[test]
    fn the_object_is_taken_out_of_what_is_around_it() {
        assert_eq!(
            fields("junk\n{\"changed\": true}\ntrailing\n"),
            json!({"changed": true, "warnings": ["Module invocation had junk after the JSON data: trailing"]})
        );
        assert_eq!(fields("\n\n{\n \"a\": {\n }\n}\n"), json!({"a": {}}));
        assert_eq!(
            fields("{\"stdout\": \"a\\nb\"}"),
            json!({"stdout": "a\nb", "stdout_lines": ["a", "b"]})
        );
    }

    #[test]
    fn what_it_says_of_itself_decides() {
        for (stdout, rc, verdict) in [
            ("{\"changed\": true}", 0, Verdict::Changed),
            ("{\"changed\": \"yes\"}", 0, Verdict::Changed),
            ("{\"msg\": \"hi\"}", 4, Verdict::Unchanged),
            ("{\"rc\": 5}", 0, Verdict::Failed),
            ("{\"rc\": 5, \"failed\": false}", 0, Verdict::Unchanged),
            ("{\"failed\": true}", 0, Verdict::Failed),
            ("[1, 2]", 0, Verdict::Failed),
        ] {
            assert_eq!(read(stdout, rc).verdict(), verdict, "{stdout}");
        }
        let skipped = read("{\"skipped\": true}", 0).report().unwrap();
        assert_eq!(skipped.status, Some(Status::Skipped));
    }

    #[test]
    fn an_output_without_an_object_is_a_failure_that_shows_it() {
        let fault = read("no json\n", 3).report().unwrap_err();
        assert_eq!(
            fault.message,
            "Module result deserialization failed: No start of json char found"
        );
        assert_eq!(
            Value::from(fault.fields),
            json!({"module_stdout": "no json\n", "module_stderr": "err\n", "rc": 3})
        );
    }
}
