//! The structure of the workspace: how much code there is, which files import which, and limits on both.
//!
//! The sources are parsed, not run. Code that only tests use is left out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, ImplItem, Item, Meta, Pat, TraitItem, UseTree, Visibility};

/// Lines of code of all crates: neither blank nor comment, up to a file's tests.
const LINES: usize = 85_015;
/// Methods of `trait Policy`.
const HOOKS: usize = 6;
/// Sections `[profile…]` of the workspace's manifest.
const PROFILES: usize = 15;
/// Files that import each other in a circle.
const CIRCLE: usize = 3;
/// `pub` items that no other crate, test, benchmark or example names.
const UNNAMED: usize = 180;

/// The path of a module: the names that lead to it from the crate's root.
type Module = Vec<String>;

/// One source file of a crate.
struct Source {
    module: Module,
    text: String,
    items: Vec<Item>,
}

/// A member of the workspace.
struct Member {
    name: String,
    sources: Vec<Source>,
    /// The text of its tests, benchmarks and examples.
    outside: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn manifest() -> String {
    fs::read_to_string(root().join("Cargo.toml")).unwrap()
}

/// The Rust files under `folder`, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn source(folder: &Path, path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let within = path.strip_prefix(folder).unwrap().with_extension("");
    let module: Module = within.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    let module = if module == ["lib"] { Module::new() } else { module };
    Source { module, text, items: parsed.items }
}

fn members() -> Vec<Member> {
    let manifest: toml::Table = manifest().parse().unwrap();
    let names = manifest["workspace"]["members"].as_array().unwrap();
    let member = |name: &toml::Value| {
        let name = name.as_str().unwrap().to_owned();
        let folder = root().join(&name);
        let sources = rust_files(&folder.join("src"));
        let outside = ["tests", "benches", "examples"].iter().flat_map(|part| rust_files(&folder.join(part)));
        Member {
            sources: sources.iter().map(|path| source(&folder.join("src"), path)).collect(),
            outside: outside.map(|path| fs::read_to_string(path).unwrap()).collect(),
            name,
        }
    };
    names.iter().map(member).collect()
}

/// Neither blank nor comment, up to the first `#[cfg(test)]`.
fn lines_of_code(text: &str) -> usize {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The paths of other modules that a source uses, and how many of its functions take a tuple.
#[derive(Default)]
struct Reader {
    paths: BTreeSet<Vec<String>>,
    tuples: usize,
}

impl Reader {
    fn signature(&mut self, signature: &syn::Signature) {
        let takes_tuple = |input: &FnArg| matches!(input, FnArg::Typed(typed) if matches!(&*typed.pat, Pat::Tuple(_)));
        self.tuples += usize::from(signature.inputs.iter().any(takes_tuple));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.signature(&item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(method) = item {
            self.signature(&method.sig);
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(method) = item {
            self.signature(&method.sig);
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.paths.extend(used(&item.tree).into_iter().map(|used| used.path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

/// One name that a `use` brings in, and its path.
struct Used {
    name: String,
    path: Vec<String>,
}

fn used(tree: &UseTree) -> Vec<Used> {
    let leaf = |name: &syn::Ident, renamed: &syn::Ident| {
        let (name, path) = (name.to_string(), vec![name.to_string()]);
        // `self` in a group refers to the module before the group.
        let path = if name == "self" { Vec::new() } else { path };
        vec![Used { name: renamed.to_string(), path }]
    };
    match tree {
        UseTree::Name(name) => leaf(&name.ident, &name.ident),
        UseTree::Rename(rename) => leaf(&rename.ident, &rename.rename),
        UseTree::Group(group) => group.items.iter().flat_map(used).collect(),
        UseTree::Path(path) => {
            let before = path.ident.to_string();
            let mut below = used(&path.tree);
            for one in &mut below {
                if one.path.is_empty() && one.name == "self" {
                    one.name.clone_from(&before);
                }
                one.path.insert(0, before.clone());
            }
            below
        }
        _ => vec![Used { name: "*".to_owned(), path: Vec::new() }],
    }
}

/// The files of a crate, and the imports of each.
#[derive(Default)]
struct Imports {
    files: BTreeSet<Module>,
    /// The path of each name of a module.
    names: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Imports {
    fn new(sources: &[Source]) -> Self {
        let mut imports = Self::default();
        for source in sources.iter().filter(|source| source.module != ["main"]) {
            imports.files.insert(source.module.clone());
            let names = imports.names.entry(source.module.clone()).or_default();
            for item in source.items.iter().filter(|item| !is_for_tests(attributes(item))) {
                let Item::Use(item) = item else { continue };
                names.extend(used(&item.tree).into_iter().map(|used| (used.name, used.path)));
            }
        }
        imports
    }

    fn child(&self, module: &[String], name: &str) -> Option<Module> {
        let child: Module = module.iter().cloned().chain([name.to_owned()]).collect();
        self.files.contains(&child).then_some(child)
    }

    /// The file that declares `path` as seen from `module`; `None` if that is in another crate.
    fn file(&self, module: &Module, path: &[String], depth: u32) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        if depth == 0 {
            return None;
        }
        let (mut place, mut rest) = match first.as_str() {
            "crate" => (Module::new(), rest),
            "self" => (module.clone(), rest),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..])
            }
            name if self.child(module, name).is_some() => (module.clone(), path),
            name => {
                let behind = self.names.get(module)?.get(name).filter(|behind| behind[..] != path[..1])?;
                return self.file(module, &[behind, rest].concat(), depth - 1);
            }
        };
        while let Some(child) = rest.first().and_then(|name| self.child(&place, name)) {
            (place, rest) = (child, &rest[1..]);
        }
        let behind = rest.first().and_then(|name| self.names.get(&place)?.get(name));
        let further = behind.and_then(|behind| self.file(&place, &[behind, &rest[1..]].concat(), depth - 1));
        further.or_else(|| self.files.contains(&place).then_some(place))
    }

    /// For each file, the files that it imports. Seen from above, a file and the files below it count as one.
    fn of(&self, sources: &[Source]) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut graph = BTreeMap::new();
        for source in sources.iter().filter(|source| source.module != ["main"]) {
            let mut reader = Reader::default();
            source.items.iter().for_each(|item| reader.visit_item(item));
            let files = reader.paths.iter().filter_map(|path| self.file(&source.module, path, 12));
            let files = files.filter(|file| !file.starts_with(&source.module)).collect();
            graph.insert(source.module.clone(), files);
        }
        graph
    }
}

/// The largest group of files that all import each other, directly or indirectly.
fn largest_circle(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let reach = |from: &Module| {
        let (mut seen, mut ahead) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = ahead.pop() {
            for file in graph.get(&next).into_iter().flatten() {
                if seen.insert(file.clone()) {
                    ahead.push(file.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = graph.keys().map(|file| (file, reach(file))).collect();
    let circle = |file: &Module| {
        let back = |other: &&Module| reached.get(other).is_some_and(|files| files.contains(file));
        reached[file].iter().filter(back).map(|module| module.join("::")).collect::<Vec<_>>()
    };
    graph.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

fn imports(sources: &[Source]) -> BTreeMap<Module, BTreeSet<Module>> {
    Imports::new(sources).of(sources)
}

fn circle(sources: &[Source]) -> Vec<String> {
    largest_circle(&imports(sources))
}

/// The same for the top-level modules of a crate, each with all files below it.
fn circle_at_the_top(sources: &[Source]) -> Vec<String> {
    let mut tops: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (file, imported) in imports(sources) {
        let Some(top) = file.first() else { continue };
        let others = imported.iter().filter_map(|other| other.first()).filter(|other| *other != top);
        tops.entry(vec![top.clone()]).or_default().extend(others.map(|other| vec![other.clone()]));
    }
    largest_circle(&tops)
}

/// The name of a public item, if it has one.
fn public_name(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Fn(item) => (&item.vis, &item.sig.ident),
        Item::Static(item) => (&item.vis, &item.ident),
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then(|| name.to_string())
}

/// The names of public items and methods of a source.
fn public_names(source: &Source) -> Vec<String> {
    let mut names = Vec::new();
    for item in source.items.iter().filter(|item| !is_for_tests(attributes(item))) {
        names.extend(public_name(item));
        let Item::Impl(block) = item else { continue };
        for method in &block.items {
            let ImplItem::Fn(method) = method else { continue };
            names.extend(matches!(method.vis, Visibility::Public(_)).then(|| method.sig.ident.to_string()));
        }
    }
    names
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

/// The public names of each member that neither its own program nor anything outside its `src` mentions.
fn unnamed(members: &[Member]) -> Vec<String> {
    let said_by = |member: &Member, all: bool| {
        let own = member.sources.iter().filter(|source| all || source.module == ["main"]).map(|source| &source.text);
        own.chain(&member.outside).flat_map(|text| words(text)).map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let said: Vec<_> = members.iter().map(|member| said_by(member, true)).collect();
    let mut unnamed = Vec::new();
    for (place, member) in members.iter().enumerate() {
        let own = said_by(member, false);
        let elsewhere = |name: &String| (0..members.len()).any(|other| other != place && said[other].contains(name));
        let names: BTreeSet<String> = member.sources.iter().flat_map(public_names).collect();
        let left = names.into_iter().filter(|name| !own.contains(name) && !elsewhere(name));
        unnamed.extend(left.map(|name| format!("{}: {name}", member.name)));
    }
    unnamed
}

#[test]
fn the_house_keeps_within_its_bounds() {
    let members = members();
    let sources = || members.iter().flat_map(|member| &member.sources);
    let lines: usize = sources().map(|source| lines_of_code(&source.text)).sum();
    assert!(lines <= LINES, "{lines} lines of code, of at most {LINES}");

    let hooks = sources().flat_map(|source| &source.items).find_map(|item| match item {
        Item::Trait(item) if item.ident == "Policy" => Some(item.items.iter()),
        _ => None,
    });
    let hooks = hooks.unwrap().filter(|item| matches!(item, TraitItem::Fn(_))).count();
    assert!(hooks <= HOOKS, "{hooks} hooks of Policy, of at most {HOOKS}");

    let profiles = manifest().lines().filter(|line| line.starts_with("[profile")).count();
    assert!(profiles <= PROFILES, "{profiles} sections of profiles, of at most {PROFILES}");

    let mut reader = Reader::default();
    sources().flat_map(|source| &source.items).for_each(|item| reader.visit_item(item));
    assert_eq!(reader.tuples, 0, "functions with a tuple for a parameter");

    for member in &members {
        let circle = circle(&member.sources);
        assert!(circle.len() <= CIRCLE, "{}: {} files in a circle: {circle:?}", member.name, circle.len());
        let circle = circle_at_the_top(&member.sources);
        assert!(circle.is_empty(), "{}: a circle of modules: {circle:?}", member.name);
    }

    let unnamed = unnamed(&members);
    let list = unnamed.join("\n");
    assert!(unnamed.len() <= UNNAMED, "{} public items are named nowhere else:\n{list}", unnamed.len());
}

fn planted(files: &[(&str, &str)]) -> Vec<Source> {
    let planted = |&(path, text): &(&str, &str)| {
        let items = syn::parse_file(text).unwrap().items;
        let module = path.split('/').filter(|name| *name != "lib").map(str::to_owned).collect();
        Source { module, text: text.to_owned(), items }
    };
    files.iter().map(planted).collect()
}

#[test]
fn a_planted_circle_is_found_however_it_is_written() {
    for import in [
        "use crate::above::Thing;",
        "use crate::{below::{it, that}, above};",
        "fn f(_: crate::above::Thing) {}",
        "use super::above;",
        "use super::above::{self as others};",
        "use crate::Thing;",
        "use crate::below::Passed;",
    ] {
        let sources = planted(&[
            ("lib", "mod above; mod middle; mod below; pub use above::{self, Thing};"),
            ("above", "mod inner; use crate::middle::other; pub struct Thing;"),
            ("above/inner", "use crate::middle::other;"),
            ("middle", import),
            ("below", "pub use crate::above::Thing as Passed; pub fn it() {}"),
        ]);
        let circle = circle(&sources);
        assert!(circle.contains(&"middle".to_owned()), "{import}: {circle:?}");
        assert!(circle.iter().any(|file| file.starts_with("above")), "{import}: {circle:?}");
        assert!(!circle_at_the_top(&sources).is_empty(), "{import}");
    }
}

#[test]
fn tests_other_crates_and_what_is_below_are_no_circle() {
    for harmless in [
        "// use crate::above;",
        "#[cfg(test)] mod tests { use crate::above; }",
        "use other_crate::above;",
        "fn f(_: other::crate_like::above::Thing) {}",
    ] {
        let circle = circle(&planted(&[
            ("lib", "mod above; mod below;"),
            ("above", "use crate::below; use crate::below::it;"),
            ("below", harmless),
            ("below/own", "use super::it;"),
        ]));
        assert_eq!(circle, Vec::<String>::new(), "{harmless}");
    }
}

#[test]
fn a_tuple_for_a_parameter_is_counted_in_functions_and_methods_alone() {
    let code = "fn one((a, b): (u8, u8)) {} struct S; impl S { fn two(&self, (a, b): (u8, u8)) {} }
        fn none() { let add = |(a, b): (u8, u8)| a + b; } #[cfg(test)] mod tests { fn not((a, b): (u8, u8)) {} }";
    let mut reader = Reader::default();
    syn::parse_file(code).unwrap().items.iter().for_each(|item| reader.visit_item(item));
    assert_eq!(reader.tuples, 2);
}
