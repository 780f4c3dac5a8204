//! Vaults that ansible-vault 2.21.5 made, with the password `secretpw`.

use std::path::Path;

use fleet_yaml::Source;

use super::{Vault, VaultError, VaultSecret, seal};
use crate::secret::Secret;

/// In format 1.1.
const DEFAULT: &str = "\
$ANSIBLE_VAULT;1.1;AES256
36663262323531363966633661643563393534356332326337353633343465663166663161346638
3161313364633735356538303536393534313862336138650a663137323565623934663939343733
31333064356266623065393736633634656561313539643433373661626235363964376631383562
6263363166613731650a656230656261343533643836383137313466646462303635623033383866
65623735623934363865383430373238633834383964623562366634393830353864
";

/// In format 1.2, with the label `dev`.
const DEV: &str = "\
$ANSIBLE_VAULT;1.2;AES256;dev
65623430663762613137313663363262633434643762393531383332386564303631333033386163
3434623735373137343865306532396539623134333236650a313164623365633762363831306366
66336638343135303734653832346162333536643165656637343063623463393937333966303630
3732303964613930650a326136393761336630663137353863653233653232376536623061633538
30333831306638386630356362343434316138336630323565333530353031623434
";

/// As [`DEV`], with the salt `salty`.
const SALTED: &str = "\
$ANSIBLE_VAULT;1.2;AES256;dev
373336313663373437390a6132643234656266616334623266333833636537316662353634383134
36303765616661633231666535613536336137666263643562343963323437663736640a64633337
64616233346138323763616632666164346437633333653137633532633133353739656565323137
6565623731643931346339623934363264333762
";

/// What is in them.
const PLAIN: &str = "grüße\nport: 5432\n";

/// The value `correct horse`.
const VALUE: &str = "\
password: !vault |
          $ANSIBLE_VAULT;1.2;AES256;dev
          373336313663373437390a6236656139393236366137376333313539353661313964653638396633
          34353332663833626439613663343637303734626164626363663939336366313364370a64383261
          36623764656337653664383533376164346437623663633234613635
";

/// A file of variables.
const VARIABLES: &str = "\
$ANSIBLE_VAULT;1.2;AES256;pw
373336313663373437390a3231396564623839393139646231623935343364633437613466643636
65333264653834333334393837613361303935323135666230393666326361316164350a64663237
32333035613933643639633432636231343836373762613537333436393136383031393138613739
39373961373866333333653566633635666535363966336164366636616433393131623938303262
66653430383232326138323763353934303666353430396332333432313864643731366637333836
38386261313763616339653638633537313239366632383835343137323736313334643536303762
64323061326665366239353961623338333337393633303036663663
";

/// A playbook.
const PLAYBOOK: &str = "\
$ANSIBLE_VAULT;1.2;AES256;pw
373336313663373437390a3131663633303262643130663161396266303763366637386138316465
37666561363434356163363963373534353730343433373630626435356166366334640a39363635
37313630666136393661396637666133353336343033653136393130393337353030643963663631
38306435376366333333616362393032626631313861336264306533656131333034616463373738
38373062643136386362363964663934313765613533646436353131363063373731376237336464
63356162356639666364383263323562356338616632386331613532336632663262633936303261
62643639353663373934323463373436346430333031376630363562383662396164343465383332
6165626365313831643736663764633638303934
";

fn secret(label: &str, password: &str) -> VaultSecret {
    VaultSecret::new(label, &Secret::new(password.to_owned()))
}

fn vault(secrets: &[(&str, &str)]) -> Vault {
    let secrets = secrets
        .iter()
        .map(|(label, password)| secret(label, password));
    Vault::new(secrets.collect())
}

fn opened(vault: &Vault, text: &str) -> Result<String, VaultError> {
    let opened = vault.open(text.as_bytes())?;
    Ok(String::from_utf8(opened.bytes().to_vec()).unwrap())
}

/// The one value of a mapping.
fn value(vault: &Vault, yaml: &str) -> Result<String, String> {
    let loaded = fleet_yaml::load(Source::new("vars.yml", yaml)).unwrap();
    let (_, node) = loaded.documents[0].as_map().unwrap().iter().next().unwrap();
    vault
        .value(node)
        .map_err(|problem| fleet_yaml::render(&problem, false))
}

#[test]
fn both_formats_open() {
    for text in [DEFAULT, DEV, SALTED] {
        let vault = vault(&[("default", "secretpw")]);
        assert_eq!(opened(&vault, text).as_deref(), Ok(PLAIN));
    }
}

#[test]
fn with_the_same_salt_the_same_bytes_are_made() {
    let made = seal(
        PLAIN.as_bytes(),
        &secret("dev", "secretpw"),
        "dev",
        Some(b"salty"),
    );
    assert_eq!(made.as_deref(), Ok(SALTED));
}

#[test]
fn without_one_no_two_are_equal() {
    let made = || seal(b"x", &secret("dev", "secretpw"), "dev", None).unwrap();
    let (one, other) = (made(), made());
    assert_ne!(one, other);
    assert_eq!(
        opened(&vault(&[("dev", "secretpw")]), &one).as_deref(),
        Ok("x")
    );
}

#[test]
fn every_secret_is_tried_and_the_one_with_the_label_first() {
    let vault = vault(&[
        ("prod", "wrong"),
        ("other", "secretpw"),
        ("dev", "wrong"),
        ("dev", "secretpw"),
    ]);
    let found = vault.open(DEV.as_bytes()).unwrap();
    assert_eq!((found.label(), found.secret().label()), ("dev", "dev"));
    let found = vault.open(DEFAULT.as_bytes()).unwrap();
    assert_eq!(
        (found.label(), found.secret().label()),
        ("default", "other")
    );
}

#[test]
fn where_labels_must_match_others_are_not_tried() {
    let with = |label| Vault::matching(vec![secret(label, "secretpw")], true);
    assert_eq!(
        opened(&with("prod"), DEV),
        Err(VaultError::NoMatch {
            label: "dev".to_owned()
        })
    );
    assert_eq!(opened(&with("dev"), DEV).as_deref(), Ok(PLAIN));
}

#[test]
fn why_a_vault_does_not_open_is_told() {
    let told = |secrets: &[(&str, &str)], text: &str| {
        opened(&vault(secrets), text).unwrap_err().to_string()
    };
    assert_eq!(
        told(&[], DEV),
        "this is encrypted by vault, and no vault secrets were given"
    );
    assert_eq!(
        told(&[("prod", "a"), ("dev", "b")], DEV),
        "none of the vault secrets (dev, prod) opens this, whose id is `dev`"
    );
    assert_eq!(
        told(&[("default", "a")], DEFAULT),
        "none of the vault secrets (default) opens this"
    );
    assert_eq!(
        told(&[("dev", "secretpw")], "a: 1\n"),
        "this is not encrypted by vault"
    );
    // One digit of the text is another one.
    let damaged = DEV.replacen("6539", "6538", 1);
    assert!(told(&[("dev", "secretpw")], &damaged).starts_with("none of the vault secrets"));
}

#[test]
fn a_value_opens_and_is_hidden_from_then_on() {
    let vault = vault(&[("dev", "secretpw")]);
    assert_eq!(vault.mask("correct horse"), "correct horse");
    assert!(!vault.gave("correct horse"));
    assert_eq!(value(&vault, VALUE).as_deref(), Ok("correct horse"));
    assert_eq!(vault.mask("the correct horse runs"), "the ******** runs");
    assert!(vault.gave("correct horse"));
}

#[test]
fn a_damaged_value_is_told_at_its_line() {
    let vault = vault(&[("dev", "secretpw")]);
    let third = VALUE.lines().nth(3).unwrap();
    let broken = VALUE.replace(third, "          61zz62");
    insta::assert_snapshot!(value(&vault, &broken).unwrap_err(), @"
    error[F0802]: the vault is damaged: `z` is no hex digit
     --> vars.yml:4:11
      |
    4 |           61zz62
      |           ^^^^^^
    ");
    let broken = fleet_yaml::load(Source::new("vars.yml", broken.as_str())).unwrap();
    let (_, node) = broken.documents[0].as_map().unwrap().iter().next().unwrap();
    assert!(Vault::check(node).is_some());
    insta::assert_snapshot!(value(&Vault::default(), "a: !vault nothing\n").unwrap_err(), @"
    error[F0801]: this is not encrypted by vault
     --> vars.yml:1:11
      |
    1 | a: !vault nothing
      |           ^^^^^^^
    ");
    insta::assert_snapshot!(value(&Vault::default(), VALUE).unwrap_err(), @"
    error[F0801]: this is encrypted by vault, and no vault secrets were given
     --> vars.yml:2:11
      |
    2 |           $ANSIBLE_VAULT;1.2;AES256;dev
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: give one by `--vault-password-file FILE`, `--vault-id LABEL@FILE` or `--ask-vault-pass`
    ");
}

#[test]
fn the_values_of_a_file_are_hidden_but_for_plain_words_and_short_numbers() {
    let vault = vault(&[("default", "secretpw")]);
    let plain = vault
        .plain(Path::new("vars.yml"), VARIABLES.into())
        .unwrap();
    assert!(plain.starts_with(b"db:\n  password: correct horse\n"));
    assert_eq!(
        vault.mask("correct horse on 5432, pin 123456: true, none"),
        "******** on 5432, pin ********: true, none"
    );
    let mut json = serde_json::json!({"pin": 123456, "port": 5432});
    vault.mask_json(&mut json);
    assert_eq!(json, serde_json::json!({"pin": "********", "port": 5432}));
}

#[test]
fn of_tasks_only_variables_and_what_is_called_a_secret_are_hidden() {
    let vault = vault(&[("default", "secretpw")]);
    vault.plain(Path::new("site.yml"), PLAYBOOK.into()).unwrap();
    assert_eq!(
        vault.mask("user ann present, magenta, swordfish"),
        "user ann present, ********, ********"
    );
}

#[test]
fn the_secret_to_seal_with_is_named_or_the_only_one() {
    let several = vault(&[("dev", "a"), ("prod", "b"), ("prod", "c")]);
    assert_eq!(several.sealer(Some("prod")).unwrap().password(), b"b");
    let told = |label| several.sealer(label).unwrap_err().to_string();
    assert_eq!(
        told(None),
        "there are several vault secrets to encrypt with (dev, prod, prod): choose one by `--encrypt-vault-id`"
    );
    assert_eq!(
        told(Some("test")),
        "no vault secret has the id `test`; there is dev, prod, prod"
    );
    assert_eq!(vault(&[("dev", "a")]).sealer(None).unwrap().label(), "dev");
}
