mod editor;
mod secrets;

use std::{
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use fleet_engine::{
    config::Config,
    vault::{self, Permissions, Purpose, Vault as Keys, VaultId, VaultSecret},
};
use zeroize::Zeroizing;

pub(crate) use secrets::VaultFlags;

use crate::{
    error::{self, Invalid, Mistakes},
    paint,
};

/// What ansible-vault returns where its work fails.
const FAILED: u8 = 1;
/// What it returns where it is called in a way that makes no sense.
const MISUSED: u8 = 5;

/// Encrypt and decrypt files and values, as ansible-vault does
///
/// Takes ansible-vault's flags, reads and writes its formats, and returns its codes: 0, 1 for a failure, 5 for a call that
/// makes no sense. `-` is the standard input.
#[derive(clap::Args)]
pub(crate) struct Vault {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Create(Create),
    Edit(Edit),
    View(View),
    Encrypt(Encrypt),
    Decrypt(Decrypt),
    #[command(name = "encrypt_string", alias = "encrypt-string")]
    EncryptString(EncryptString),
    Rekey(Rekey),
}

/// What all verbs take.
#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    flags: VaultFlags,
    /// Say more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Which secret seals.
#[derive(clap::Args)]
struct Sealing {
    /// The id of the secret to encrypt with, where there are several
    #[arg(long, value_name = "LABEL", help_heading = "Vault")]
    encrypt_vault_id: Option<String>,
}

/// Make an encrypted file, and edit it
#[derive(clap::Args)]
struct Create {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    sealing: Sealing,
    /// Open the editor even where there is no terminal
    #[arg(long)]
    skip_tty_check: bool,
    /// The file
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Edit encrypted files
#[derive(clap::Args)]
struct Edit {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    sealing: Sealing,
    /// The files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Show encrypted files
#[derive(clap::Args)]
struct View {
    #[command(flatten)]
    common: Common,
    /// The files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Encrypt files
#[derive(clap::Args)]
struct Encrypt {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    sealing: Sealing,
    /// Write here instead of into the file itself; `-` for the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The files; without any, the standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Decrypt files
#[derive(clap::Args)]
struct Decrypt {
    #[command(flatten)]
    common: Common,
    /// Write here instead of into the file itself; `-` for the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The files; without any, the standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Encrypt values, ready to be put into YAML
#[derive(clap::Args)]
struct EncryptString {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    sealing: Sealing,
    /// Write here instead of to the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Ask for the value, and for its variable
    #[arg(short, long)]
    prompt: bool,
    /// Show what is typed at the question
    #[arg(long)]
    show_input: bool,
    /// The variable of a value of the command line, in their order (repeatable)
    #[arg(short, long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// The variable of the value on the standard input
    #[arg(long, value_name = "NAME")]
    stdin_name: Option<String>,
    /// The values; `-`, or none at all, for the standard input
    #[arg(value_name = "VALUE")]
    values: Vec<String>,
}

/// Encrypt files anew with another secret
#[derive(clap::Args)]
struct Rekey {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    sealing: Sealing,
    /// The new secret as `LABEL@SOURCE`
    #[arg(long, value_name = "ID", conflicts_with = "new_vault_password_file")]
    new_vault_id: Option<String>,
    /// A file with the new password, or a program that prints it
    #[arg(long, value_name = "FILE")]
    new_vault_password_file: Option<PathBuf>,
    /// The files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Vault {
    pub(crate) async fn run(self) -> Result<u8> {
        // Ansible's codes, under whatever name this is called.
        Ok(match self.verb.run().await {
            Ok(()) => 0,
            Err(problem) => {
                error::report(&problem);
                match problem.downcast_ref::<Invalid>() {
                    Some(_) => MISUSED,
                    None => FAILED,
                }
            }
        })
    }
}

impl Verb {
    async fn run(self) -> Result<()> {
        let config = crate::ansible_cfg::load()?;
        match self {
            Self::Create(create) => create.run(&config).await,
            Self::Edit(edit) => edit.run(&config).await,
            Self::View(view) => view.run(&config),
            Self::Encrypt(encrypt) => encrypt.run(&config),
            Self::Decrypt(decrypt) => decrypt.run(&config),
            Self::EncryptString(encrypt) => encrypt.run(&config),
            Self::Rekey(rekey) => rekey.run(&config),
        }
    }
}

impl Sealing {
    fn label<'c>(&'c self, config: &'c Config) -> Option<&'c str> {
        let said = self.encrypt_vault_id.as_deref();
        said.or_else(|| config.vault_encrypt_identity())
    }

    /// The secrets of the flags, and the one that seals. A new password is asked for twice.
    fn sealer(&self, common: &Common, config: &Config) -> Result<VaultSecret> {
        let keys = common.flags.vault_or_ask(config, Purpose::Seal)?;
        secrets::sealer(&keys, self.label(config)).cloned()
    }
}

impl Create {
    async fn run(self, config: &Config) -> Result<()> {
        let [file] = self.files.as_slice() else {
            return Err(misuse("name the one file to make"));
        };
        let file = secrets::expanded(file);
        if !self.skip_tty_check && !io::stdout().is_terminal() {
            return Err(misuse(
                "there is no terminal for an editor; `--skip-tty-check` opens it all the same",
            ));
        }
        let secret = self.sealing.sealer(&self.common, config)?;
        if file.symlink_metadata().is_ok() {
            bail!("{} is there already: use `edit`", file.display());
        }
        if let Some(folder) = file.parent().filter(|folder| !folder.exists())
            && !folder.as_os_str().is_empty()
        {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the directory {}", folder.display()))?;
        }
        let text = editor::edit(config.editor(), &file, b"").await?;
        let vault = sealed(&text, &secret, config)?;
        put(&file, vault.as_bytes(), Permissions::Kept, false)
    }
}

impl Edit {
    async fn run(self, config: &Config) -> Result<()> {
        for file in &self.files {
            if is_standard(file) {
                return Err(misuse("the standard input cannot be edited: name a file"));
            }
        }
        let keys = self.common.flags.vault_or_ask(config, Purpose::Open)?;
        for file in &self.files {
            let file = secrets::expanded(file);
            let bytes = bytes(&file)?;
            let opened = opened(&keys, &file, &bytes)?;
            let (secret, label) = match &self.sealing.encrypt_vault_id {
                Some(label) => (secrets::sealer(&keys, Some(label))?, label.as_str()),
                None => (opened.secret(), opened.label()),
            };
            let text = editor::edit(config.editor(), &file, opened.bytes()).await?;
            if *text != opened.bytes() {
                let vault = vault::seal(&text, secret, label, salt(config))?;
                put(&file, vault.as_bytes(), Permissions::Kept, false)?;
            }
        }
        Ok(())
    }
}

impl View {
    fn run(self, config: &Config) -> Result<()> {
        let keys = self.common.flags.vault_or_ask(config, Purpose::Open)?;
        for file in &self.files {
            let file = secrets::expanded(file);
            let bytes = bytes(&file)?;
            let mut text = Zeroizing::new(opened(&keys, &file, &bytes)?.bytes().to_vec());
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            page(&text)?;
        }
        Ok(())
    }
}

impl Encrypt {
    fn run(self, config: &Config) -> Result<()> {
        let files = files(self.files, self.output.as_deref(), "plain text")?;
        let secret = self.sealing.sealer(&self.common, config)?;
        let mut done = Vec::new();
        for file in files {
            let plain = bytes(&file)?;
            if Keys::is_vault(&plain) {
                bail!("{} is encrypted already", name(&file));
            }
            done.push((file, sealed(&plain, &secret, config)?));
        }
        for (file, vault) in done {
            let target = self.output.as_deref().unwrap_or(&file);
            put(target, vault.as_bytes(), Permissions::Kept, true)?;
        }
        done_by_hand("encrypted");
        Ok(())
    }
}

impl Decrypt {
    fn run(self, config: &Config) -> Result<()> {
        let files = files(self.files, self.output.as_deref(), "vault")?;
        let keys = self.common.flags.vault_or_ask(config, Purpose::Open)?;
        let mut done = Vec::new();
        for file in files {
            let bytes = bytes(&file)?;
            let opened = opened(&keys, &file, &bytes)?;
            done.push((file, opened));
        }
        for (file, opened) in done {
            let target = self.output.as_deref().unwrap_or(&file);
            put(target, opened.bytes(), Permissions::Private, false)?;
        }
        done_by_hand("decrypted");
        Ok(())
    }
}

/// A value to encrypt.
struct Value {
    text: Zeroizing<Vec<u8>>,
    name: Option<String>,
    from: &'static str,
}

impl EncryptString {
    fn run(self, config: &Config) -> Result<()> {
        let standard = self.values.iter().filter(|value| *value == "-").count();
        if standard > 1 {
            return Err(misuse("the standard input can be one value only"));
        }
        let secret = self.sealing.sealer(&self.common, config)?;
        let mut values = Vec::new();
        if self.prompt {
            values.push(asked(self.show_input)?);
        }
        if standard == 1 || (self.values.is_empty() && !self.prompt) {
            if io::stdin().is_terminal() {
                anstream::eprintln!("type the value, and end it with ctrl-d:");
            }
            let mut text = Zeroizing::new(Vec::new());
            io::stdin().lock().read_to_end(&mut text)?;
            values.push(Value {
                text,
                name: self.stdin_name.clone(),
                from: "the standard input",
            });
        }
        let mut names = self.names.iter().filter(|name| !name.is_empty());
        for value in self.values.iter().filter(|value| *value != "-") {
            values.push(Value {
                text: Zeroizing::new(value.as_bytes().to_vec()),
                name: names.next().cloned(),
                from: "the command line",
            });
        }
        if let Some(empty) = values.iter().find(|value| value.text.is_empty()) {
            return Err(misuse(&format!("the value from {} is empty", empty.from)));
        }
        let mut text = String::new();
        for value in &values {
            let vault = sealed(&value.text, &secret, config)?;
            if let Some(name) = &value.name {
                text.push_str(name);
                text.push_str(": ");
            }
            text.push_str("!vault |\n");
            for line in vault.lines() {
                // As deep as ansible-vault puts it.
                text.push_str("          ");
                text.push_str(line);
                text.push('\n');
            }
        }
        let target = self.output.as_deref().unwrap_or(Path::new("-"));
        put(target, text.as_bytes(), Permissions::Kept, false)?;
        done_by_hand("encrypted");
        Ok(())
    }
}

impl Rekey {
    fn run(self, config: &Config) -> Result<()> {
        if self.files.iter().any(|file| is_standard(file)) {
            return Err(misuse("the standard input cannot be rekeyed: name files"));
        }
        let keys = self.common.flags.vault_or_ask(config, Purpose::Open)?;
        let default = config.vault_identity();
        let new = match (&self.new_vault_id, &self.new_vault_password_file) {
            (Some(id), _) => secrets::parsed(id, default)?,
            (None, Some(path)) => VaultId::file(secrets::expanded(path), default),
            (None, None) => VaultId::ask(default),
        };
        let new = secrets::got(&[new], Purpose::Seal, config)?;
        let secret = secrets::sealer(&new, self.sealing.encrypt_vault_id.as_deref())?;
        let mut done = Vec::new();
        for file in &self.files {
            let file = secrets::expanded(file);
            let bytes = bytes(&file)?;
            let opened = opened(&keys, &file, &bytes)?;
            done.push((file, sealed(opened.bytes(), secret, config)?));
        }
        for (file, vault) in done {
            put(&file, vault.as_bytes(), Permissions::Kept, false)?;
        }
        anstream::eprintln!("rekeyed");
        Ok(())
    }
}

fn misuse(what: &str) -> anyhow::Error {
    Invalid(what.to_owned()).into()
}

/// The files of a verb that takes the standard input where none is named.
fn files(named: Vec<PathBuf>, output: Option<&Path>, kind: &str) -> Result<Vec<PathBuf>> {
    if output.is_some() && named.len() > 1 {
        return Err(misuse("`--output` takes one file only"));
    }
    if named.is_empty() {
        if io::stdin().is_terminal() {
            anstream::eprintln!("type the {kind}, and end it with ctrl-d:");
        }
        return Ok(vec![PathBuf::from("-")]);
    }
    Ok(named.iter().map(|file| secrets::expanded(file)).collect())
}

fn asked(show: bool) -> Result<Value> {
    let unasked = "cannot ask for the value";
    let name = secrets::line("Variable name (enter for no name): ").context(unasked)?;
    let text = match show {
        true => secrets::line("String to encrypt: ").context(unasked)?,
        false => {
            let text = secrets::ask("String to encrypt (hidden): ").context(unasked)?;
            text.expose().to_owned()
        }
    };
    Ok(Value {
        text: Zeroizing::new(text.into_bytes()),
        name: Some(name).filter(|name| !name.is_empty()),
        from: "the question",
    })
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

fn name(path: &Path) -> String {
    match is_standard(path) {
        true => "the standard input".to_owned(),
        false => path.display().to_string(),
    }
}

fn bytes(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read = match is_standard(path) {
        true => io::stdin().lock().read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
            bail!("there is no file {}", path.display())
        }
        Err(problem) => Err(problem).with_context(|| format!("cannot read {}", name(path))),
    }
}

fn opened(keys: &Keys, path: &Path, bytes: &[u8]) -> Result<vault::Opened> {
    keys.open(bytes).map_err(|problem| match problem {
        // What is no vault is not to be shown.
        vault::VaultError::Plain => anyhow::anyhow!("{} is not encrypted by vault", name(path)),
        problem => Mistakes(vec![problem.in_file(path, bytes)]).into(),
    })
}

fn salt(config: &Config) -> Option<&[u8]> {
    config
        .vault_encrypt_salt()
        .map(str::as_bytes)
        .filter(|salt| !salt.is_empty())
}

fn sealed(plain: &[u8], secret: &VaultSecret, config: &Config) -> Result<String> {
    Ok(vault::seal(plain, secret, secret.label(), salt(config))?)
}

/// Writes a file whole, or to the standard output.
fn put(path: &Path, content: &[u8], permissions: Permissions, wipe: bool) -> Result<()> {
    if is_standard(path) {
        return said(io::stdout().lock().write_all(content));
    }
    vault::replace(path, content, permissions, wipe)
        .with_context(|| format!("cannot write {}: is it writable?", path.display()))
}

/// Somebody who stops reading is no failure.
fn said(written: io::Result<()>) -> Result<()> {
    match written {
        Err(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
            Err(problem).context("cannot write to the standard output")
        }
        _ => Ok(()),
    }
}

/// Shows a text: through a pager on a terminal, as it is elsewhere.
fn page(text: &[u8]) -> Result<()> {
    if io::stdout().is_terminal() {
        let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let started = Command::new("/bin/sh")
            .args(["-c", &pager])
            .stdin(Stdio::piped())
            .spawn();
        if let Ok(mut pager) = started {
            let written = pager.stdin.take().map(|mut input| input.write_all(text));
            let shown = pager.wait()?.success();
            if shown
                && !matches!(&written, Some(Err(problem)) if problem.kind() != io::ErrorKind::BrokenPipe)
            {
                return Ok(());
            }
        }
    }
    said(io::stdout().lock().write_all(text))
}

/// What a person at a terminal wants to hear.
fn done_by_hand(what: &str) {
    if io::stdout().is_terminal() {
        anstream::eprintln!("{}", paint::paint(paint::GOOD, what));
    }
}
