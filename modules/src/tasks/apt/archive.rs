//! A package from a file of its own.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::host::{Fault, Host, Managed, PackageChange};

/// Installs a package's file, with what it depends on. None in a plan that cannot see the file yet.
pub(super) fn install(
    host: &mut Host,
    deb: &str,
    force: bool,
    change: &PackageChange,
) -> Result<Option<Managed>, Fault> {
    if deb.contains("://") {
        let fetched = Fetched::get(host, deb)?;
        return install_file(host, &fetched.file, force, change);
    }
    install_file(host, Path::new(deb), force, change)
}

fn install_file(
    host: &mut Host,
    file: &Path,
    force: bool,
    change: &PackageChange,
) -> Result<Option<Managed>, Fault> {
    let file = host.resolve(file)?;
    if !file.exists() {
        // A file that is only planned has nothing in it yet.
        return match host.open() || host.planning() && host.read(&file)?.is_some() {
            true => Ok(None),
            false => Err(Fault::new(format!(
                "Unable to install package: there is no file {}",
                file.display()
            ))),
        };
    }
    let path = file.display().to_string();
    let shown = host.probe(&[
        "dpkg-deb",
        "-f",
        &path,
        "Package",
        "Version",
        "Architecture",
    ])?;
    let text = shown.text();
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::to_owned)
    };
    let (Some(name), Some(version)) = (field("Package: "), field("Version: ")) else {
        return Err(Fault::new(format!(
            "Unable to install package: {path} is no package of Debian: {}",
            shown.complaint()
        )));
    };
    let qualified = field("Architecture: ").map(|architecture| format!("{name}:{architecture}"));
    let installed = match qualified {
        Some(qualified) => host.package(&qualified)?,
        None => host.package(&name)?,
    };
    if installed.as_deref() == Some(version.as_str()) && !force {
        return Ok(Some(Managed::default()));
    }
    host.manage("install", &[path], change).map(Some)
}

/// A file that was fetched, and goes when it is done with.
struct Fetched {
    dir: PathBuf,
    file: PathBuf,
}

impl Fetched {
    fn get(host: &Host, url: &str) -> Result<Self, Fault> {
        let name = url
            .split(['?', '#'])
            .next()
            .unwrap_or(url)
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let name = if name.ends_with(".deb") {
            name
        } else {
            "package.deb"
        };
        let dir = std::env::temp_dir().join(format!("fleetctl-deb-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        // apt's own user reads what it installs.
        DirBuilder::new()
            .mode(0o755)
            .create(&dir)
            .map_err(|error| Fault::io("make", &dir, error))?;
        let fetched = Self {
            file: dir.join(name),
            dir,
        };
        let to = fetched.file.display().to_string();
        let curl = [
            "curl",
            "-fsSL",
            "--connect-timeout",
            "20",
            "-o",
            &to,
            "--",
            url,
        ];
        let wget = ["wget", "-q", "-O", &to, "--", url];
        let helper = ["/usr/lib/apt/apt-helper", "download-file", url, &to];
        let mut problem = None;
        for argv in [&curl[..], &wget, &helper] {
            match host.probe(argv) {
                Ok(output) if output.ok() => return Ok(fetched),
                Ok(output) => drop(problem.get_or_insert(output.complaint())),
                Err(_) => {}
            }
        }
        let problem =
            problem.unwrap_or_else(|| "this host has none of curl, wget and apt-helper".to_owned());
        Err(Fault::new(format!("cannot fetch {url}: {problem}")))
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // Nobody needs it; what cannot be removed lies in a directory that is emptied at boot.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
