use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use fleet_wire::{Content, FromHost};
use rustix::fs::{MemfdFlags, memfd_create};
use sha2::{Digest, Sha256};

use super::{Inbox, Out};
use crate::host::{Body, Contents, Fault, State, hex};

/// Larger contents than this do not lie in the helper's own memory.
const IN_MEMORY: u64 = 4 << 20;

/// Fetches contents from the controller.
pub(super) struct Spool {
    out: Out,
    inbox: Rc<Inbox>,
    /// Where large contents may lie; none in a plan, which writes nothing to a disk.
    state: Option<State>,
}

impl Spool {
    pub(super) fn new(out: Out, inbox: Rc<Inbox>, state: Option<State>) -> Self {
        Self { out, inbox, state }
    }

    fn file(&self) -> io::Result<File> {
        match &self.state {
            Some(state) => state.spool(),
            None => Ok(memfd_create("fleetctl-content", MemfdFlags::CLOEXEC)?.into()),
        }
    }
}

impl Contents for Spool {
    fn fetch(&self, content: &Content) -> Result<Body, Fault> {
        let gone = || Fault::new("the controller went away before it gave the task's content");
        let kept =
            |error: io::Error| Fault::new(format!("cannot keep the task's content: {error}"));
        self.out
            .send(&FromHost::Need {
                sha256: content.sha256.clone(),
            })
            .map_err(|_| gone())?;
        let mut file = if content.size > IN_MEMORY {
            Some(self.file().map_err(kept)?)
        } else {
            None
        };
        let mut memory = Vec::new();
        let mut hasher = Sha256::new();
        let mut size = 0;
        loop {
            let part = self.inbox.parts.recv().map_err(|_| gone())?;
            // What is left of a content that an earlier task gave up on.
            if part.sha256 != content.sha256 {
                continue;
            }
            size += part.bytes.len() as u64;
            if size > content.size {
                return Err(Fault::new(
                    "the controller gave more content than it announced",
                ));
            }
            hasher.update(&part.bytes);
            match &mut file {
                Some(file) => file.write_all(&part.bytes).map_err(kept)?,
                None => memory.extend_from_slice(&part.bytes),
            }
            if part.last {
                break;
            }
        }
        if hex(&hasher.finalize()) != content.sha256 {
            return Err(Fault::new("the task's content is not what its hash says"));
        }
        Ok(match file {
            Some(file) => Body::Spooled(Arc::new(file), content.clone()),
            None => memory.into(),
        })
    }
}
