//! A line split into words as Python's `shlex.split(line, comments=True)` does: the rule for host
//! lines in INI inventories.

/// A word of a line, quotes and escapes resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The text without its quotes.
    pub(super) text: String,
    /// Where the word begins in the line, in bytes.
    pub(super) start: usize,
    /// Where the word ends in the line, in bytes.
    pub(super) end: usize,
}

/// The words of a line, and where a `#` cut a word short (`password=ab#cd`), if one did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// The words, in order.
    pub(super) words: Vec<Word>,
    /// The offset of a `#` that directly follows a word.
    pub(super) cut: Option<usize>,
}

/// Why a line cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitError {
    /// A quote that opened at this offset is never closed.
    OpenQuote(usize),
    /// The line ends in a backslash, at this offset.
    LoneBackslash(usize),
}

/// Splits a line. Outside quotes a backslash escapes any character; inside double quotes only `"`
/// and `\`; inside single quotes nothing. A `#` outside quotes begins a comment, even within a word.
pub(super) fn split(line: &str) -> Result<Words, SplitError> {
    let mut found = Words::default();
    let mut word: Option<Word> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut chars = line.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let begun = |word: &mut Option<Word>| {
            word.take().unwrap_or(Word {
                text: String::new(),
                start: at,
                end: at,
            })
        };
        match (quote, char) {
            (Some((open, _)), char) if char == open => quote = None,
            (Some(('"', _)), '\\') => {
                let Some((_, next)) = chars.next() else { break };
                let mut w = begun(&mut word);
                if next != '"' && next != '\\' {
                    w.text.push('\\');
                }
                w.text.push(next);
                word = Some(w);
            }
            (Some(_), char) => {
                let mut w = begun(&mut word);
                w.text.push(char);
                word = Some(w);
            }
            (None, '#') => {
                if word.is_some() {
                    found.cut = Some(at);
                }
                finish(&mut found, word.take(), at);
                return Ok(found);
            }
            (None, '\'' | '"') => {
                word = Some(begun(&mut word));
                quote = Some((char, at));
            }
            (None, '\\') => {
                let Some((_, next)) = chars.next() else {
                    return Err(SplitError::LoneBackslash(at));
                };
                let mut w = begun(&mut word);
                w.text.push(next);
                word = Some(w);
            }
            (None, ' ' | '\t' | '\r' | '\n') => finish(&mut found, word.take(), at),
            (None, char) => {
                let mut w = begun(&mut word);
                w.text.push(char);
                word = Some(w);
            }
        }
    }
    if let Some((_, at)) = quote {
        return Err(SplitError::OpenQuote(at));
    }
    finish(&mut found, word, line.len());
    Ok(found)
}

fn finish(found: &mut Words, word: Option<Word>, end: usize) {
    if let Some(word) = word {
        found.words.push(Word { end, ..word });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line)
            .unwrap()
            .words
            .into_iter()
            .map(|word| word.text)
            .collect()
    }

    #[test]
    fn words_are_parted_by_blanks() {
        assert_eq!(texts("web1  a=1\tb=2 "), ["web1", "a=1", "b=2"]);
        assert_eq!(texts(""), Vec::<String>::new());
    }

    #[test]
    fn quotes_join_and_vanish() {
        assert_eq!(
            texts(r#"h a="x y" b='z "q"' c="#),
            ["h", "a=x y", r#"b=z "q""#, "c="]
        );
        assert_eq!(texts("h ''"), ["h", ""]);
    }

    #[test]
    fn a_backslash_in_double_quotes_escapes_only_quote_and_backslash() {
        assert_eq!(texts(r#"a="x\n\"\\""#), [r#"a=x\n"\"#]);
        assert_eq!(texts(r"a=x\ y b='\n'"), ["a=x y", r"b=\n"]);
    }

    #[test]
    fn a_hash_begins_a_comment_even_in_a_word() {
        let found = split("h a=1 # more").unwrap();
        assert_eq!((found.words.len(), found.cut), (2, None));
        let found = split("h pass=ab#cd").unwrap();
        assert_eq!(
            (found.words[1].text.as_str(), found.cut),
            ("pass=ab", Some(9))
        );
        assert_eq!(texts("h a='#1'"), ["h", "a=#1"]);
    }

    #[test]
    fn words_know_their_place_in_the_line() {
        let words = split("wéb a='x'").unwrap().words;
        assert_eq!((words[0].start, words[0].end), (0, 4));
        assert_eq!((words[1].start, words[1].end), (5, 10));
    }

    #[test]
    fn what_is_left_open_is_an_error() {
        assert_eq!(split("h a='x"), Err(SplitError::OpenQuote(4)));
        assert_eq!(split(r#"h a="x\"#), Err(SplitError::OpenQuote(4)));
        assert_eq!(split(r"h a=x\"), Err(SplitError::LoneBackslash(5)));
    }
}
