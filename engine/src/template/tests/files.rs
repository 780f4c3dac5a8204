//! Tests of paths on the controller.

use std::path::{Path, PathBuf};

use minijinja::{Error, Value};

use crate::template::controller::Controller;
use crate::template::evaluation;
use crate::template::given::{Given, Test, failed};
use crate::template::python::text;

pub(super) const TESTS: &[Test] = &[
    Test {
        names: "abs is_abs",
        parameters: "",
        run: |_, value, _| Ok(text::str(value)?.starts_with('/')),
    },
    Test {
        names: "exists",
        parameters: "",
        run: |_, value, _| on_disk(value, |controller, path| controller.exists(path)),
    },
    Test {
        names: "file is_file",
        parameters: "",
        run: |_, value, _| {
            on_disk(value, |controller, path| {
                controller.exists(path) && !controller.is_dir(path)
            })
        },
    },
    Test {
        names: "directory is_dir",
        parameters: "",
        run: |_, value, _| on_disk(value, |controller, path| controller.is_dir(path)),
    },
    Test {
        names: "link is_link",
        parameters: "",
        run: |_, value, _| on_disk(value, |controller, path| controller.is_link(path)),
    },
    Test {
        names: "link_exists",
        parameters: "",
        run: |_, value, _| {
            on_disk(value, |controller, path| {
                controller.exists(path) || controller.is_link(path)
            })
        },
    },
    Test {
        names: "mount is_mount",
        parameters: "",
        run: |_, value, _| mount(value),
    },
    Test {
        names: "same_file is_same_file",
        parameters: "other",
        run: |_, value, given| same_file(value, given),
    },
];

fn path(value: &Value) -> Result<PathBuf, Error> {
    let templar = evaluation::current()?.templar.clone();
    Ok(templar
        .settings()
        .playbook_dir
        .join(templar.expand_user(Path::new(&text::str(value)?))))
}

fn on_disk(value: &Value, holds: fn(&dyn Controller, &Path) -> bool) -> Result<bool, Error> {
    let path = path(value)?;
    Ok(holds(&*evaluation::current()?.templar.controller(), &path))
}

/// Whether something is mounted there, by the kernel's own list.
fn mount(value: &Value) -> Result<bool, Error> {
    let path = path(value)?;
    let controller = evaluation::current()?.templar.controller();
    let Ok(path) = controller.real_path(&path) else {
        return Ok(false);
    };
    let mounts = controller
        .read(Path::new("/proc/self/mountinfo"))
        .map_err(|error| failed(format!("the controller's mounts cannot be read: {error}")))?;
    Ok(String::from_utf8_lossy(&mounts).lines().any(|line| {
        let place = line.split(' ').nth(4).unwrap_or_default();
        Path::new(&place.replace("\\040", " ")) == path
    }))
}

fn same_file(value: &Value, given: &Given) -> Result<bool, Error> {
    let evaluation = evaluation::current()?;
    let real = |value: &Value| -> Result<Option<PathBuf>, Error> {
        Ok(evaluation
            .templar
            .controller()
            .real_path(&path(value)?)
            .ok())
    };
    let (one, other) = (real(value)?, real(given.need(0)?)?);
    Ok(one.is_some() && one == other)
}
