//! Connecting to real servers: what is answered when it cannot be done, and what is left behind when it can.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod helper;
mod hostile;
mod kept;
mod login;
mod refusals;
mod sshd;

use std::{path::PathBuf, time::Duration};

use fleet_engine::transport::{
    Address, Become, Channel, ConnectError, Helpers, Settings, connect, masters,
};
use tempfile::TempDir;

/// A controller of its own: what it keeps goes when it is dropped.
pub(crate) struct Controller {
    pub(crate) settings: Settings,
    dir: TempDir,
}

impl Controller {
    /// With the helpers of these directories. Its own directory is short: sockets live in it.
    pub(crate) fn new(helpers: Vec<PathBuf>) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("fc")
            .tempdir_in("/tmp")
            .unwrap();
        let settings = Settings::new(dir.path().join("ctl"), Helpers::new(helpers));
        Self { settings, dir }
    }

    pub(crate) async fn connect(
        &self,
        address: &Address,
        who: Option<&Become>,
    ) -> Result<Channel, ConnectError> {
        connect(address, who, &self.settings).await
    }

    /// Why it cannot connect.
    #[track_caller]
    pub(crate) fn refused(&self, address: &Address, who: Option<&Become>) -> ConnectError {
        match run(self.connect(address, who)) {
            Ok(_) => panic!("connected to {address}"),
            Err(problem) => problem,
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        run(masters::disconnect_all(&self.dir.path().join("ctl")));
    }
}

pub(crate) fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(what);
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}
