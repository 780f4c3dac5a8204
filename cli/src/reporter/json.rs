use fleet_engine::{
    event::{Event, SCHEMA},
    recap::Recap,
};

use super::Reporter;

/// One JSON object a line; the first names the schema and its version.
#[derive(Default)]
pub(super) struct Json {
    begun: bool,
}

impl Json {
    fn line(&mut self, value: &serde_json::Value) {
        if !self.begun {
            self.begun = true;
            anstream::println!("{}", serde_json::json!({"schema": SCHEMA}));
        }
        anstream::println!("{value}");
    }
}

impl Reporter for Json {
    fn event(&mut self, event: &Event) {
        if let Ok(value) = serde_json::to_value(event) {
            self.line(&value);
        }
    }

    fn end(&mut self, recap: &Recap) {
        self.line(&serde_json::json!({
            "event": "recap", "hosts": recap.hosts, "exit_code": recap.exit_code(),
        }));
    }
}
