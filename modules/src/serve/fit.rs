use fleet_wire::{Effect, What, encode};
use serde_json::{Map, Value};

/// What a result may take of a frame, in bytes; and all effects.
const RESULT: usize = 6 << 20;
const EFFECTS: usize = 8 << 20;
/// What is left of a field of a result that is too large.
const FIELD: usize = 128 << 10;

/// Cuts a result that no frame would hold, and says so in its `warnings`: a conversation that broke off instead would
/// undo a run because a command was talkative.
pub(super) fn result(fields: &mut Map<String, Value>) {
    let size = |value: &Value| value.to_string().len();
    if fields.values().map(size).sum::<usize>() <= RESULT {
        return;
    }
    let mut cut = Vec::new();
    for (name, value) in fields.iter_mut().filter(|(_, value)| size(value) > FIELD) {
        cut.push(name.clone());
        match value {
            Value::String(text) => {
                let mut end = FIELD;
                while !text.is_char_boundary(end.min(text.len())) {
                    end -= 1;
                }
                text.truncate(end.min(text.len()));
            }
            Value::Array(items) => {
                let mut taken = 0;
                let fits = |item: &&Value| {
                    taken += size(item);
                    taken <= FIELD
                };
                let count = items.iter().take_while(fits).count();
                items.truncate(count);
            }
            other => *other = Value::Null,
        }
    }
    warn(
        fields,
        format!("too large for a result, and cut: {}", cut.join(", ")),
    );
}

/// Cuts a list of effects that no frame would hold: first their contents, then the list. What a plan does not show, an
/// apply of it refuses.
pub(super) fn effects(effects: &mut Vec<Effect>, fields: &mut Map<String, Value>) {
    let size = |effect: &Effect| encode(effect).map_or(EFFECTS + 1, |frame| frame.len());
    if effects.iter().map(size).sum::<usize>() <= EFFECTS {
        return;
    }
    for effect in effects.iter_mut() {
        if let What::File { before, after, .. } = &mut effect.what {
            before.forget_bytes();
            after.forget_bytes();
        }
    }
    let mut taken = 0;
    let fits = |effect: &&Effect| {
        taken += size(effect);
        taken <= EFFECTS
    };
    let (all, shown) = (effects.len(), effects.iter().take_while(fits).count());
    effects.truncate(shown);
    let text = match all - shown {
        0 => "too large to be shown: the contents of its effects".to_owned(),
        hidden => format!("too many to be shown: {hidden} of its {all} effects"),
    };
    warn(fields, text);
}

fn warn(fields: &mut Map<String, Value>, text: String) {
    let warnings = fields
        .entry("warnings")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(warnings) = warnings {
        warnings.push(text.into());
    }
}
