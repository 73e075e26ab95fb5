//! Lines of separated values: splitting, and finding columns by their names.

use std::borrow::Cow;

/// The fields of a line; a field in double quotes may hold the separator, and doubled quotes (RFC 4180).
///
/// A quote that is never closed takes the rest of the line: no field spans lines here.
pub(super) fn split<'l>(line: &'l str, separator: char, fields: &mut Vec<Cow<'l, str>>) {
    fields.clear();
    let mut rest = line;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let (field, more) = rest.split_once(separator).map_or((rest, None), |(field, more)| (field, Some(more)));
            fields.push(Cow::Borrowed(field));
            match more {
                Some(more) => rest = more,
                None => return,
            }
            continue;
        };
        let (field, behind) = unquote(quoted);
        fields.push(field);
        match behind.split_once(separator) {
            Some((_, more)) => rest = more,
            None => return,
        }
    }
}

/// The text up to the closing quote, and what is behind it.
fn unquote(text: &str) -> (Cow<'_, str>, &str) {
    let mut end = 0;
    while let Some(quote) = text.get(end..).and_then(|rest| rest.find('"')) {
        end += quote;
        if text.get(end + 1..).is_some_and(|rest| rest.starts_with('"')) {
            end += 2;
            continue;
        }
        let (field, behind) = (text.get(..end).unwrap_or(text), text.get(end + 1..).unwrap_or(""));
        return (plain(field), behind);
    }
    (plain(text), "")
}

fn plain(field: &str) -> Cow<'_, str> {
    if field.contains('"') { Cow::Owned(field.replace("\"\"", "\"")) } else { Cow::Borrowed(field) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_protect_separators() {
        let mut fields = Vec::new();
        for (line, expected) in [
            ("a,b,", vec!["a", "b", ""]),
            ("\"a,\"\"b\",c", vec!["a,\"b", "c"]),
            ("\"open,c", vec!["open,c"]),
            ("", vec![""]),
            ("a\"b,c", vec!["a\"b", "c"]),
        ] {
            split(line, ',', &mut fields);
            assert_eq!(fields, expected, "{line}");
        }
    }
}
