//! Copies of the sources.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// What a copy of the sources is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    Complete,
    /// Without the dependencies of tests, benches and examples. The models need none of them, but
    /// cargo would build them all.
    ForModels,
    /// As for models, but what they call loom is shuttle: random schedules instead of all.
    ForSchedules,
}

/// What stands in for loom.
const SHUTTLE: &str = "loom = { package = \"shuttle\", version = \"0.9.10\" }";

/// Copies what git knows, and what it might know soon, and removes what it knows no longer.
pub(crate) fn copy_sources(root: &Path, tree: &Path, kind: Tree) {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .expect("git can be started");
    assert!(listed.status.success(), "git cannot list the files");
    let mut known = HashSet::new();
    for name in listed.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).expect("our file names are text");
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(mut new) = fs::read(&from) else { continue };
        if kind != Tree::Complete && name == "Cargo.toml" {
            new = without_dev_dependencies(&new, kind);
        }
        // Untouched if unchanged, so that cargo does not rebuild it.
        if fs::read(&to).ok().as_ref() != Some(&new) {
            fs::create_dir_all(to.parent().expect("a file has a folder"))
                .expect("target is writable");
            fs::write(&to, new).expect("target is writable");
        }
        known.insert(to);
    }
    remove_others(tree, &known);
}

fn remove_others(folder: &Path, known: &HashSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the copy is readable") {
        let path = entry.expect("the copy is readable").path();
        if path.is_dir() {
            remove_others(&path, known);
        } else if !known.contains(&path) {
            fs::remove_file(path).expect("the copy is writable");
        }
    }
}

/// Returns the manifest without its dev-dependencies, for schedules with shuttle.
fn without_dev_dependencies(manifest: &[u8], kind: Tree) -> Vec<u8> {
    let manifest = std::str::from_utf8(manifest).expect("a manifest is text");
    let mut manifest: Table = manifest.parse().expect("the manifest is valid");
    let remove = |table: &mut Table| table.remove("dev-dependencies");
    remove(&mut manifest).expect("there are dev-dependencies");
    let targets = manifest.get_mut("target").and_then(Value::as_table_mut).into_iter().flatten();
    for table in targets.filter_map(|(_, target)| target.as_table_mut()) {
        remove(table);
        let has_loom = |dependencies: &Value| dependencies.get("loom").is_some();
        if kind == Tree::ForSchedules && table.get("dependencies").is_some_and(has_loom) {
            let shuttle: Table = SHUTTLE.parse().expect("it is valid");
            table.insert("dependencies".to_owned(), Value::Table(shuttle));
        }
    }
    manifest.to_string().into_bytes()
}
