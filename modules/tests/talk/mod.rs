//! One end of a conversation with a helper, as the controller has it.

use std::io::{Read, Write};
use std::path::Path;

use fleet_wire::{
    As, Finish, FromHost, Hello, Json, Mode, Outcome, PROTOCOL, Ready, Task, ToHost, Undone,
    decode, encode,
};
use serde_json::Value;

pub(crate) struct Talk<W: Write, R: Read> {
    to: Option<W>,
    from: R,
    next: u32,
    /// Said in the hello.
    pub(crate) transaction: fleet_wire::Transaction,
    /// Said in the hello.
    pub(crate) controller: u64,
}

impl<W: Write, R: Read> Talk<W, R> {
    pub(crate) fn new(to: W, from: R) -> Self {
        Self {
            to: Some(to),
            from,
            next: 0,
            transaction: fleet_wire::Transaction::default(),
            controller: 1,
        }
    }

    pub(crate) fn send(&mut self, message: &ToHost) {
        self.to
            .as_mut()
            .unwrap()
            .write_all(&encode(message).unwrap())
            .unwrap();
    }

    pub(crate) fn hear(&mut self) -> FromHost {
        loop {
            match self.hear_all() {
                FromHost::LookedAfter { .. } => {}
                other => return other,
            }
        }
    }

    fn hear_all(&mut self) -> FromHost {
        let mut length = [0; 4];
        self.from.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.from.read_exact(&mut body).unwrap();
        decode(&body).unwrap()
    }

    /// Says hello and reads up to the answer.
    pub(crate) fn hello(&mut self, mode: Mode, run: &str, state: &Path) -> FromHost {
        let state_dir = Some(state.to_str().unwrap().to_owned());
        let hello = Hello {
            protocol: PROTOCOL,
            mode,
            run: run.to_owned(),
            who: "ann@desk".to_owned(),
            state_dir,
            lock_timeout_ms: 0,
            controller: self.controller,
            transaction: self.transaction.clone(),
            digest_key: None,
        };
        self.send(&ToHost::Hello(hello));
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            self.from.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        assert_eq!(line, format!("FLEETCTL-HELPER {PROTOCOL}\n").as_bytes());
        self.hear()
    }

    pub(crate) fn ready(&mut self, mode: Mode, run: &str, state: &Path) -> Ready {
        match self.hello(mode, run, state) {
            FromHost::Ready(ready) => ready,
            other => panic!("{other:?}"),
        }
    }

    /// A task with the usual of everything.
    pub(crate) fn task(&mut self, module: &str, args: Value) -> Task {
        self.next += 1;
        Task {
            id: self.next,
            key: String::new(),
            lane: 0,
            group: self.next,
            name: format!("task {}", self.next),
            place: "site.yml:1".to_owned(),
            module: module.to_owned(),
            args: Json(args.to_string()),
            blob: None,
            user: As::Helper,
            environment: Vec::new(),
            check: None,
            ignore_errors: false,
            changed: None,
            no_log: false,
            notify: Vec::new(),
            only_if: None,
            planned: None,
            timeout_s: 0,
            background_s: None,
        }
    }

    /// Sends a task and reads up to its end.
    pub(crate) fn run(&mut self, task: Task) -> Outcome {
        self.send(&ToHost::Task(Box::new(task)));
        self.done()
    }

    pub(crate) fn done(&mut self) -> Outcome {
        loop {
            match self.hear() {
                FromHost::Done(outcome) => return *outcome,
                FromHost::Started { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn finish(&mut self, how: Finish) -> Undone {
        self.send(&ToHost::Finish(how));
        match self.hear() {
            FromHost::Finished(undone) => undone,
            other => panic!("{other:?}"),
        }
    }

    /// Goes away without a word, and waits for the helper to do so, too.
    pub(crate) fn hang_up(mut self) {
        self.to = None;
        let mut rest = Vec::new();
        self.from.read_to_end(&mut rest).unwrap();
    }
}

pub(crate) fn result(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.result.0).unwrap()
}
