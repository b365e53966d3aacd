//! The source files of a folder, and the types that they define.

use std::fs;
use std::path::{Path, PathBuf};

const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

pub(crate) fn sources(folder: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("the sources are readable");
            found.push(Source { path, text });
        }
    }
    found
}

pub(crate) fn is_test(source: &Source) -> bool {
    let parts: Vec<_> = source.path.iter().filter_map(|part| part.to_str()).collect();
    parts.iter().any(|part| ["models", "tests", "tests.rs", "model.rs"].contains(part))
}

/// The names of the types that begin a line of `text`, before its unit tests.
pub(crate) fn types(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("\n#[cfg(all(test").next().unwrap_or(text);
    code.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| {
        let mut words =
            line.split([' ', '<', '(', ';', '{', ':', '=']).filter(|word| !word.is_empty());
        let keyword =
            words.find(|word| !["pub", "crate)", "super)", "unsafe", "in"].contains(word))?;
        if KEYWORDS.contains(&keyword) { words.next() } else { None }
    })
}
