//! plotters' elements in fewer bytes: what SVG takes for granted is left out, and neighbouring lines of one pen are a path.

use super::FAMILY;

/// Appends the elements of a document that plotters wrote, each as a line.
pub(super) fn element(svg: &str, body: &mut String) {
    let Some((_, elements)) = svg.split_once(">\n") else { return };
    for line in elements.lines().filter(|line| *line != "</svg>") {
        // Of a text, the tag, the words and the end come each on a line.
        if line.starts_with('<') && line != "</text>" {
            body.push_str(&tag(line));
        } else {
            body.push_str(line);
        }
        if line.ends_with("/>") || line == "</text>" {
            body.push('\n');
        }
    }
}

/// A tag without attributes that say what holds anyhow.
fn tag(line: &str) -> String {
    let mut tag = line.replace(" opacity=\"1\"", "").replace(&format!(" font-family=\"{FAMILY}\""), "");
    for needless in [" stroke=\"none\" stroke-width=\"1\"", " stroke=\"none\""] {
        tag = tag.replace(needless, "");
    }
    tag = tag.replace(" \"/>", "\"/>");
    // plotters divides the size that it is given by one that is not exact.
    let Some((head, (size, rest))) = tag.split_once("font-size=\"").and_then(|(h, t)| Some((h, t.split_once('"')?)))
    else {
        return tag;
    };
    let size = size.parse().map_or_else(|_| size.to_owned(), |size: f64| ((size * 100.0).round() / 100.0).to_string());
    format!("{head}font-size=\"{size}\"{rest}")
}

/// The body with each run of lines in one pen as one path.
pub(super) fn joined(body: &str) -> String {
    let mut joined = String::with_capacity(body.len());
    let mut run: Option<(&str, Vec<&str>)> = None;
    for line in body.lines() {
        match (polyline(line), &mut run) {
            (Some((pen, points)), Some((same, lines))) if pen == *same => lines.push(points),
            (Some((pen, points)), _) => {
                end(run.replace((pen, vec![points])), &mut joined);
            }
            (None, _) => {
                end(run.take(), &mut joined);
                joined.extend([line, "\n"]);
            }
        }
    }
    end(run, &mut joined);
    joined
}

/// The pen and the points of a line; `None` of all else.
fn polyline(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<polyline ")?.strip_suffix("\"/>")?.split_once(" points=\"")
}

fn end(run: Option<(&str, Vec<&str>)>, joined: &mut String) {
    match run {
        None => {}
        Some((pen, lines)) if lines.len() == 1 => {
            joined.extend(["<polyline ", pen, " points=\"", lines[0], "\"/>\n"]);
        }
        Some((pen, lines)) => {
            joined.extend(["<path ", pen, " d=\"M", &lines.join("M"), "\"/>\n"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_line_and_says_only_what_it_must() {
        let mut body = String::new();
        let svg = format!(
            "<svg width=\"8\">\n<text x=\"1\" y=\"2\" font-family=\"{FAMILY}\" font-size=\"60.00000000000001\" \
             opacity=\"1\" fill=\"#22262B\">\nwords\n</text>\n</svg>\n"
        );
        element(&svg, &mut body);
        assert_eq!(body, "<text x=\"1\" y=\"2\" font-size=\"60\" fill=\"#22262B\">words</text>\n");
    }

    #[test]
    fn lines_of_one_pen_that_follow_each_other_are_one_path() {
        let line = |pen: &str, points: &str| format!("<polyline {pen} points=\"{points}\"/>\n");
        let body = [line("a", "1,2 3,4"), line("a", "5,6 7,8"), line("b", "1,1 2,2"), "<g>\n".into()].concat();
        assert_eq!(joined(&body), "<path a d=\"M1,2 3,4M5,6 7,8\"/>\n<polyline b points=\"1,1 2,2\"/>\n<g>\n");
    }
}
