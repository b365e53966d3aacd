//! Checks that the folders of `src` are rooms: each file names only its own room and those below
//! it, the public modules name the scheduler by its doors only, and no circle is among these.
//! Methods stand in the room of their type. A room's documentation lists its doors: each name that
//! others use of it, and no other. Prints how large each room's interface is, and of the rooms that
//! are named their doors, with who uses them.
//!
//! Reads the paths of the code as text, in a `use` or inline, without comments, unit tests and
//! models. What follows the room in a path is a door. A method is called without its room's name. So
//! it is of the interface if a file of another room calls one of its name, and no other room has one
//! of that name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;
use crate::sources::{is_test, sources, types};

/// The rooms and the files of plain data, from the lowest to the highest. The type of a setting
/// is in such a file, and `lib.rs` exports it. All other modules are public, and stand above them.
pub(crate) const ROOMS: [&str; 19] = [
    "stats", "report", "sync", "error", "growth", "priority", "queue", "task", "waker", "crew",
    "thread", "flight", "keeper", "observe", "views", "sched", "sizing", "submit", "wait",
];

/// Public modules may not name these: the rooms above have doors for them.
const BEHIND: [&str; 5] = ["queue", "crew", "flight", "keeper", "observe"];

/// A public module that names such a room nevertheless, and why.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    ("builder.rs", "crew", "checks the sizes, and makes what the pool begins with"),
    ("builder.rs", "observe", "fills in the hooks, and what reports stalls"),
    ("control.rs", "crew", "publishes the largest size"),
];

/// A file that adds methods to a type of a lower room, and why they do not stand there.
const EXTENSIONS: [(&str, &str, &str); 6] = [
    (
        "sched/notify.rs",
        "MustLook",
        "the look needs the whole pool, and nothing else may use the token",
    ),
    ("sizing/measured.rs", "Shared", "how the pool grows is a part of its state"),
    ("sizing/stall.rs", "Shared", "how the pool grows is a part of its state"),
    ("submit/caller.rs", "Route", "a route is what submits"),
    ("submit/mod.rs", "Route", "a route is what submits"),
    ("wait/future_task.rs", "Job", "makes a task of a job that needs a route"),
];

/// The code of a file.
struct Code {
    /// Below `src`.
    path: PathBuf,
    text: String,
}

/// What a file names: a path from the crate's root, without `crate`.
struct Named {
    line: usize,
    path: String,
}

/// `shown`: the rooms whose interfaces are printed in full.
pub(crate) fn run(shown: &[String]) -> bool {
    let folder = root().join("src");
    let files = code(&folder);
    let mut faults = Vec::new();
    let mut above: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut interfaces: BTreeMap<&str, BTreeMap<String, BTreeSet<&str>>> = BTreeMap::new();
    let mut unused: BTreeSet<_> = EXCEPTIONS.iter().map(|(by, what, _)| (*by, *what)).collect();
    for file in &files {
        let name = file.path.to_str().expect("our file names are text");
        let from = room(&file.path);
        for Named { line, path } in file.named() {
            let (to, rest) = path.split_once("::").unwrap_or((&path, ""));
            if to == from {
                continue;
            }
            let mut fault = |why: &str| faults.push(format!("src/{name}:{line}: {path}: {why}"));
            let is_module = folder.join(to).is_dir() || folder.join(format!("{to}.rs")).is_file();
            match (floor(from), floor(to)) {
                (Some(from), Some(to)) if from > to => {}
                (Some(_), _) => fault("it is above the room that names it"),
                (None, Some(_)) if BEHIND.contains(&to) => {
                    let known = EXCEPTIONS.iter().find(|(by, what, _)| (*by, *what) == (name, to));
                    match known {
                        Some((by, what, _)) => _ = unused.remove(&(*by, *what)),
                        None => fault("it is behind the doors of the rooms above it"),
                    }
                }
                (None, Some(_)) => {}
                (None, None) if is_module => {
                    _ = above.entry(from).or_default().insert(to.to_owned());
                }
                (None, None) => fault("import it from the module that defines it"),
            }
            if let Some(room) = ROOMS.iter().find(|room| **room == to) {
                let door = rest.split("::").next().unwrap_or(rest);
                let users = interfaces.entry(room).or_default().entry(door.to_owned());
                users.or_default().insert(from);
            }
        }
    }
    for (file, room) in unused {
        faults.push(format!("src/{file} does not name {room}: it needs no exception"));
    }
    faults.extend(extensions(&files));
    faults.extend(circle(&above).map(|circle| format!("a circle: {}", circle.join(" -> "))));
    add_methods(&files, &mut interfaces);
    let mut total = (0, 0);
    for room in ROOMS {
        let mut interface = interfaces.remove(room).unwrap_or_default();
        let is_shown = shown.iter().any(|name| name == room);
        let methods = interface.keys().filter(|item| item.starts_with('.')).count();
        let named = interface.len() - methods;
        total = (total.0 + named, total.1 + methods);
        println!("{room}: others name {named}, and call {methods} methods");
        let show = |item: &str, users: BTreeSet<&str>| {
            format!("{item} ({})", Vec::from_iter(users).join(", "))
        };
        let doors = doors(&folder.join(room));
        for (names, sentence) in doors.iter().flatten() {
            let used = names.iter().filter_map(|name| {
                let users = interface.remove(name);
                if users.is_none() {
                    faults.push(format!("src/{room}/mod.rs lists {name}: no other uses it"));
                }
                Some(show(name, users?))
            });
            let used = Vec::from_iter(used).join(", ");
            _ = is_shown.then(|| println!("    {used}: {sentence}"));
        }
        for (item, users) in interface {
            if doors.is_some() && !item.starts_with('.') {
                faults.push(format!("src/{room}/mod.rs does not list {item}"));
            }
            _ = is_shown.then(|| println!("    {}", show(&item, users)));
        }
    }
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    println!("{total:?} in all; {} files, {} faults", files.len(), faults.len());
    faults.is_empty()
}

/// The doors that a room's documentation lists, by one line ``- `name`, `other`: sentence.`` for
/// those that go together. `None`: the room has no folder.
fn doors(room: &Path) -> Option<Vec<(Vec<String>, String)>> {
    let text = fs::read_to_string(room.join("mod.rs")).ok()?;
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let text = Vec::from_iter(lines).join("\n");
    let items = text.split("\n\n").flat_map(|paragraph| paragraph.split(" - `").skip(1));
    let doors = items.filter_map(|item| item.split_once("`: ")).map(|(names, sentence)| {
        let names = names.split(',').map(|name| name.trim().trim_matches('`').to_owned());
        (names.collect(), Vec::from_iter(sentence.split_whitespace()).join(" "))
    });
    Some(doors.collect())
}

/// The faults of methods that stand outside of their type's room.
fn extensions(files: &[Code]) -> Vec<String> {
    let mut homes = BTreeMap::new();
    for file in files.iter().filter(|file| floor(room(&file.path)).is_some()) {
        homes.extend(types(&file.text).map(|name| (name, room(&file.path))));
    }
    let mut unused: BTreeSet<_> = EXTENSIONS.iter().map(|(by, what, _)| (*by, *what)).collect();
    let mut faults = Vec::new();
    for file in files {
        let name = file.path.to_str().expect("our file names are text");
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        for head in file.text.split("\nimpl").skip(1) {
            // `impl<T> Type`: what follows the parameters.
            let head = match head.strip_prefix('<') {
                Some(parameters) => parameters.split_once("> ").map_or("", |(_, head)| head),
                None => head.trim_start(),
            };
            let line = head.lines().next().unwrap_or("");
            let path = head.split(|c| !is_name(c) && c != ':').next().unwrap_or("");
            let owner = path.rsplit(':').next().unwrap_or(path);
            let is_foreign = homes.get(owner).is_some_and(|home| *home != room(&file.path));
            if is_foreign && !line.contains(" for ") && !unused.remove(&(name, owner)) {
                let is_known = EXTENSIONS.iter().any(|(by, what, _)| (*by, *what) == (name, owner));
                if !is_known {
                    faults.push(format!("src/{name}: {owner} has methods outside of its room"));
                }
            }
        }
    }
    let unused = unused.into_iter();
    faults.extend(unused.map(|(file, owner)| format!("src/{file} adds no methods to {owner}")));
    faults
}

/// The files below `folder`, without comments, and without unit tests and models.
fn code(folder: &Path) -> Vec<Code> {
    let code = |line: &str| {
        let code = line.split(" // ").next().unwrap_or(line);
        if code.trim_start().starts_with("//") { String::new() } else { code.to_owned() }
    };
    let sources = sources(folder).into_iter().filter(|source| !is_test(source));
    let files = sources.map(|source| {
        let text = source.text.split("\n#[cfg(all(test").next().unwrap_or(&source.text);
        let text = Vec::from_iter(text.lines().map(code)).join("\n");
        let path = source.path.strip_prefix(folder).expect("it is below").to_owned();
        Code { path, text }
    });
    files.filter(|file| file.path != Path::new("lib.rs")).collect()
}

/// The room or public module of a file.
fn room(path: &Path) -> &str {
    let first = path.iter().next().and_then(|part| part.to_str());
    first.map_or("", |part| part.trim_end_matches(".rs"))
}

fn floor(room: &str) -> Option<usize> {
    ROOMS.iter().position(|other| *other == room)
}

impl Code {
    /// How many parts the path of the file's module has.
    fn depth(&self) -> usize {
        self.path.iter().count() - usize::from(self.path.ends_with("mod.rs"))
    }

    /// What it names of the crate, but not what it names by `super` in its own room.
    fn named(&self) -> Vec<Named> {
        let mut named = Vec::new();
        for root in ["crate::".to_owned(), "super::".repeat(self.depth())] {
            for (place, _) in self.text.match_indices(&root) {
                let before = &self.text[..place];
                if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let line = 1 + before.matches('\n').count();
                let mut paths = Vec::new();
                expand("", &self.text[place + root.len()..], &mut paths);
                named.extend(paths.into_iter().map(|path| Named { line, path }));
            }
        }
        named
    }
}

/// Appends the paths that `text` begins with, each after `prefix`. Returns what follows them.
fn expand<'a>(prefix: &str, text: &'a str, paths: &mut Vec<String>) -> &'a str {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let path = format!("{prefix}{name}");
    if !(name.is_empty() || name.ends_with("::")) || !rest.starts_with('{') {
        paths.push(path.trim_end_matches("::self").trim_end_matches(':').to_owned());
        return rest;
    }
    rest = &rest[1..];
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(after) = rest.strip_prefix('}') {
            return after;
        }
        rest = expand(&path, rest, paths);
        if let Some(after) = rest.strip_prefix(" as ") {
            rest = after.trim_start_matches(is_name);
        }
    }
}

/// Adds the methods that are visible in the whole crate, have their names alone, and are called in
/// other rooms.
fn add_methods<'a>(
    files: &'a [Code],
    interfaces: &mut BTreeMap<&'a str, BTreeMap<String, BTreeSet<&'a str>>>,
) {
    // None: of several rooms.
    let mut homes: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for file in files {
        for line in file.text.lines().filter(|line| line.starts_with(' ')) {
            let Some((before, after)) = line.split_once("fn ") else { continue };
            let name = after.split(['(', '<']).next().unwrap_or(after);
            let home = room(&file.path);
            let is_visible = before.trim_start().starts_with("pub(crate)") && floor(home).is_some();
            let known = homes.entry(name).or_insert(is_visible.then_some(home));
            if *known != Some(home) {
                *known = None;
            }
        }
    }
    for file in files {
        let user = room(&file.path);
        for call in file.text.split(['.', ':']).skip(1) {
            let end = call.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(call.len());
            let (name, rest) = call.split_at(end);
            if let Some((name, Some(home))) = homes.get_key_value(name)
                && *home != user
                && rest.starts_with('(')
            {
                let users = interfaces.entry(home).or_default().entry(format!(".{name}"));
                users.or_default().insert(user);
            }
        }
    }
}

/// Returns modules each of which imports from the next one, the last from the first.
fn circle(above: &BTreeMap<&str, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut rest: BTreeMap<_, _> = above.iter().collect();
    // Those that import nothing of the rest are in no circle.
    while let Some(leaf) = rest
        .iter()
        .find(|(_, imports)| !imports.iter().any(|to| rest.contains_key(&to.as_str())))
        .map(|(from, _)| **from)
    {
        rest.remove(&leaf);
    }
    let mut walk = vec![rest.keys().next()?.to_string()];
    loop {
        let last = walk.last().expect("it has a first");
        let next = rest[&last.as_str()].iter().find(|to| rest.contains_key(&to.as_str()))?.clone();
        if let Some(begin) = walk.iter().position(|module| *module == next) {
            return Some(walk.split_off(begin));
        }
        walk.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, extensions};

    #[test]
    fn methods_outside_of_the_room_of_their_type_are_a_fault() {
        let is_fault = |text: &str| {
            let file = |path: &str, text: &str| Code { path: path.into(), text: text.into() };
            let files = [file("queue/ring.rs", "pub(crate) struct Ring;"), file("wait/x.rs", text)];
            extensions(&files).iter().any(|fault| fault.contains("Ring has methods"))
        };
        for head in
            ["impl Ring", "impl<T> Ring<T>", "impl crate::queue::Ring", "impl<T> queue::Ring<T>"]
        {
            assert!(is_fault(&format!("use crate::queue;\n{head} {{\n    fn f(&self) {{}}\n}}\n")));
        }
        assert!(!is_fault("\nimpl Own for Ring {}\n") && !is_fault("\nimpl Own {}\n"));
    }
}
