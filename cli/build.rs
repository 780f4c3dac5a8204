//! Builds `fleet-helper` for the hosts and puts it beside `fleetctl`.
//!
//! The helper is static (`+crt-static`), which only a build of its own can be: flags apply to whole
//! builds, and procedural macros cannot be linked with this one.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={problem}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let variable = |name: &str| env::var(name).map_err(|_| format!("cargo did not set {name}"));
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    for watched in ["Cargo.lock", "Cargo.toml", "modules", "wire"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    println!("cargo::rerun-if-env-changed=FLEETCTL_HELPER_TARGET");

    // target/PROFILE/build/PACKAGE-HASH/out
    let out = PathBuf::from(variable("OUT_DIR")?);
    let profile_dir = out
        .ancestors()
        .nth(3)
        .ok_or("an output directory of an unknown shape")?;
    let work = profile_dir.join("../helper");
    // A release made elsewhere may ask for musl or another architecture.
    let target = env::var("FLEETCTL_HELPER_TARGET").or_else(|_| variable("TARGET"))?;

    let status = Command::new(variable("CARGO")?)
        .current_dir(&root)
        .args([
            "build",
            "--quiet",
            "--profile",
            "helper",
            "--package",
            "fleet-modules",
        ])
        .args([
            "--bin",
            "fleet-helper",
            "--features",
            "standalone",
            "--target",
            &target,
        ])
        .arg("--target-dir")
        .arg(&work)
        // What the outer build says of itself (lints, wrappers, flags) is not meant for this one.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static")
        .status()
        .map_err(|problem| format!("cannot start cargo for the helper: {problem}"))?;
    if !status.success() {
        return Err("the helper could not be built (its errors are above)".to_owned());
    }
    let built = work.join(&target).join("helper/fleet-helper");
    // By its architecture, as `fleetctl` looks for it first, and by its plain name for people.
    let arch = target.split('-').next().unwrap_or_default();
    place(&built, &profile_dir.join(format!("fleet-helper-{arch}")))?;
    gzip(&built, &profile_dir.join(format!("fleet-helper-{arch}.gz")))?;
    place(&built, &profile_dir.join("fleet-helper"))
}

/// Packed once here, and not on each machine that sends it.
fn gzip(from: &Path, to: &Path) -> Result<(), String> {
    let unusable = |problem: std::io::Error| {
        format!("cannot pack the helper into {}: {problem}", to.display())
    };
    let bytes = fs::read(from).map_err(unusable)?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = encoder
        .write_all(&bytes)
        .and_then(|()| encoder.finish())
        .map_err(unusable)?;
    fs::write(to, packed).map_err(unusable)
}

/// Copies by rename: a `fleetctl` that is running may be reading the file that was there.
fn place(from: &Path, to: &Path) -> Result<(), String> {
    let unusable =
        |problem: std::io::Error| format!("cannot put the helper at {}: {problem}", to.display());
    let fresh = to.with_extension("new");
    fs::copy(from, &fresh).map_err(unusable)?;
    fs::rename(&fresh, to).map_err(unusable)
}
