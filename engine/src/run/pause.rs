//! `pause`: waits for a time or for a person.

use std::time::{Duration, Instant};

use fleet_wire::Mode;
use fleet_yaml::Node;
use indexmap::IndexMap;
use serde_json::json;

use super::{
    dispatch::Unfit,
    host::Host,
    local::{Done, text},
    scope::HostScope,
};

pub(super) async fn pause(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let minutes = host.number(arguments.get("minutes"), scope).await?;
    let seconds = host.number(arguments.get("seconds"), scope).await?;
    let prompt = text(host, arguments, "prompt", scope).await?;
    let echo = host.flag(arguments.get("echo"), scope).await? != Some(false);
    let wait = match (minutes, seconds) {
        (Some(_), Some(_)) => {
            return Err(Unfit::Problem(
                "parameters are mutually exclusive: minutes|seconds".to_owned(),
            ));
        }
        (Some(minutes), None) => Some(minutes * 60.0),
        (None, seconds) => seconds,
    };
    let wait = wait.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)));
    // What was sent before it is not to wait with it.
    host.drain().await?;
    let began = Instant::now();
    let mut input = String::new();
    // A plan waits for nobody.
    if host.shared.mode == Mode::Apply {
        match (wait, &host.shared.settings.ask) {
            (Some(wait), _) => tokio::time::sleep(wait).await,
            (None, Some(ask)) => {
                let ask = std::sync::Arc::clone(ask);
                let question = prompt
                    .clone()
                    .unwrap_or_else(|| "Press enter to continue, Ctrl+C to interrupt".to_owned());
                let answer = tokio::task::spawn_blocking(move || ask(&question, echo)).await;
                input = answer.ok().flatten().unwrap_or_default();
            }
            (None, None) => {
                let text = format!(
                    "{}: nobody is there to answer; going on",
                    scope_place(arguments)
                );
                host.shared
                    .emit(crate::event::Event::Warning { host: None, text })
                    .await;
            }
        }
    }
    let delta = began.elapsed().as_secs();
    let waited = match (minutes, seconds) {
        (Some(minutes), _) => format!("Paused for {minutes} minutes"),
        (None, _) => format!("Paused for {:.2} seconds", began.elapsed().as_secs_f64()),
    };
    Ok(Done::ok(json!({
        "changed": false, "rc": 0, "stdout": waited, "stderr": "", "delta": delta, "echo": echo, "user_input": input,
    })))
}

fn scope_place(arguments: &IndexMap<String, Node>) -> String {
    arguments
        .values()
        .next()
        .map_or_else(|| "pause".to_owned(), |node| node.span.to_string())
}
