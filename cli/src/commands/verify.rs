use std::path::PathBuf;

use anyhow::Result;

use crate::{
    approvals,
    count::count,
    error::PLAN_REFUSED,
    flags::signers,
    paint::{BAD, GOOD, paint},
    saved,
};

/// Check that a saved plan is whole, and who has approved it
///
/// Exits with 5 where it is not whole, or has fewer approvals than it needs.
#[derive(clap::Args)]
pub(crate) struct Verify {
    /// Who may approve, in the form of ssh-keygen(1) [default: ~/.ssh/allowed_signers]
    #[arg(long, value_name = "FILE")]
    allowed_signers: Option<PathBuf>,
    /// How many people must have approved it
    #[arg(long, value_name = "N", default_value_t = 1)]
    approvals: usize,
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
}

impl Verify {
    pub(crate) fn run(self) -> Result<u8> {
        let (saved, _) = saved::read(&self.plan)?;
        let hash = &saved.header.hash;
        anstream::println!("{} is whole: {hash}", self.plan.display());
        let (good, bad) = approvals::valid(&self.plan, hash, &signers(self.allowed_signers)?)?;
        for who in &good {
            anstream::println!("{} {who}", paint(GOOD, "approved by"));
        }
        for why in &bad {
            anstream::println!("{} {why}", paint(BAD, "not an approval:"));
        }
        if good.len() < self.approvals {
            anstream::println!(
                "{} of {} are there",
                good.len(),
                count(self.approvals, "approval")
            );
            return Ok(PLAN_REFUSED);
        }
        Ok(0)
    }
}
