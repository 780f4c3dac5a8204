//! The rules of docs/architecture.md that say which crate may know which, over the packages' manifests.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// By the name of each package of this project: what it names as its dependencies, those of its tests left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let said = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let metadata: Value = serde_json::from_slice(&said.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().unwrap();
            let own = all
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(name);
            (name(package), own.collect())
        })
        .collect()
}

/// The crates of this project that a crate may name.
const LAYERS: [(&str, &[&str]); 6] = [
    ("fleet-wire", &[]),
    ("fleet-yaml", &[]),
    ("fleet-modules", &["fleet-wire"]),
    (
        "fleet-engine",
        &["fleet-modules", "fleet-wire", "fleet-yaml"],
    ),
    ("fleetctl", &["fleet-engine", "fleet-wire", "fleet-yaml"]),
    ("fleet-tests", &[]),
];

#[test]
fn crates_know_only_the_layers_below_them() {
    let packages = dependencies();
    assert_eq!(
        packages.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        LAYERS.iter().map(|(name, _)| *name).collect(),
        "each crate has its layer here"
    );
    for (name, allowed) in LAYERS {
        for dependency in packages[name]
            .iter()
            .filter(|name| packages.contains_key(*name))
        {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not know {dependency}"
            );
        }
    }
}

#[test]
fn what_talks_to_people_is_known_to_the_edge_alone() {
    for (name, dependencies) in dependencies() {
        for edge in ["anyhow", "clap", "indicatif", "anstream", "rpassword"] {
            assert!(
                name == "fleetctl" || !dependencies.contains(edge),
                "{name} must not know {edge}"
            );
        }
    }
}

#[test]
fn the_helper_is_small_because_of_what_it_does_without() {
    let packages = dependencies();
    for name in ["fleet-modules", "fleet-wire"] {
        for heavy in [
            "tokio",
            "minijinja",
            "serde_yaml",
            "yaml_serde",
            "regex",
            "openssh",
        ] {
            assert!(
                !packages[name].contains(heavy),
                "{name} must not know {heavy}"
            );
        }
    }
}

/// Two versions of a crate are two truths: the workspace's manifest holds the only one.
#[test]
fn versions_stand_in_the_manifest_of_the_workspace_alone() {
    let mut looked_at = 0;
    for folder in ["cli", "engine", "modules", "tests", "wire", "yaml"] {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let mut within = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                within = line.contains("dependencies");
            } else if within && line.contains('=') {
                looked_at += 1;
                let own = line.contains("path = ") && !line.contains("version");
                assert!(
                    own || line.contains("workspace = true"),
                    "{folder}/Cargo.toml says a version of its own: {line}"
                );
            }
        }
    }
    assert!(looked_at > 30, "only {looked_at} dependencies were found");
}
