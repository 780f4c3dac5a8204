//! The helper is one small file that needs nothing of its host.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The helper that was built beside the test that runs.
fn helper() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let mut places = own.ancestors().skip(1).map(|dir| dir.join("fleet-helper"));
    places
        .find(|path| path.is_file())
        .expect("`cargo build -p fleetctl` builds the helper")
}

/// The kinds of an ELF file's program headers.
fn program_headers(elf: &[u8]) -> Vec<u32> {
    assert_eq!(elf[..5], [0x7f, b'E', b'L', b'F', 2], "a 64-bit ELF file");
    let word = |at: usize, bytes: usize| {
        let field = &elf[at..at + bytes];
        field
            .iter()
            .rev()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    let at = |value: u64| usize::try_from(value).unwrap();
    // e_phoff, e_phentsize and e_phnum; p_type is the first field of each.
    let (offset, size, count) = (at(word(32, 8)), at(word(54, 2)), at(word(56, 2)));
    (0..count)
        .map(|index| u32::try_from(word(offset + index * size, 4)).unwrap())
        .collect()
}

#[test]
fn it_is_static_and_small() {
    const PT_LOAD: u32 = 1;
    const PT_INTERP: u32 = 3;
    let elf = fs::read(helper()).unwrap();
    let headers = program_headers(&elf);
    assert!(headers.contains(&PT_LOAD), "{headers:?}");
    assert!(
        !headers.contains(&PT_INTERP),
        "it asks for a dynamic loader"
    );
    // It holds every module; of that less than half travels.
    assert!(
        elf.len() <= 9 << 19,
        "{} bytes are more than 4.5 MB",
        elf.len()
    );
    // The check itself can see an interpreter: this very test has one.
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(program_headers(&own).contains(&PT_INTERP));
}

/// Not even `/proc` is there, and it says who it is.
#[test]
fn it_runs_where_nothing_else_is() {
    let root = tempfile::tempdir().unwrap();
    fs::copy(helper(), root.path().join("fleet-helper")).unwrap();
    let said = Command::new("chroot")
        .arg(root.path())
        .args(["/fleet-helper", "--version"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && text.starts_with("fleet-helper "),
        "it needs root: {said:?}"
    );
}
