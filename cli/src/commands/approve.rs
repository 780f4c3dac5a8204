use std::path::PathBuf;

use anyhow::Result;

use crate::{approvals, error::Invalid, place, saved};

/// Sign a saved plan with an ssh key, so that it may be applied
///
/// The signature is over the plan's hash, and is kept beside the plan in `PLAN.approvals`.
#[derive(clap::Args)]
pub(crate) struct Approve {
    /// The private key to sign with [default: ~/.ssh/id_ed25519]
    #[arg(short, long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Who approves, as the list of allowed signers names you [default: user@machine]
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only the plan with this hash: the one that was looked at
    #[arg(long, value_name = "HASH")]
    expect: Option<String>,
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
}

impl Approve {
    pub(crate) fn run(self) -> Result<u8> {
        let (saved, _) = saved::read(&self.plan)?;
        let hash = &saved.header.hash;
        if self.expect.as_ref().is_some_and(|expect| expect != hash) {
            return Err(Invalid(format!(
                "{} is {hash}, another plan than is expected",
                self.plan.display()
            ))
            .into());
        }
        let home = place::Places::of_this_user().home;
        let key = self
            .key
            .or_else(|| home.map(|home| home.join(".ssh/id_ed25519")))
            .ok_or_else(|| Invalid("name a key with `--key`".to_owned()))?;
        let who = self.who.unwrap_or_else(place::who);
        approvals::add(&self.plan, hash, &who, &key)?;
        anstream::println!("approved {hash} by {who}");
        Ok(0)
    }
}
