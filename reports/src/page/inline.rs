//! Figures inside a page: what a page's figures say alike is said once, in its style sheet.
//!
//! Looks that stand in each element's attributes become classes, whose colours have a darker counterpart for readers who
//! prefer one.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Attributes of looks, which a style sheet can say.
const LOOKS: [&str; 6] = ["fill", "stroke", "stroke-width", "font-size", "font-weight", "text-anchor"];
/// Inks of axes, words, grids and the sheet itself, each with what it is on a dark page.
const DARK: [(&str, &str); 4] =
    [("#FFFFFF", "#1E2227"), ("#22262B", "#E4E7EA"), ("#5C636B", "#9AA3AC"), ("#E3E6E9", "#343A41")];

/// The classes of all figures of a page.
#[derive(Default)]
pub(super) struct Looks {
    classes: HashMap<String, usize>,
    order: Vec<String>,
}

impl Looks {
    /// A figure for the page, with its looks as classes and a label for those who cannot see it.
    pub(super) fn inline(&mut self, svg: &str, label: &str) -> String {
        let mut inline = String::with_capacity(svg.len());
        for line in svg.lines() {
            if let Some(tag) = line.strip_prefix("<svg ") {
                let (width, view) = (attribute(tag, "width"), attribute(tag, "viewBox"));
                let (width, view) = (width.unwrap_or_default(), view.unwrap_or_default());
                let label = crate::table::escaped(label);
                let _ = writeln!(
                    inline,
                    "<svg role=\"img\" aria-label=\"{label}\" viewBox=\"{view}\" style=\"max-width:{width}px\">"
                );
            } else if !line.starts_with("<title>") {
                self.element(line, &mut inline);
            }
        }
        inline
    }

    /// An element, which is a line.
    fn element(&mut self, line: &str, inline: &mut String) {
        let drawn = ["<rect ", "<text ", "<circle ", "<polygon ", "<polyline ", "<path "];
        let end = line.find('>').filter(|_| drawn.iter().any(|start| line.starts_with(start)));
        let Some(end) = end else {
            inline.extend([line, "\n"]);
            return;
        };
        let (head, rest) = line.split_at(end);
        let mut words = head.split("\" ");
        let mut looks = String::new();
        let mut kept = String::new();
        let first = words.next().unwrap_or_default();
        let (name, first) = first.split_once(' ').unwrap_or((first, ""));
        for word in std::iter::once(first).chain(words) {
            let word = word.strip_suffix('/').unwrap_or(word);
            let Some((key, value)) = word.split_once("=\"") else { continue };
            let value = value.strip_suffix('"').unwrap_or(value);
            if LOOKS.contains(&key) {
                let unit = if key == "font-size" { "px" } else { "" };
                let _ = write!(looks, "{key}:{value}{unit};");
            } else {
                let _ = write!(kept, " {key}=\"{value}\"");
            }
        }
        let class = self.class(looks);
        let close = if head.ends_with('/') { "/" } else { "" };
        let _ = writeln!(inline, "{name} class=\"{class}\"{kept}{close}{rest}");
    }

    fn class(&mut self, looks: String) -> String {
        let next = self.order.len();
        let number = *self.classes.entry(looks.clone()).or_insert_with(|| {
            self.order.push(looks);
            next
        });
        format!("f{number}")
    }

    /// The rules of the classes, in the light and in the dark.
    pub(super) fn style_sheet(&self) -> String {
        let mut sheet = String::new();
        for (number, looks) in self.order.iter().enumerate() {
            let _ = writeln!(sheet, ".f{number}{{{looks}}}");
        }
        sheet.push_str("@media (prefers-color-scheme: dark) {\n");
        for (number, looks) in self.order.iter().enumerate() {
            let dark = DARK.iter().fold(looks.clone(), |looks, (light, dark)| looks.replace(light, dark));
            if dark != *looks {
                let _ = writeln!(sheet, ".f{number}{{{dark}}}");
            }
        }
        sheet.push_str("}\n");
        sheet
    }
}

/// The value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, key: &str) -> Option<&'t str> {
    tag.split_once(&format!("{key}=\""))?.1.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_classes_that_figures_share() {
        let mut looks = Looks::default();
        let svg = "<svg role=\"img\" width=\"90\" height=\"40\" viewBox=\"0 0 360 160\">\n<title>old</title>\n\
                   <rect x=\"1\" y=\"2\" fill=\"#FFFFFF\"/>\n<text x=\"3\" font-size=\"50\" fill=\"#22262B\">a > b</text>\n</svg>\n";
        let inline = looks.inline(svg, "a <figure>");
        let expected = "<svg role=\"img\" aria-label=\"a &lt;figure&gt;\" viewBox=\"0 0 360 160\" style=\"max-width:90px\">\n\
                        <rect class=\"f0\" x=\"1\" y=\"2\"/>\n<text class=\"f1\" x=\"3\">a > b</text>\n</svg>\n";
        assert_eq!(inline, expected);
        assert_eq!(looks.inline(svg, "a <figure>"), inline);
        let sheet = looks.style_sheet();
        assert!(sheet.starts_with(".f0{fill:#FFFFFF;}\n.f1{font-size:50px;fill:#22262B;}\n@media"), "{sheet}");
        assert!(sheet.contains(".f1{font-size:50px;fill:#E4E7EA;}"), "{sheet}");
    }
}
