//! No circle leads from a top-level module of a crate back to it: who reads one module needs only those below it.
//!
//! The sources are read as text: comments and tests go, and what is left names other modules as `crate::name`, in groups
//! as `crate::{one, two::Item}`, and, in a module's own first file, as `super::name`. A name that the crate's root hands
//! on (`pub use module::Name`) stands for its module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules that each module names.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The text without comments and without what follows `#[cfg(test)]` and a module of tests.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default()).peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ")) {
            break;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first names behind every `prefix` that begins a path in `code`: one, or those of a group.
fn names_behind<'c>(code: &'c str, prefix: &str) -> Vec<&'c str> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|before: char| is_word(before) || before == ':' || before == '$') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let end = group.find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth < 0
            });
            let mut start = 0;
            let group = &group[..end.unwrap_or(group.len())];
            for (place, c) in group.char_indices().chain([(group.len(), ',')]) {
                depth += i32::from(c == '{') - i32::from(c == '}');
                // The closing brace of the group itself has left the depth one below.
                if c == ',' && depth == -1 {
                    names.push(first_word(group[start..place].trim_start()));
                    start = place + 1;
                }
            }
        } else {
            names.push(first_word(rest));
        }
    }
    names
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// The names that the root hands on, and the module that each is of.
fn handed_on(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for used in root.split(';').filter_map(|item| item.split("use ").nth(1)) {
        let module = first_word(used.trim_start_matches("crate::").trim_start_matches("self::"));
        if modules.contains(module) {
            let words = used.split(|c| !is_word(c)).filter(|word| *word != module);
            names.extend(words.map(|word| (word.to_owned(), module.to_owned())));
        }
    }
    names
}

/// What the modules of a crate name of each other: `files` are paths within `src` and their texts.
fn imports(files: &[(String, String)]) -> Imports {
    let module_of = |path: &str| path.split('/').next().map(|first| first.trim_end_matches(".rs").to_owned());
    let modules: BTreeSet<String> = files.iter().filter_map(|(path, _)| module_of(path)).collect();
    let modules: BTreeSet<String> = modules.into_iter().filter(|module| module != "lib" && module != "main").collect();
    let root = files.iter().find(|(path, _)| path == "lib.rs").map(|(_, text)| code(text)).unwrap_or_default();
    let handed_on = handed_on(&root, &modules);
    let mut imports: Imports = modules.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
    for (path, text) in files {
        let Some(own) = module_of(path).filter(|module| modules.contains(module)) else { continue };
        let code = code(text);
        let mut names = names_behind(&code, "crate::");
        if !path.contains('/') {
            names.extend(names_behind(&code, "super::"));
        }
        for name in names {
            let module = if modules.contains(name) { Some(name) } else { handed_on.get(name).map(String::as_str) };
            if let Some(module) = module.filter(|module| *module != own) {
                imports.entry(own.clone()).or_default().insert(module.to_owned());
            }
        }
    }
    imports
}

/// A circle among the modules, if there is one.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    fn visit(module: &str, imports: &Imports, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        if let Some(start) = path.iter().position(|seen| seen == module) {
            path.drain(..start);
            path.push(module.to_owned());
            return true;
        }
        if !done.contains(module) {
            path.push(module.to_owned());
            if imports.get(module).into_iter().flatten().any(|next| visit(next, imports, path, done)) {
                return true;
            }
            path.pop();
            done.insert(module.to_owned());
        }
        false
    }
    let (mut path, mut done) = (Vec::new(), BTreeSet::new());
    imports.keys().any(|module| visit(module, imports, &mut path, &mut done)).then_some(path)
}

fn read(folder: &Path, within: &str, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if within.is_empty() { name.clone() } else { format!("{within}/{name}") };
        if entry.path().is_dir() {
            read(&entry.path(), &path, files);
        } else if name.ends_with(".rs") {
            files.push((path, fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

#[test]
fn no_crate_of_the_workspace_has_a_circle_among_its_modules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    assert!(members.len() >= 10, "{members:?}");
    let mut circles = Vec::new();
    for member in members {
        let member = member.as_str().unwrap();
        let mut files = Vec::new();
        read(&root.join(member).join("src"), "", &mut files);
        let found = circle(&imports(&files));
        circles.extend(found.map(|circle| format!("{member}: {}", circle.join(" > "))));
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

fn of(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    circle(&imports(&files))
}

#[test]
fn a_planted_circle_is_found_however_it_is_written() {
    let below = ("below.rs", "pub fn it() {}");
    for planted in [
        "use crate::above::Thing;",
        "use crate::{\n    below::{it, that}, above,\n};",
        "fn f(_: crate::above::Thing) {}",
        "use super::above;",
        "use crate::Thing;",
    ] {
        let root = ("lib.rs", "mod above;\nmod middle;\nmod below;\npub use above::{self, Thing};");
        let above = ("above/inner.rs", "use crate::middle::other;");
        let found = of(&[root, above, ("middle.rs", planted), below]);
        assert_eq!(found, Some(vec!["above".to_owned(), "middle".to_owned(), "above".to_owned()]), "{planted}");
    }
}

#[test]
fn comments_tests_and_what_is_below_are_no_circle() {
    let above = ("above.rs", "use crate::below;\nuse crate::{below::it};");
    for harmless in [
        "// use crate::above;",
        "/// As [`crate::above`] has it.\nfn f() {}",
        "#[cfg(test)]\nmod tests {\n    use crate::above;\n}",
        "use other_crate::above;",
        "mod inner { use other::crate_like::above; }",
    ] {
        assert_eq!(of(&[above, ("below.rs", harmless), ("below/own.rs", "use super::above;")]), None, "{harmless}");
    }
}
