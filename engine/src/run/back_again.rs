//! Waiting for a host to be reachable: after a boot that was asked for (`reboot`), or for any other reason
//! (`wait_for_connection`).
//!
//! The conversation is ended before the host goes: its changes stay as they are, and are still undone by a later failure of
//! the same run.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fleet_modules::base64;
use fleet_wire::{Mode, Outcome, Status};
use fleet_yaml::Node;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{
    dispatch::{Unfit, done},
    errand::Errand,
    host::{Host, Stop},
    local::Done,
    scope::HostScope,
};
use crate::event::HostEnd;

/// The module that boots a host anew.
pub(super) const REBOOT: &str = "reboot";
/// What is another text after each boot: random(4).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How long a host may take, where nobody says, in seconds.
const TIMEOUT: f64 = 600.0;

impl Host {
    /// Waits until a host that was told to boot has done so.
    pub(super) async fn rebooted(
        &mut self,
        name: &str,
        args: &Map<String, Value>,
        begun: &Outcome,
    ) -> Result<Outcome, Unfit> {
        let number = |name: &str| match args.get(name)? {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        };
        let result: Value = serde_json::from_str(&begun.result.0).unwrap_or_default();
        let before = result
            .get("boot_id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let began = Instant::now();
        self.hang_up(name).await?;
        let limit = Duration::from_secs_f64(
            number("reboot_timeout")
                .filter(|limit| *limit > 0.0)
                .unwrap_or(TIMEOUT),
        );
        loop {
            let heard = match self.boot_id(name).await {
                Ok(now) if now != before => break,
                Ok(_) => "it has not booted: it is still the boot of before".to_owned(),
                Err(why) => why,
            };
            if began.elapsed() > limit {
                let message = format!(
                    "Timed out waiting for last boot time check (timeout={}): {heard}",
                    limit.as_secs()
                );
                let told = json!({"changed": true, "failed": true, "rebooted": true, "elapsed": began.elapsed().as_secs(), "msg": message});
                return Ok(done(Status::Failed, &told));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if let Some(delay) = number("post_reboot_delay").filter(|delay| *delay > 0.0) {
            tokio::time::sleep(Duration::from_secs_f64(delay)).await;
        }
        let told = json!({"changed": true, "rebooted": true, "elapsed": began.elapsed().as_secs()});
        Ok(Outcome {
            effects: begun.effects.clone(),
            ..done(Status::Changed, &told)
        })
    }

    /// Ends the conversation with a host that is about to go.
    async fn hang_up(&mut self, name: &str) -> Result<(), Unfit> {
        self.drain().await?;
        self.forget_link();
        let shared = Arc::clone(&self.shared);
        shared
            .reset(name)
            .await
            .map_err(|why| Unfit::Stop(Stop::Lost(why)))
    }

    /// Which boot of a host it is that answers.
    async fn boot_id(&self, name: &str) -> Result<String, String> {
        let why = |end| match end {
            HostEnd::Unreachable { message }
            | HostEnd::Refused { message, .. }
            | HostEnd::Lost { message } => message,
            _ => "it does not answer".to_owned(),
        };
        let mut errand = Errand::connect(&self.shared, name, false, Mode::Read)
            .await
            .map_err(why)?;
        let read = errand
            .module("slurp", &json!({"src": BOOT_ID}))
            .await
            .map_err(why)?;
        errand.close().await;
        let content = read
            .get("content")
            .and_then(Value::as_str)
            .and_then(base64::decode);
        Ok(String::from_utf8_lossy(&content.unwrap_or_default())
            .trim()
            .to_owned())
    }
}

/// `wait_for_connection`
pub(super) async fn wait(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let delay = host
        .number(arguments.get("delay"), scope)
        .await?
        .unwrap_or(0.0);
    let limit = host
        .number(arguments.get("timeout"), scope)
        .await?
        .unwrap_or(TIMEOUT);
    let sleep = host
        .number(arguments.get("sleep"), scope)
        .await?
        .unwrap_or(1.0);
    let seconds = |number: f64| Duration::from_secs_f64(number.max(0.0));
    if host.shared.mode == Mode::Plan {
        return Ok(Done {
            status: Status::Skipped,
            result: json!({"changed": false, "skipped": true, "elapsed": 0}),
        });
    }
    let name = host.name.clone();
    host.hang_up(&name).await?;
    let began = Instant::now();
    tokio::time::sleep(seconds(delay)).await;
    loop {
        let Err(heard) = host.boot_id(&name).await else {
            return Ok(Done::ok(
                json!({"changed": false, "elapsed": began.elapsed().as_secs()}),
            ));
        };
        if began.elapsed() > seconds(limit) {
            let message = format!("timed out waiting for ping module test: {heard}");
            return Err(Unfit::Failed(Box::new(json!({
                "changed": false, "failed": true, "elapsed": began.elapsed().as_secs(), "msg": message,
            }))));
        }
        tokio::time::sleep(seconds(sleep)).await;
    }
}
