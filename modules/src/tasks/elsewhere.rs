//! Modules for systems that fleetctl does not manage, and for tools that its hosts rarely have. Roles for many systems name them under
//! conditions that are false here: that must be no mistake. Where one would run after all, it fails and says why.

use crate::host::Fault;
use crate::module::Module;

const fn elsewhere(
    name: &'static str,
    aliases: &'static [&'static str],
    run: crate::module::Run,
) -> Module {
    Module {
        name,
        aliases,
        argument_aliases: &[],
        free_form: None,
        read: |_| Ok(()),
        check: |_| Ok(()),
        run,
        #[cfg(feature = "schema")]
        schema: || {
            schemars::json_schema!({
                "type": "object",
                "description": "Known so that roles for many systems can be read; no host that is managed has what it needs."
            })
        },
    }
}

/// A module that only says what is missing.
macro_rules! missing {
    ($($constant:ident $name:literal $aliases:expr, $why:literal;)*) => {
        $(pub(super) static $constant: Module = elsewhere($name, &$aliases, |_, _| Err(Fault::new($why)));)*
    };
}

missing! {
    APK "apk" [], "packages of Alpine are not managed yet: use the module command with `apk`";
    PACMAN "pacman" [], "packages of Arch are not managed yet: use the module command with `pacman`";
    ZYPPER "zypper" [], "packages of SUSE are not managed yet: use the module command with `zypper`";
    ZYPPER_REPOSITORY "zypper_repository" [], "repositories of SUSE are not managed yet: use the module command with `zypper`";
    PORTAGE "portage" [], "packages of Gentoo are not managed yet: use the module command with `emerge`";
    HOMEBREW "homebrew" ["homebrew_cask", "homebrew_tap"], "this module is for macOS, and only Linux hosts are managed";
    PKGNG "pkgng" ["portinstall"], "this module is for FreeBSD, and only Linux hosts are managed";
    OPENBSD_PKG "openbsd_pkg" [], "this module is for OpenBSD, and only Linux hosts are managed";
    RPM_KEY "rpm_key" [], "keys of rpm are not managed yet: use the module command with `rpm --import`";
    SEPORT "seport" ["sefcontext", "selogin"], "this part of SELinux is not managed yet: use the module command with `semanage`";
}
