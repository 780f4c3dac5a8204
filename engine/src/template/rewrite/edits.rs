//! A text with insertions and replacements, and the way back from places in the new text to the old.

use std::ops::Range;

/// One change: `removed` bytes at `at` make way for `text`.
#[derive(Debug, Clone)]
struct Edit {
    at: usize,
    removed: usize,
    text: String,
}

/// The changes to a text, gathered in any order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Edits(Vec<Edit>);

impl Edits {
    /// Puts `text` before the byte `at`.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Puts `text` in the place of `range`.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push(Edit {
            at: range.start,
            removed: range.len(),
            text: text.into(),
        });
    }

    /// How many changes there are: a mark for [`Edits::truncate`].
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the changes made since a mark.
    pub(crate) fn truncate(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    /// The changed text. Changes at one place keep the order in which they were made.
    pub(crate) fn apply(mut self, source: &str) -> (String, PlaceMap) {
        self.0.sort_by_key(|edit| edit.at);
        let mut out = String::with_capacity(
            source.len() + self.0.iter().map(|edit| edit.text.len()).sum::<usize>(),
        );
        let mut pieces = Vec::new();
        let mut at = 0;
        for edit in &self.0 {
            if edit.at > at {
                pieces.push(Piece {
                    new: out.len(),
                    old: at,
                    kept: true,
                });
                out.push_str(&source[at..edit.at]);
                at = edit.at;
            }
            pieces.push(Piece {
                new: out.len(),
                old: at,
                kept: false,
            });
            out.push_str(&edit.text);
            at = at.max(edit.at + edit.removed);
        }
        pieces.push(Piece {
            new: out.len(),
            old: at,
            kept: true,
        });
        out.push_str(&source[at..]);
        (out, PlaceMap(pieces))
    }
}

#[derive(Debug, Clone)]
struct Piece {
    new: usize,
    old: usize,
    kept: bool,
}

/// The way from a byte of the changed text back to the byte of the written one.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceMap(Vec<Piece>);

impl PlaceMap {
    /// Where the byte `new` of the changed text came from; a byte of an insertion came from where it was put.
    pub(crate) fn old(&self, new: usize) -> usize {
        let next = self.0.partition_point(|piece| piece.new <= new);
        match self.0.get(next.wrapping_sub(1)) {
            Some(piece) if piece.kept => piece.old + (new - piece.new),
            Some(piece) => piece.old,
            None => new,
        }
    }

    /// A range of the written text. What was inserted at its ends counts as nothing.
    pub(crate) fn old_range(&self, new: Range<usize>) -> Range<usize> {
        let start = self.old(new.start);
        start..self.old(new.end).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back() {
        let mut edits = Edits::default();
        edits.insert(3, ")");
        edits.insert(0, "((");
        edits.replace(4..5, "|f(");
        let (text, map) = edits.apply("a.b % c");
        assert_eq!(text, "((a.b) |f( c");
        assert_eq!(map.old(2), 0);
        assert_eq!(map.old(4), 2);
        assert_eq!(map.old(text.len() - 1), 6);
        assert_eq!(map.old_range(0..text.len()), 0..7);
    }
}
