//! The laws of undo, tried on real trees: undo after apply is as if nothing had been, wherever it was cut off.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use fleet_wire::Effect;

use super::*;
use crate::args::Mode;
use crate::host::{Put, To, journal};

/// A small generator: the same numbers for the same seed, so that a failure can be seen again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }
}

struct World {
    dir: TempDir,
    dice: Dice,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dir: tempfile::tempdir().unwrap(),
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        };
        world.state().prepare().unwrap();
        fs::create_dir(world.root()).unwrap();
        let root = world.root();
        world.grow(&root, 2);
        world
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn state(&self) -> State {
        State::at(self.dir.path().join("state").to_str())
    }

    fn host(&self) -> Host {
        Host::apply(self.state(), "r1", "test")
    }

    fn mode(&mut self) -> u32 {
        *self
            .dice
            .pick(&[0o644, 0o600, 0o755, 0o700, 0o4755, 0o2750, 0o1777, 0o640])
    }

    fn grow(&mut self, dir: &Path, depth: u32) {
        for name in NAMES {
            let path = dir.join(name);
            match self.dice.roll(if depth > 0 { 5 } else { 4 }) {
                0 => continue,
                1 | 2 => {
                    fs::write(&path, format!("{}", self.dice.roll(3))).unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(self.mode())).unwrap();
                }
                3 => symlink(self.dice.pick(&NAMES), &path).unwrap(),
                _ => {
                    fs::create_dir(&path).unwrap();
                    self.grow(&path, depth - 1);
                    let mode = self.mode() | 0o700;
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
        }
    }

    /// One random change, as a module would ask for it. It may be refused, which changes nothing.
    fn change(&mut self, host: &mut Host) {
        let mut path = self.root();
        for _ in 0..=self.dice.roll(3) {
            path.push(self.dice.pick(&NAMES));
        }
        let mode = (self.dice.roll(2) == 0).then(|| Mode::Octal(self.mode()));
        let root = rustix::process::geteuid().is_root();
        let owner = (root && self.dice.roll(4) == 0).then(|| "daemon".to_owned());
        let to = match self.dice.roll(6) {
            0 => To::Absent,
            1 => To::Dir {
                mode: mode.map(|_| Mode::Octal(0o750)),
                owner,
                group: None,
            },
            2 => To::Link {
                target: (*self.dice.pick(&NAMES)).to_owned(),
            },
            3 => To::File {
                content: None,
                mode,
                owner,
                group: None,
            },
            _ => To::File {
                content: Some(format!("{}", self.dice.roll(4)).into()),
                mode,
                owner,
                group: None,
            },
        };
        drop(host.put(Put {
            path,
            to,
            validate: None,
        }));
    }

    /// All that the tree is: kinds, modes, owners, contents, targets.
    fn picture(&self) -> BTreeMap<PathBuf, Entry> {
        let mut all = BTreeMap::new();
        picture(&self.root(), &mut all);
        all
    }
}

fn picture(path: &Path, all: &mut BTreeMap<PathBuf, Entry>) {
    let found = files::look(path).unwrap();
    if found.kind == files::Kind::Dir {
        for name in files::list(path).unwrap().unwrap_or_default() {
            picture(&path.join(name), all);
        }
    }
    all.insert(path.to_owned(), entry_of(&found, &Names::default()));
}

fn copy(from: &Path, to: &Path) {
    drop(fs::remove_dir_all(to));
    assert!(
        Command::new("cp")
            .arg("-a")
            .args([from, to])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn an_undo_after_any_changes_is_as_if_nothing_had_been() {
    for seed in 1..=60 {
        let mut world = World::new(seed);
        let before = world.picture();
        let mut host = world.host();
        for _ in 0..8 {
            world.change(&mut host);
        }
        let changed = world.picture() != before;
        let undone = host.undo();
        assert_eq!(world.picture(), before, "seed {seed}: {undone:?}");
        assert!(
            matches!(
                undone.state,
                UndoneState::RolledBack | UndoneState::Unchanged
            ),
            "seed {seed}: {undone:?}"
        );
        assert!(
            !changed || undone.state == UndoneState::RolledBack,
            "seed {seed}"
        );
        assert!(world.state().cut_off().is_empty());
    }
}

#[test]
fn a_run_that_was_cut_off_anywhere_is_recovered() {
    let mut moments = 0;
    for seed in 100..=118 {
        let mut world = World::new(seed);
        let before = world.picture();
        let mut host = world.host();
        let journal = world.state().journal_path("r1");
        let shots = world.dir.path().join("shots");
        fs::create_dir(&shots).unwrap();
        // The tree behind each effect: an effect is atomic, so there is nothing in between but what is staged.
        copy(&world.root(), &shots.join("0"));
        let mut effects = 0;
        for _ in 0..6 {
            world.change(&mut host);
            let now = host.end().len();
            if now == 1 {
                effects += 1;
                copy(&world.root(), &shots.join(effects.to_string()));
            } else if now > 1 {
                // A tree that was removed: its steps are looked at by the other seeds.
                break;
            }
        }
        let Ok(text) = fs::read(&journal) else {
            continue;
        };
        let backups = world.dir.path().join("backups");
        copy(&world.state().run_dir("r1"), &backups);
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        for cut in 1..lines.len().min(2 * effects + 2) {
            let records = journal::parse(&lines[..cut].concat()).unwrap().0;
            let done = records
                .iter()
                .filter(|record| matches!(record, Record::Done { .. }))
                .count();
            let intent = match records.last() {
                Some(Record::Intent(intent)) => Some((**intent).clone()),
                _ => None,
            };
            // Before the effect was performed, and after it was but before that was written down.
            for performed in if intent.is_some() {
                vec![done, done + 1]
            } else {
                vec![done]
            } {
                let shot = shots.join(performed.to_string());
                if !shot.exists() {
                    continue;
                }
                copy(&shot, &world.root());
                copy(&backups, &world.state().run_dir("r1"));
                // With a torn line behind, as a power failure leaves it.
                fs::write(
                    &journal,
                    [
                        lines[..cut].concat(),
                        lines[cut][..lines[cut].len() / 2].to_vec(),
                    ]
                    .concat(),
                )
                .unwrap();
                if let Some(Intent {
                    temp: Some(temp),
                    effect:
                        Effect {
                            what: What::File { path, .. },
                            ..
                        },
                    ..
                }) = &intent
                    && performed == done
                {
                    fs::write(Path::new(path).with_file_name(temp), "half").unwrap();
                }
                let recovered = recover(&world.state(), None)
                    .unwrap_or_else(|undone| panic!("seed {seed}, line {cut}: {undone:?}"));
                assert_eq!(recovered.len(), 1);
                assert_eq!(
                    world.picture(),
                    before,
                    "seed {seed}, line {cut}, {performed} performed"
                );
                assert!(world.state().cut_off().is_empty());
                moments += 1;
            }
        }
    }
    assert!(moments > 40, "only {moments} moments were looked at");
}

#[test]
fn an_undo_that_was_cut_off_goes_on() {
    let world = World::new(7);
    let mut host = world.host();
    let file = world.root().join("new");
    host.put(Put::content(&file, "1")).unwrap();
    host.put(Put::content(world.root().join("newer"), "2"))
        .unwrap();
    fs::remove_file(world.root().join("newer")).unwrap();
    assert_eq!(host.undo().state, UndoneState::RolledBack);
    assert!(!file.exists());
}

#[test]
fn what_somebody_else_wrote_is_left_and_the_old_is_kept() {
    let world = World::new(3);
    let (mine, theirs) = (world.root().join("mine"), world.root().join("theirs"));
    fs::write(&mine, "before").unwrap();
    fs::write(&theirs, "before").unwrap();
    let mut host = world.host();
    host.put(Put::content(&mine, "run")).unwrap();
    host.put(Put::content(&theirs, "run")).unwrap();
    fs::write(&theirs, "somebody").unwrap();
    let undone = host.undo();
    assert_eq!(undone.state, UndoneState::RollbackConflict);
    assert_eq!(fs::read_to_string(&mine).unwrap(), "before");
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "somebody");
    let problem = undone
        .effects
        .iter()
        .find_map(|effect| effect.problem.clone())
        .unwrap();
    let kept = problem.rsplit(' ').next().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "before");
    assert_eq!(world.state().journaled()[0].state, "rollback_conflict");
}

#[test]
fn a_kept_run_can_be_rolled_back_later_and_only_once() {
    let world = World::new(4);
    let file = world.root().join("conf");
    fs::write(&file, "before").unwrap();
    let mut host = world.host();
    host.put(Put::content(&file, "after")).unwrap();
    assert_eq!(host.keep().unwrap(), UndoneState::Kept);
    assert_eq!(
        rollback(&world.state(), "r1").state,
        UndoneState::RolledBack
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    fs::write(&file, "after").unwrap();
    assert_eq!(rollback(&world.state(), "r1").effects.len(), 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "after");
    assert_eq!(rollback(&world.state(), "r2").state, UndoneState::NotFound);
}

#[test]
fn a_damaged_backup_is_not_put_in_place() {
    let world = World::new(5);
    let file = world.root().join("conf");
    fs::write(&file, "before").unwrap();
    let mut host = world.host();
    host.put(Put::content(&file, "after")).unwrap();
    fs::write(
        world.state().run_dir("r1").join("backup/0/conf.before"),
        "garbage",
    )
    .unwrap();
    let undone = host.undo();
    assert_eq!(undone.state, UndoneState::RollbackFailed);
    assert_eq!(fs::read_to_string(&file).unwrap(), "after");
}
