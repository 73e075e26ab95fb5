//! The fields of a line of separated values.

/// The fields of a line of separated values (RFC 4180): a field in double quotes may hold the separator, and doubled
/// quotes. No field spans lines here, so that a quote that is never closed takes the rest of its line.
#[derive(Debug)]
pub(super) struct Fields {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    number: usize,
}

impl Fields {
    pub(super) fn separated_by(separator: u8) -> Self {
        let terminator = csv_core::Terminator::Any(b'\n');
        let reader = csv_core::ReaderBuilder::new().delimiter(separator).terminator(terminator).build();
        Self { reader, text: Vec::new(), ends: Vec::new(), number: 0 }
    }

    /// Takes the fields of `line`.
    pub(super) fn split(&mut self, line: &str) {
        // Neither the text nor the number of fields can be larger.
        self.text.resize(self.text.len().max(line.len()), 0);
        self.ends.resize(self.ends.len().max(line.len() + 1), 0);
        self.reader.reset();
        let (_, _, written, ended) = self.reader.read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let (text, ends) = (self.text.get_mut(written..), self.ends.get_mut(ended..));
        let (_, _, _, last) = self.reader.read_record(&[], text.unwrap_or_default(), ends.unwrap_or_default());
        self.number = ended + last;
    }

    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.number
    }

    /// The field at `place`, from zero.
    pub(super) fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(..self.number)?.get(place)?;
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        // Separators and quotes are ASCII, between which text stays text.
        std::str::from_utf8(self.text.get(start..end)?).ok()
    }

    /// All fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.number).filter_map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_protect_separators() {
        let mut fields = Fields::separated_by(b',');
        for (line, expected) in [
            ("a,b,", vec!["a", "b", ""]),
            ("\"a,\"\"b\",c", vec!["a,\"b", "c"]),
            ("\"open,c", vec!["open,c"]),
            ("a\"b,\r,é", vec!["a\"b", "\r", "é"]),
            (",", vec!["", ""]),
        ] {
            fields.split(line);
            assert_eq!(fields.iter().collect::<Vec<_>>(), expected, "{line}");
            assert_eq!(fields.len(), expected.len());
        }
    }
}
