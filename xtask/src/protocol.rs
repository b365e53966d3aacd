//! Checks that what `protocol.md` names in its table of races exists: code, models, mutants, and comments.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

const PROTOCOL: &str = "src/runtime/protocol.md";

/// Returns what the table of races names and the sources below `root` do not have.
pub(crate) fn missing(root: &Path, mutants: &HashSet<&str>) -> Vec<String> {
    let protocol = read(&root.join(PROTOCOL));
    let mut comments = String::new();
    collect_comments(&root.join("src"), &mut comments);
    let mut missing = Vec::new();
    let mut rows = 0;
    for line in protocol.lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [race, _ordered_by, code, models, broken] = cells[..] else { continue };
        if race.is_empty() || !race.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        rows += 1;
        let mut lacks = |what: &str| missing.push(format!("race {race}: {what}"));
        let mut file = String::new();
        for name in quoted(code) {
            if name.ends_with(".rs") {
                let places = [format!("src/runtime/{name}"), format!("src/{name}")];
                match places.iter().find(|place| root.join(place).is_file()) {
                    Some(place) => file = read(&root.join(place)),
                    None => lacks(&format!("no file {name}")),
                }
            } else if !has_item(&file, name) {
                lacks(&format!("no code {name}"));
            }
        }
        for name in quoted(models) {
            let (module, function) = name.rsplit_once("::").unwrap_or(("mod", name));
            let path = root.join(format!("src/models/{}.rs", module.replace("::", "/")));
            if !path.is_file() || !has_item(&read(&path), function) {
                lacks(&format!("no model {name}"));
            }
        }
        for title in broken.split("; ") {
            // A race without a mutant says why: "none: ...".
            if !title.starts_with("none: ") && !mutants.contains(title) {
                lacks(&format!("no mutant {title:?}"));
            }
        }
        if !names_race(&comments, race) {
            lacks("no comment in the code names it");
        }
    }
    assert!(rows > 0, "{PROTOCOL} has a table of races");
    missing
}

/// The parts of a table's cell between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether the source defines a function or type of this name.
fn has_item(source: &str, name: &str) -> bool {
    ["fn ", "struct "].iter().any(|keyword| {
        source.match_indices(&format!("{keyword}{name}")).any(|(place, text)| {
            let next = source[place + text.len()..].chars().next();
            next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
        })
    })
}

/// Whether the comments say "race N", or name it in "races M and N".
fn names_race(comments: &str, race: &str) -> bool {
    let words: Vec<_> = comments.split_whitespace().collect();
    let number = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let is = |word: &str, wanted: &str| {
        word.trim_matches(|c: char| !c.is_alphabetic()).eq_ignore_ascii_case(wanted)
    };
    words.windows(2).any(|pair| is(pair[0], "race") && number(pair[1]) == race)
        || words.windows(4).any(|four| {
            is(four[0], "races") && [number(four[1]), number(four[3])].contains(&race.to_owned())
        })
}

/// Appends the comments of all sources below `folder`, other than the models.
fn collect_comments(folder: &Path, comments: &mut String) {
    for entry in fs::read_dir(folder).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() {
            if !path.ends_with("models") {
                collect_comments(&path, comments);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = read(&path);
            for comment in source.lines().filter_map(|line| line.trim().strip_prefix("//")) {
                comments.push_str(comment.trim_start_matches(['/', '!']));
                comments.push(' ');
            }
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
