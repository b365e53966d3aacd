//! Checks the pages of the protocol against the sources: each race is described once and has a row
//! in the table, the code, models and mutants that the table names exist, and so do the races that
//! comments and mutants name.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::rooms::ROOMS;

/// The page with the table of races.
const OVERVIEW: &str = "src/sched/protocol.md";
/// Returns what the pages name and the sources below `root` do not have, and the reverse.
pub(crate) fn missing(root: &Path, mutants: &HashSet<&str>) -> Vec<String> {
    let mut files = Vec::new();
    collect_files(&root.join("src"), &mut files);
    // Of the code, and of the models.
    let mut comments = [String::new(), String::new()];
    let mut described = Vec::new();
    for path in &files {
        let text = read(path);
        if path.to_string_lossy().ends_with("protocol.md") {
            let titles = text.split("**Race ").skip(1);
            described.extend(titles.map(|title| title.split(':').next().unwrap_or("").to_owned()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let comments = &mut comments[usize::from(path.starts_with(root.join("src/models")))];
            for comment in text.lines().filter_map(|line| line.trim().strip_prefix("//")) {
                comments.push_str(comment.trim_start_matches(['/', '!']));
                comments.push(' ');
            }
        }
    }
    let [in_code, in_models] = comments.map(|comments| named_races(&comments));
    let mut missing = Vec::new();
    let mut rows = BTreeSet::new();
    for line in read(&root.join(OVERVIEW)).lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, race, code, models, broken] = cells[..] else { continue };
        if !["A", "B", "C", "D", "E", "F"].contains(&rule) {
            continue;
        }
        rows.insert(race.to_owned());
        let mut lacks = |what: &str| missing.push(format!("race {race}: {what}"));
        if described.iter().filter(|other| *other == race).count() != 1 {
            lacks("not described once");
        }
        if !in_code.contains(race) {
            lacks("no comment in the code names it");
        }
        check_code(root, quoted(code).collect(), &mut lacks);
        if quoted(models).next().is_none() && !models.starts_with("none: ") {
            lacks("no model, and no reason");
        }
        for name in quoted(models) {
            let (module, function) = name.rsplit_once("::").unwrap_or(("mod", name));
            let path = root.join(format!("src/models/{}.rs", module.replace("::", "/")));
            if !path.is_file() || !has_item(&read(&path), function) {
                lacks(&format!("no model {name}"));
            }
        }
        // A race without a mutant says why: "none: ...". So does one without a model.
        for title in broken.split("; ") {
            if !title.starts_with("none: ") && !mutants.contains(title) {
                lacks(&format!("no mutant {title:?}"));
            }
        }
    }
    assert!(!rows.is_empty(), "{OVERVIEW} has a table of races");
    let mut named: BTreeSet<_> = in_code.into_iter().chain(in_models).chain(described).collect();
    named.extend(mutants.iter().flat_map(|title| named_races(title)));
    missing.extend(named.difference(&rows).map(|race| format!("race {race}: not in the table")));
    missing
}

/// Checks that the files exist that are named, and the items of the file named before them.
fn check_code(root: &Path, names: Vec<&str>, lacks: &mut dyn FnMut(&str)) {
    let mut file = String::new();
    for name in names {
        if name.ends_with(".rs") {
            let folders = ROOMS.iter().chain(&["."]);
            let mut places = folders.map(|room| root.join("src").join(room).join(name));
            match places.find(|place| place.is_file()) {
                Some(place) => file = read(&place),
                None => lacks(&format!("no file {name}")),
            }
        } else if !has_item(&file, name) {
            lacks(&format!("no code {name}"));
        }
    }
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

/// The numbers in "race M", and in "races M, N and O".
fn named_races(text: &str) -> BTreeSet<String> {
    let words: Vec<_> = text.split_whitespace().collect();
    let mut races = BTreeSet::new();
    for (place, word) in words.iter().enumerate() {
        let word = word.trim_matches(|c: char| !c.is_alphabetic());
        let count = match word.to_lowercase().as_str() {
            "race" => 1,
            "races" => usize::MAX,
            _ => continue,
        };
        let listed = words[place + 1..].iter().filter(|word| **word != "and").take(count);
        let is_number = |word: &&&str| word.starts_with(|c: char| c.is_ascii_digit());
        let numbers = listed.take_while(is_number);
        races.extend(numbers.map(|word| word.chars().take_while(char::is_ascii_digit).collect()));
    }
    races
}

/// Appends the paths of all files below `folder`.
fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() {
            collect_files(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
