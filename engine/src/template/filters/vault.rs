//! Vaults made and opened in a template.

use minijinja::{Error, State, Value};

use crate::secret::Secret;
use crate::template::evaluation;
use crate::template::given::{Filter, Given, failed};
use crate::template::python::text;
use crate::vault::{self, Vault, VaultSecret};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "vault",
        parameters: "secret salt vault_id wrap_object vaultid",
        run: sealed,
    },
    Filter {
        names: "unvault",
        parameters: "secret vault_id vaultid",
        run: opened,
    },
];

/// The label of a vault for which none is said.
const UNNAMED: &str = "filter_default";

fn secret(given: &Given, label: &str) -> Result<VaultSecret, Error> {
    let password = given.need(0)?;
    let Some(password) = password.as_str() else {
        return Err(failed(format!(
            "Secret passed is required to be a string, instead we got {}",
            text::type_name(password)
        )));
    };
    Ok(VaultSecret::new(label, &Secret::new(password.to_owned())))
}

fn label(given: &Given, places: [usize; 2]) -> Result<String, Error> {
    let said = places.into_iter().find_map(|place| given.some(place));
    said.map_or_else(|| Ok(UNNAMED.to_owned()), text::str)
}

fn sealed(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let Some(plain) = value.as_str() else {
        return Err(failed(format!(
            "Can only vault strings, instead we got {}",
            text::type_name(value)
        )));
    };
    let label = label(given, [2, 4])?;
    let secret = secret(given, &label)?;
    let salt = given.some(1).map(text::str).transpose()?;
    vault::seal(
        plain.as_bytes(),
        &secret,
        &label,
        salt.as_deref().map(str::as_bytes),
    )
    .map(Value::from)
    .map_err(|error| failed(format!("Unable to encrypt: {error}")))
}

fn opened(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let Some(written) = value.as_str() else {
        return Err(failed(format!(
            "Vault should be in the form of a string, instead we got {}",
            text::type_name(value)
        )));
    };
    let secret = secret(given, &label(given, [1, 2])?)?;
    if !Vault::is_vault(written.as_bytes()) {
        return Ok(value.clone());
    }
    let opened = Vault::new(vec![secret])
        .open(written.as_bytes())
        .map_err(|error| failed(format!("Unable to decrypt: {error}")))?;
    let plain = String::from_utf8(opened.bytes().to_vec());
    if let Ok(plain) = &plain {
        evaluation::current()?.templar.vault().hide(plain);
    }
    plain
        .map(Value::from)
        .map_err(|_| failed("what was encrypted is no text (not UTF-8)"))
}
