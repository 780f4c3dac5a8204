use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fleet_wire::{UndoClass, What};

use super::{Fault, Host};

impl Host {
    /// A kernel parameter's live value, white space folded to one space; none where there is no such key.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn sysctl(&self, key: &str) -> Result<Option<String>, Fault> {
        let key = dotted(key);
        match self.overlay.sysctls.get(&key) {
            Some(value) => Ok(Some(value.clone())),
            None => read(&key),
        }
    }

    /// Sets a kernel parameter's live value and reads it back; true where it changes.
    ///
    /// # Errors
    /// When there is no such key, it is read-only, or the kernel keeps another value.
    pub fn set_sysctl(&mut self, key: &str, value: &str) -> Result<bool, Fault> {
        let (key, after) = (dotted(key), fold(value));
        let before = match self.sysctl(&key)? {
            Some(before) => before,
            // A module that a command or a package before it loads may bring the key.
            None if self.open() => String::new(),
            None => return Err(no_such(&key)),
        };
        if before == after {
            return Ok(false);
        }
        self.as_root(&format!("set the kernel parameter {key}"))?;
        let assumed = self.open() && !self.overlay.sysctls.contains_key(&key);
        let what = What::Sysctl {
            key: key.clone(),
            before,
            after: after.clone(),
        };
        let effect = self.effect(what, UndoClass::Exact, assumed);
        if self.recording {
            if !assumed {
                writable(&key)?;
            }
            self.overlay.sysctls.insert(key, after);
            self.report(effect);
            return Ok(true);
        }
        self.perform(effect, |_| write(&key, &after))?;
        Ok(true)
    }
}

/// The host's own name.
const HOSTNAME: &str = "kernel.hostname";

/// A key with dots, as sysctl(8) prints it: the first separator decides which one separates.
fn dotted(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('/') => key.chars().map(swap).collect(),
        _ => key.to_owned(),
    }
}

fn swap(letter: char) -> char {
    match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    }
}

/// A value with white space folded, as the kernel's own tabs are.
fn fold(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn path(key: &str) -> Result<PathBuf, Fault> {
    let below: String = key.chars().map(swap).collect();
    let plain = Path::new(&below)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    if below.is_empty() || !plain {
        return Err(Fault::new(format!(
            "`{key}` is not the name of a kernel parameter"
        )));
    }
    Ok(Path::new("/proc/sys").join(below))
}

pub(super) fn read(key: &str) -> Result<Option<String>, Fault> {
    match fs::read(path(key)?) {
        Ok(bytes) => Ok(Some(fold(&String::from_utf8_lossy(&bytes)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::new(format!(
            "cannot read the kernel parameter {key}: {error}"
        ))),
    }
}

/// Sets one key and reads it back: the kernel clamps some values without a word.
pub(super) fn write(key: &str, value: &str) -> Result<(), Fault> {
    let written = match key {
        // A container whose `/proc/sys` is read-only may still have a name of its own.
        HOSTNAME => rustix::system::sethostname(value.as_bytes()).map_err(io::Error::from),
        _ => fs::write(path(key)?, format!("{value}\n")),
    };
    if let Err(error) = written {
        return Err(match error.kind() {
            // Some keys answer so to a value that names nothing (`tcp_congestion_control`).
            io::ErrorKind::NotFound if path(key)?.exists() => refused(key, value),
            io::ErrorKind::NotFound => no_such(key),
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => read_only(key),
            io::ErrorKind::InvalidInput => refused(key, value),
            _ => Fault::new(format!(
                "cannot set the kernel parameter {key} to `{value}`: {error}"
            )),
        });
    }
    match read(key)? {
        Some(kept) if kept == value => Ok(()),
        Some(kept) => Err(Fault::new(format!(
            "the kernel parameter {key} is `{kept}` after it was set to `{value}`: the kernel does not take that value"
        ))),
        None => Err(no_such(key)),
    }
}

/// Whether a key could be set, without setting it.
fn writable(key: &str) -> Result<(), Fault> {
    use rustix::fs::{Access, access};
    if key == HOSTNAME {
        return Ok(());
    }
    match access(path(key)?, Access::WRITE_OK) {
        Err(rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
            Err(read_only(key))
        }
        _ => Ok(()),
    }
}

fn refused(key: &str, value: &str) -> Fault {
    Fault::new(format!("the kernel refuses the value `{value}` for {key}"))
}

fn no_such(key: &str) -> Fault {
    Fault::new(format!(
        "there is no kernel parameter `{key}` on this host: check its spelling, or load the kernel module that brings it"
    ))
}

fn read_only(key: &str) -> Fault {
    Fault::new(format!(
        "the kernel parameter {key} is read-only on this host (a container may not set it)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dotted_and_lead_to_their_files() {
        assert_eq!(dotted("net/ipv4/tcp_rmem"), "net.ipv4.tcp_rmem");
        assert_eq!(
            dotted("net/ipv4/conf/eth0.1/rp_filter"),
            "net.ipv4.conf.eth0/1.rp_filter"
        );
        assert_eq!(
            path("net.ipv4.conf.eth0/1.rp_filter").unwrap(),
            Path::new("/proc/sys/net/ipv4/conf/eth0.1/rp_filter")
        );
        for wrong in ["", "..", ".etc.passwd"] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_folded() {
        assert_eq!(fold(" 4096\t131072   6291456\n"), "4096 131072 6291456");
    }

    #[test]
    fn a_value_that_names_nothing_is_not_a_key_that_is_missing() {
        let key = "net.ipv4.tcp_congestion_control";
        if !matches!(read(key), Ok(Some(_))) || writable(key).is_err() {
            return;
        }
        assert_eq!(
            write(key, "no_such_one").unwrap_err().message,
            format!("the kernel refuses the value `no_such_one` for {key}")
        );
    }

    #[test]
    fn a_plan_sees_what_it_would_have_set() {
        let mut host = Host::plan();
        let key = "net.core.somaxconn";
        let live = host.sysctl(key).unwrap().unwrap();
        assert!(!host.set_sysctl(key, &live).unwrap());
        if writable(key).is_ok() {
            assert!(host.set_sysctl(key, "12345").unwrap());
            assert_eq!(
                host.sysctl("net/core/somaxconn").unwrap().as_deref(),
                Some("12345")
            );
        }
        assert_eq!(read(key).unwrap(), Some(live));
        let fault = host.set_sysctl("net.core.no_such", "1").unwrap_err();
        assert!(
            fault
                .message
                .starts_with("there is no kernel parameter `net.core.no_such`")
        );
    }
}
