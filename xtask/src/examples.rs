//! `cargo xtask examples`: the documentation of each public type, function, constant and method has
//! an example.
//!
//! The compiler's lint `missing_doc_code_examples` skips items that are exported from private
//! modules, which nearly all of this crate's are. So this reads what rustdoc knows, in its JSON
//! format. `cargo test --doc` runs the examples.
//!
//! It also sees that the search of the documentation finds the methods by their names in other
//! crates.

use std::collections::HashSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::root;

/// Names in other crates, each with the item that has the name as a `doc(alias)`.
const ALIASES: &[(&str, &str)] = &[
    ("active_count", "ThreadPool::stats"),
    ("panic_count", "ThreadPool::stats"),
    ("max_count", "ThreadPool::max_size"),
    ("num_threads", "Builder::core_size"),
    ("num_threads", "Builder::max_size"),
    ("thread_stack_size", "Builder::stack_size"),
    ("set_num_threads", "ThreadPool::set_sizes"),
    ("spawn_blocking", "ThreadPool::evaluate"),
    ("spawn_ok", "ThreadPool::spawn"),
    ("spawn_with_handle", "ThreadPool::spawn_await"),
    ("spawn", "JoinSet::push"),
    ("join_next", "JoinSet::next_finished"),
    ("abort_all", "JoinSet::cancel_all"),
    ("abort", "JoinHandle::cancel"),
    ("abort", "AbortHandle::cancel"),
    ("get_name", "ThreadPool::name"),
    ("get_current_worker_count", "ThreadPool::current_worker_count"),
    ("get_idle_worker_count", "ThreadPool::idle_worker_count"),
];

/// Lists the public items without an example, and the missing aliases. Returns whether there is
/// neither.
pub(crate) fn run() -> bool {
    let root = root();
    let target = root.join("target/examples");
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(&root)
        .args(["rustdoc", "--package", "elastipool", "--all-features", "--target-dir"])
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        // The format is unstable; this variable lets a stable rustdoc write it.
        .env("RUSTC_BOOTSTRAP", "1");
    if !command.status().expect("cargo can be started").success() {
        return false;
    }
    let text = fs::read_to_string(target.join("doc/elastipool.json")).expect("rustdoc wrote it");
    let docs = Docs(serde_json::from_str(&text).expect("it is JSON"));
    let mut found = Found::default();
    docs.visit(&docs.0["root"], "", &mut found);
    for item in &found.without_example {
        eprintln!("no example: {item}");
    }
    // A change of the format must not look like success.
    assert!(
        found.items > 100,
        "only {} public items found: rustdoc's format has changed",
        found.items
    );
    println!("{} public items, {} without an example", found.items, found.without_example.len());
    let is_missing = |(alias, path): &(&str, &str)| !found.has_alias(alias, path);
    let missing: Vec<_> = ALIASES.iter().copied().filter(is_missing).collect();
    for (alias, path) in &missing {
        eprintln!("no alias: {alias} of {path}");
    }
    println!("{} aliases, {} missing", ALIASES.len(), missing.len());
    found.without_example.is_empty() && missing.is_empty()
}

#[derive(Default)]
struct Found {
    items: usize,
    /// Each with its place in the source.
    without_example: Vec<String>,
    /// Each attribute that is an alias, as rustdoc writes it, with the path of its item.
    aliases: HashSet<(String, String)>,
}

impl Found {
    fn has_alias(&self, alias: &str, path: &str) -> bool {
        let attribute = format!("#[doc(alias = \"{alias}\")]");
        self.aliases.contains(&(attribute, path.to_owned()))
    }
}

/// What rustdoc has written about the crate.
struct Docs(Value);

impl Docs {
    fn item(&self, id: &Value) -> &Value {
        &self.0["index"][id.to_string()]
    }

    /// Visits an item, and what is public in it.
    fn visit(&self, id: &Value, path: &str, found: &mut Found) {
        let item = self.item(id);
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next())
        else {
            return; // of another crate
        };
        let path = match item["name"].as_str() {
            Some(name) if path.is_empty() => name.to_owned(),
            Some(name) => format!("{path}::{name}"),
            None => path.to_owned(),
        };
        match kind.as_str() {
            "module" => self.visit_all(&inner["items"], &path, found),
            "use" => self.visit(
                &inner["id"],
                path.rsplit_once("::").map_or("", |(module, _)| module),
                found,
            ),
            "struct" | "enum" | "union" => {
                check(item, &path, found);
                for implementation in array(&inner["impls"]) {
                    let implementation = &self.item(implementation)["inner"]["impl"];
                    if implementation["trait"].is_null() {
                        self.visit_all(&implementation["items"], &path, found);
                    }
                }
            }
            "function" | "assoc_const" | "constant" | "macro" | "static" | "trait"
            | "type_alias" => {
                check(item, &path, found);
            }
            _ => {}
        }
    }

    fn visit_all(&self, ids: &Value, path: &str, found: &mut Found) {
        for id in array(ids) {
            self.visit(id, path, found);
        }
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn check(item: &Value, path: &str, found: &mut Found) {
    found.items += 1;
    let attributes = array(&item["attrs"]).filter_map(|attribute| attribute["other"].as_str());
    for alias in attributes.filter(|attribute| attribute.contains("alias")) {
        found.aliases.insert((alias.to_owned(), path.to_owned()));
    }
    if !item["docs"].as_str().is_some_and(has_example) {
        let span = &item["span"];
        let place = format!("{}:{}", span["filename"].as_str().unwrap_or("?"), span["begin"][0]);
        found.without_example.push(format!("{path} ({place})"));
    }
}

/// Whether a block of these docs is Rust: blocks of text, settings and commands are no examples.
fn has_example(docs: &str) -> bool {
    let fences = docs.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
    let kinds = ["rust", "no_run", "should_panic", "compile_fail", "edition"];
    let is_rust = |name: &str| {
        let is_run = name.is_empty() || kinds.iter().any(|kind| name.starts_with(kind));
        is_run && !name.contains("ignore")
    };
    // Every second one ends a block.
    fences.step_by(2).any(is_rust)
}

#[cfg(test)]
mod tests {
    use super::has_example;

    #[test]
    fn a_block_of_text_is_no_example() {
        assert!(has_example("A.\n\n```\nf();\n```\n") && has_example("```rust\nf();\n```"));
        assert!(has_example("```text\na\n```\n```no_run\nf();\n```"));
        assert!(!has_example("A ``` b") && !has_example("```text\na\n```\n") && !has_example("A."));
        assert!(!has_example("```ignore\nf();\n```\n") && !has_example("```rust,ignore\n```"));
    }
}
