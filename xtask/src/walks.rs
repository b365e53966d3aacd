//! Checks the walks in `CONTRIBUTING.md`. A step names a file, then a function that the file
//! defines. After the word "calls" it names functions, until the sentence ends: the body of the
//! function before them must name each. So a walk that the code has left is a fault.

use std::fs;
use std::path::Path;

use crate::sources::Source;

/// Returns what the walks say and the sources do not.
pub(crate) fn faults(root: &Path, sources: &[Source]) -> Vec<String> {
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("it is readable");
    let (_, walks) = text.split_once("walks through the code").expect("it has walks");
    let mut faults = Vec::new();
    for walk in walks.split("\n### ").skip(1) {
        let (title, steps) = walk.split_once('\n').unwrap_or((walk, ""));
        let mut lacks = |what: String| faults.push(format!("the walk {title:?}: {what}"));
        let mut step = Step { sources, file: None, caller: "", calls: false };
        // Prose and what stands between backquotes take turns.
        for (place, part) in steps.split('`').enumerate() {
            if place % 2 == 0 {
                step.read_prose(part);
            } else {
                step.read_name(part, &mut lacks);
            }
        }
    }
    faults
}

/// Where a walk is.
struct Step<'a> {
    sources: &'a [Source],
    /// The file that was named last.
    file: Option<&'a Source>,
    /// The function that was named last, other than as one that is called.
    caller: &'a str,
    /// Whether the sentence has said "calls".
    calls: bool,
}

impl<'a> Step<'a> {
    fn read_prose(&mut self, prose: &str) {
        let end = prose.rfind(['.', ';', ':', '\n']).filter(|&end| {
            // A line that continues a step ends no sentence.
            !prose[end..].starts_with("\n   ")
        });
        self.calls &= end.is_none();
        self.calls |= prose[end.unwrap_or(0)..].contains("calls");
    }

    fn read_name(&mut self, name: &'a str, lacks: &mut dyn FnMut(String)) {
        if name.ends_with(".rs") {
            let mut found = self.sources.iter().filter(|source| source.path.ends_with(name));
            (self.file, self.calls) = (found.next(), false);
            if self.file.is_none() || found.next().is_some() {
                lacks(format!("not one file {name}"));
            }
            return;
        }
        let name = name.rsplit("::").next().unwrap_or(name);
        // Others are types and states.
        let Some(Source { path, text }) =
            self.file.filter(|_| name.starts_with(char::is_lowercase))
        else {
            return;
        };
        let path = path.display();
        if !self.calls {
            self.caller = name;
            if bodies(text, name).next().is_none() {
                lacks(format!("{path} has no function {name}"));
            }
        } else if !bodies(text, self.caller).any(|body| calls(body, name)) {
            lacks(format!("{} of {path} does not call {name}", self.caller));
        }
    }
}

/// The bodies of all functions of this name.
fn bodies<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!("fn {name}");
    let places: Vec<_> = text.match_indices(&start).map(|(place, _)| place + start.len()).collect();
    let is_name = |place: &usize| text[*place..].starts_with(['(', '<']);
    places.into_iter().filter(is_name).filter_map(|place| {
        let signature = &text[place..];
        let open = signature.find(['{', ';'])?;
        let mut depth = 0;
        let end = signature[open..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        })?;
        Some(&signature[open..open + end])
    })
}

/// Whether the code, comments aside, calls a function of this name, or names it by its path.
fn calls(code: &str, name: &str) -> bool {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut places = lines.flat_map(|line| {
        line.match_indices(name).map(|(at, _)| (&line[..at], &line[at + name.len()..]))
    });
    places.any(|(before, after)| {
        let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        is_whole && (after.starts_with('(') || after.starts_with("::<") || before.ends_with("::"))
    })
}

#[cfg(test)]
mod tests {
    use super::{bodies, calls};

    #[test]
    fn a_body_ends_where_its_braces_do() {
        let text = "fn a(x: u8) { if x { b() } }\nfn ab() {}\nfn a<T>() { c::<T>() }";
        let found: Vec<_> = bodies(text, "a").collect();
        assert_eq!(found, ["{ if x { b() } ", "{ c::<T>() "]);
        assert!(calls(found[0], "b") && !calls(found[0], "c"));
        assert!(!calls("// calls b()\nbc()", "b") && !calls("let b = 1;", "b"));
    }
}
