//! The parts of Markdown that the project's pages use: headings, links, and fenced blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The root folder of the pages' paths.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// A page of Markdown.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The language after the fence: `sh`, `text`, `toml`.
    pub(crate) language: String,
    pub(crate) text: String,
    /// The number of its first line, from zero.
    pub(crate) line: usize,
    /// Whether `<!-- long -->` comes before it.
    pub(crate) is_long: bool,
}

impl Page {
    /// The introductory pages.
    pub(crate) fn all() -> Vec<Self> {
        let root = root();
        let mut paths = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("examples/README.md")];
        let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path: path.to_path_buf(), text }
    }

    /// Its path from the root.
    pub(crate) fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }

    /// Its fenced blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
        let mut is_long = false;
        for (line, text) in self.text.lines().enumerate() {
            match (text.strip_prefix("```"), open.as_mut()) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(language), None) => {
                    let language = language.to_owned();
                    open = Some(Block { language, text: String::new(), line: line + 1, is_long });
                }
                (None, Some(block)) => {
                    block.text.push_str(text);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
            if !text.is_empty() {
                is_long = text.trim() == "<!-- long -->";
            }
        }
        assert!(open.is_none(), "{}: a block does not end", self.name());
        blocks
    }

    /// Its lines outside of fenced blocks.
    pub(crate) fn prose(&self) -> Vec<&str> {
        let mut is_inside = false;
        let outside = |line: &&str| {
            let is_fence = line.starts_with("```");
            is_inside ^= is_fence;
            !is_inside && !is_fence
        };
        self.text.lines().filter(outside).collect()
    }

    /// Its text outside of fenced blocks, cut at backquotes: prose and code in turn.
    fn spans(&self) -> Vec<String> {
        // A link or code may span several lines.
        self.prose().join("\n").split('`').map(str::to_owned).collect()
    }

    /// The text between backquotes within its prose.
    pub(crate) fn code(&self) -> Vec<String> {
        self.spans().into_iter().skip(1).step_by(2).map(|code| code.replace('\n', " ")).collect()
    }

    /// The targets of its links.
    pub(crate) fn links(&self) -> Vec<String> {
        let prose = self.spans().into_iter().step_by(2);
        let targets = |text: String| -> Vec<String> {
            let rests = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            rests.map(|(target, _)| target.to_owned()).collect()
        };
        prose.flat_map(targets).collect()
    }

    /// The anchors of its headings, as GitHub makes them.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let headings = self.prose().into_iter().filter(|line| line.starts_with('#'));
        let anchor = |heading: &str| {
            let slug: String = heading
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let times = seen.entry(slug.clone()).or_insert(0);
            *times += 1;
            if *times == 1 { slug } else { format!("{slug}-{}", *times - 1) }
        };
        headings.map(anchor).collect()
    }

    /// The names in backquotes in the first column of every table under the heading `heading`, up to the next heading of
    /// its level or above.
    pub(crate) fn names_under(&self, heading: &str) -> Vec<String> {
        let level = heading.chars().take_while(|&c| c == '#').count();
        let mut lines = self.prose().into_iter().skip_while(|line| *line != heading).skip(1).peekable();
        assert!(lines.peek().is_some(), "{} has no heading '{heading}'", self.name());
        let ends = |line: &&str| {
            let signs = line.chars().take_while(|&c| c == '#').count();
            signs == 0 || signs > level
        };
        let cells = lines.take_while(ends).filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
    }
}

#[test]
fn links_anchors_and_blocks_are_found() {
    let text = "# A `b` (c)?\n[one](x.md#y) [`two`](z.md), `[no](n.md)`\n<!-- long -->\n```sh\n[no](in)\n```\n# A b c\n\
                | column | what |\n|---|---|\n| `k`, `l` | `m` |\n";
    let page = Page { path: root().join("page.md"), text: text.to_owned() };
    assert_eq!(page.links(), ["x.md#y", "z.md"]);
    assert_eq!(page.code()[..3], ["b", "two", "[no](n.md)"]);
    assert_eq!(page.anchors(), BTreeSet::from(["a-b-c".to_owned(), "a-b-c-1".to_owned()]));
    let blocks = page.blocks();
    assert_eq!((blocks.len(), blocks[0].language.as_str(), blocks[0].is_long), (1, "sh", true));
    assert_eq!((blocks[0].text.as_str(), blocks[0].line), ("[no](in)\n", 4));
    assert_eq!(page.names_under("# A b c"), ["k", "l"]);
}
