//! Ansible's colours.

/// A colour as Ansible's settings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Green,
    Yellow,
    Cyan,
    Red,
    BrightRed,
    Purple,
    BrightPurple,
    DarkGray,
    Blue,
}

impl Color {
    fn code(self) -> &'static str {
        match self {
            Self::Green => "0;32",
            Self::Yellow => "0;33",
            Self::Cyan => "0;36",
            Self::Red => "0;31",
            Self::BrightRed => "1;31",
            Self::Purple => "0;35",
            Self::BrightPurple => "1;35",
            Self::DarkGray => "1;30",
            Self::Blue => "0;34",
        }
    }
}

/// Each line of `text` in its colour, where there are colours.
pub(crate) fn paint(color: Option<Color>, text: &str, colored: bool) -> String {
    let Some(color) = color.filter(|_| colored) else {
        return text.to_owned();
    };
    let code = color.code();
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| format!("\u{1b}[{code}m{line}\u{1b}[0m"))
        .collect();
    lines.join("\n")
}
