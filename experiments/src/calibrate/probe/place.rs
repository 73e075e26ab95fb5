//! Where in a JSON text a key stands.

use std::iter::Peekable;
use std::str::Chars;

/// The line of the key at the dotted `path` in `text`, from 1 on; where it is missing, that of the innermost table on the
/// way to it. The text has been parsed before: it is JSON, and not nested deeper than a parser allows.
pub(super) fn line_of(text: &str, path: &str) -> usize {
    let wanted = path.split('.').filter(|part| !part.is_empty()).collect();
    let mut walk = Walk { letters: text.chars().peekable(), line: 1, wanted, found: (0, 1) };
    walk.value(Some(0));
    walk.found.1
}

struct Walk<'a> {
    letters: Peekable<Chars<'a>>,
    line: usize,
    wanted: Vec<&'a str>,
    /// How much of what is wanted was met, and where.
    found: (usize, usize),
}

impl Walk<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.next();
        self.line += usize::from(letter == Some('\n'));
        letter
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.letters.peek().is_some_and(|&letter| is_skipped(letter)) {
            self.next();
        }
    }

    /// A value; `met` is how much of what is wanted its path is, if it is the beginning of that.
    fn value(&mut self, met: Option<usize>) {
        self.skip(char::is_whitespace);
        if let Some(met) = met.filter(|&met| met > self.found.0) {
            self.found = (met, self.line);
        }
        match self.letters.peek() {
            Some('{') => self.all('}', met),
            Some('[') => self.all(']', met),
            Some('"') => {
                self.text();
            }
            _ => self.skip(|letter| !letter.is_whitespace() && !",]}".contains(letter)),
        }
    }

    /// All of a table or a list.
    fn all(&mut self, end: char, met: Option<usize>) {
        self.next();
        for place in 0_usize.. {
            self.skip(|letter| letter.is_whitespace() || letter == ',');
            if self.letters.peek().is_none_or(|&letter| letter == end) {
                break;
            }
            let key = if end == '}' { self.text() } else { place.to_string() };
            self.skip(|letter| letter.is_whitespace() || letter == ':');
            self.value(met.filter(|&met| self.wanted.get(met) == Some(&key.as_str())).map(|met| met + 1));
        }
        self.next();
    }

    /// A text in quotation marks.
    fn text(&mut self) -> String {
        let mut text = String::new();
        self.next();
        while let Some(letter) = self.next() {
            match letter {
                '"' => break,
                '\\' => text.extend(self.next()),
                _ => text.push(letter),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_path_and_a_missing_one_in_its_table() {
        let text = "{\n \"a\": {\"x\": 1},\n \"b\": [\n  {\"x\": \"}\\\"\"},\n  {\n   \"x\": [1, 2]}]}";
        let lines = ["a.x", "b.0.x", "b.1.x", "b.1.y", "c", "b.7"].map(|path| line_of(text, path));
        // `b.1` opens on line 5 and `b` on line 3; what is nowhere is in the table that begins on line 1.
        assert_eq!(lines, [2, 4, 6, 5, 1, 3]);
    }
}
