//! Conditions.

use super::*;

#[test]
fn a_name_stands_for_the_conditions_under_it() {
    let world = World::new("{all: ['1 == 1', '{{ n == 3 }}'], wrong: '1 == 2', n: 3}");
    assert_eq!(world.truth("'{{ all }}'"), Evaluated::Known(true));
    assert_eq!(world.truth("'{{ wrong }}'"), Evaluated::Known(false));
    assert_eq!(world.truth("'{{ n }}'"), Evaluated::Known(true));
}

#[test]
fn what_a_host_says_is_no_condition_to_follow() {
    let world = World::new("{}");
    // A text that is not empty, whatever it says.
    assert_eq!(world.truth("'{{ from_host }}'"), Evaluated::Known(true));
}

#[test]
fn a_text_in_quotes_is_no_condition() {
    let world = World::new("{}");
    let condition = node("\"'always'\"");
    let error = world.templar.truth(&condition, &world.scope).unwrap_err();
    assert!(
        error
            .diagnostic()
            .message
            .contains("derived from value of type 'str'")
    );
}
