//! From the controller to a helper on a host: ssh masters, the bootstrap, the channel of frames.

mod address;
mod bootstrap;
mod channel;
mod diagnosis;
pub mod enroll;
mod error;
mod helpers;
pub mod masters;
mod start;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::sync::Semaphore;

pub use address::{Address, Become, HostKeys, Kind, Method};
pub use channel::{Channel, Receiver, Sender};
pub use error::{ChannelError, ConnectError, Said, Target};
pub use helpers::Helpers;
pub use start::connect;

/// Connections that are being opened at the same time: a stock sshd or bastion refuses more.
const CONNECTING: usize = 32;
/// Those of them that go by way of a jump host, or try again: all may meet the same sshd, and a stock one drops logins
/// beyond ten (`MaxStartups`).
const CAREFULLY: usize = 8;

/// What all connections of a run share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the sockets of ssh masters are: a short path in a directory that only this user can use.
    pub control_dir: PathBuf,
    /// How long a master outlives its last use.
    pub persist: Duration,
    /// The helpers that can be sent.
    pub helpers: Arc<Helpers>,
    /// Connections that are being opened at the same time.
    pub connect_limit: Arc<Semaphore>,
    /// Connections that are being opened through what may be the same server.
    careful_limit: Arc<Semaphore>,
    /// What dead masters left behind is removed once.
    swept: Arc<OnceLock<()>>,
}

impl Settings {
    /// Masters that stay for a minute, 32 connections being opened at a time.
    #[must_use]
    pub fn new(control_dir: PathBuf, helpers: Helpers) -> Self {
        Self {
            control_dir,
            persist: Duration::from_secs(60),
            helpers: Arc::new(helpers),
            connect_limit: Arc::new(Semaphore::new(CONNECTING)),
            careful_limit: Arc::new(Semaphore::new(CAREFULLY)),
            swept: Arc::default(),
        }
    }
}
