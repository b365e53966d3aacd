//! Checks that a name means one thing: a type is defined once, `Type::name` in a comment exists,
//! and so do the test that judges a mutant, and the functions in the walks of `CONTRIBUTING.md`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::mutants::{self, By};
use crate::sources::{Source, is_test, sources, types};
use crate::{root, walks};

pub(crate) fn run() -> bool {
    let root = root();
    let (sources, tests) = (sources(&root.join("src")), sources(&root.join("tests")));
    let mut faults = twice(&sources);
    faults.extend(unknown(&sources));
    faults.extend(walks::faults(&root, &sources));
    for (title, by) in mutants::judges() {
        if !exists(by, &root, &sources, &tests) {
            faults.push(format!("mutant {title:?}: its test does not exist"));
        }
    }
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    println!("{} sources, {} faults", sources.len(), faults.len());
    faults.is_empty()
}

/// The types that two files define, or one file twice. Those of functions and tests are left out,
/// and the stand-ins of models.
fn twice(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !is_test(source)) {
        for name in types(&source.text) {
            places.entry(name).or_default().push(&source.path);
        }
    }
    let several = places.into_iter().filter(|(_, paths)| paths.len() > 1);
    several.map(|(name, paths)| format!("the type {name} is defined in {paths:?}")).collect()
}

/// What comments call `Type::name`, where the crate defines the type and nothing of that name.
fn unknown(sources: &[Source]) -> Vec<String> {
    let known: HashSet<&str> = sources.iter().flat_map(|source| types(&source.text)).collect();
    let words: HashSet<&str> =
        sources.iter().flat_map(|source| words_of_code(&source.text)).collect();
    let mut unknown = Vec::new();
    for source in sources {
        for line in source.text.lines().filter(|line| line.trim_start().starts_with("//")) {
            for name in line.split('`').skip(1).step_by(2) {
                let Some((before, after)) = name.rsplit_once("::") else { continue };
                let (owner, item) =
                    (before.rsplit("::").next().unwrap_or(before), after.split('(').next());
                if let Some(item) =
                    item.filter(|item| known.contains(owner) && !words.contains(item))
                {
                    unknown.push(format!("{}: there is no {owner}::{item}", source.path.display()));
                }
            }
        }
    }
    unknown
}

/// The words outside of comments.
fn words_of_code(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

/// Whether the test of a mutant exists.
fn exists(by: &By, root: &Path, sources: &[Source], tests: &[Source]) -> bool {
    match by {
        By::Model(name) => sources.iter().any(|source| is_test(source) && has_test(source, name)),
        By::Unit(name) => sources.iter().any(|source| has_test(source, name)),
        By::Test(file, name) => {
            let paths = [root.join("tests").join(file), root.join(format!("tests/{file}.rs"))];
            let is_of_file =
                |source: &Source| paths.iter().any(|path| source.path.starts_with(path));
            tests.iter().any(|source| is_of_file(source) && has_test(source, name))
        }
    }
}

/// Whether it has a function whose name contains the last part of `name`, as cargo compares them,
/// or is the module of that name.
fn has_test(source: &Source, name: &str) -> bool {
    let part = name.rsplit("::").find(|part| !part.is_empty()).unwrap_or_default();
    let is_of_module = source.path.with_extension("").iter().any(|folder| folder == part);
    is_of_module || source.text.lines().any(|line| line.contains("fn ") && line.contains(part))
}

#[cfg(test)]
mod tests {
    use super::twice;
    use crate::sources::Source;

    #[test]
    fn a_type_that_one_file_defines_twice_is_a_fault() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let once = "struct A;\nfn f() {\n    struct B;\n}\npub(crate) enum B {}\n";
        assert_eq!(twice(&[source("a.rs", once)]).len(), 0);
        let again = "#[cfg(x)]\nstruct A;\n#[cfg(not(x))]\nstruct A(u8);\n";
        assert_eq!(twice(&[source("a.rs", again)]).len(), 1);
        assert_eq!(twice(&[source("a.rs", once), source("b.rs", again)]).len(), 1);
    }
}
