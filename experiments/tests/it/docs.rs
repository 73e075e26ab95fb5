//! The introductory pages are correct: every link has a target, every command in README and `docs/` works, and the
//! output in them is what the program prints.
//!
//! A page's commands run in order, in a separate folder that has `examples/`. A `toml` block that begins with
//! `# NAME.toml` is a file there. A `text` block after a `sh` block is the output of its last command; a last
//! line `…` means that more follows. A block after `<!-- long -->` is only parsed. `HAVERSACK_DOCS=update`
//! rewrites the `text` blocks.

mod columns;
mod commands;
pub(crate) mod markdown;

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use markdown::{Page, root};

#[test]
fn every_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let mut links = 0;
    for page in Page::all() {
        let folder = page.path.parent().unwrap();
        for link in page.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, of)| (file, Some(of)));
            let target = if file.is_empty() { page.path.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link} leads nowhere", page.name());
            if let Some(anchor) = anchor {
                let anchors = Page::read(&target).anchors();
                assert!(anchors.contains(anchor), "{}: {link}: no such heading among {anchors:?}", page.name());
            }
            links += 1;
        }
    }
    assert!(links > 60, "only {links} links were found");
}

#[test]
fn every_page_is_reached_from_the_first() {
    let docs = root().join("docs");
    let index = Page::read(&docs.join("README.md"));
    let linked: BTreeSet<String> = index.links().into_iter().collect();
    let of_site: BTreeSet<String> = Page::read(&docs.join("SUMMARY.md")).links().into_iter().collect();
    for entry in fs::read_dir(&docs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_page = name.ends_with(".md") && !["README.md", "SUMMARY.md"].contains(&name.as_str());
        assert!(!is_page || linked.contains(&name), "docs/README.md does not link {name}");
        assert!(!is_page || of_site.contains(&name), "docs/SUMMARY.md does not link {name}");
    }
    assert!(Page::read(&root().join("README.md")).links().contains(&"docs/README.md".to_owned()));
}

#[test]
fn commands_of_every_page_work_and_print_what_is_shown() {
    let checks: Vec<_> = Page::all().into_iter().map(|page| thread::spawn(move || commands::check(&page))).collect();
    let faults: Vec<String> = checks.into_iter().flat_map(|check| check.join().unwrap()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
