//! `cargo xtask weight`: the KB that a program which uses the crate has more than one which starts
//! a thread.
//!
//! Each program is built as its user would, and stripped. The sizes are compared with those of the
//! file `weight.toml`.

use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::path::Path;
use std::process::Command;

use toml::{Table, Value};

use crate::root;

/// A program that weighs over this part more than the file says is an error.
const TOLERANCE: f64 = 0.03;

/// What the others are compared with.
const BASE: (&str, &str) = ("base", r#"std::thread::spawn(|| println!("hi")).join().unwrap();"#);

const PROGRAMS: [(&str, &str); 3] = [
    (
        "default",
        r#"let pool = elastipool::ThreadPool::default();
           pool.execute(|| println!("hi"));
           pool.join();"#,
    ),
    (
        "sized",
        r#"let pool = elastipool::ThreadPool::new(2, 4, std::time::Duration::from_secs(60));
           pool.execute(|| println!("hi"));
           pool.join();"#,
    ),
    (
        "used",
        r#"let pool = elastipool::ThreadPool::default();
           pool.execute(|| println!("hi"));
           println!("{}", pool.evaluate(|| 1).await_complete());
           pool.spawn(async { println!("hi") });
           pool.scope(|scope| scope.execute(|| println!("hi")));
           pool.join();"#,
    ),
];

/// Prints what the programs weigh. Returns whether none weighs more than the file says. `--update`
/// writes the file.
pub(crate) fn run(arguments: &[String]) -> bool {
    let root = root();
    let file = root.join("xtask/weight.toml");
    let measured_with = compiler();
    let sizes = sizes(&root);
    if arguments.iter().any(|argument| argument == "--update") {
        let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), Value::Integer(*size)));
        let table = Table::from_iter([
            ("measured_with".to_owned(), Value::String(measured_with)),
            ("kilobytes".to_owned(), Value::Table(sizes.collect())),
        ]);
        fs::write(&file, table.to_string()).expect("the folder is writable");
        println!("written: {}. Say in the commit's message why it changes.", file.display());
        return true;
    }
    let text = fs::read_to_string(&file).expect("the file is in the repository");
    let recorded: Table = text.parse().expect("it is TOML");
    let is_comparable = recorded["measured_with"].as_str() == Some(&measured_with);
    if !is_comparable {
        println!("not compared: the file was written with {}", recorded["measured_with"]);
    }
    let mut passes = true;
    for (name, size) in sizes {
        let before = recorded["kilobytes"].get(name).and_then(Value::as_integer).unwrap_or(0);
        println!("{name:8} {size} KB more than a program that starts a thread; recorded: {before}");
        passes &= size as f64 <= before as f64 * (1.0 + TOLERANCE);
    }
    if is_comparable && !passes {
        eprintln!("more KB than {} says. If that is meant, run it with --update", file.display());
    }
    passes || !is_comparable
}

/// The same code has the same size only with the same compiler.
fn compiler() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc can be started");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let wanted = text.lines().filter(|line| line.starts_with("rustc") || line.starts_with("host"));
    wanted.collect::<Vec<_>>().join(", ")
}

/// Builds the programs, and returns their names and how many KB each has more than the base.
fn sizes(root: &Path) -> Vec<(&'static str, i64)> {
    let folder = root.join("target/weight");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder"))
            .expect("target is writable");
        fs::write(path, text).expect("target is writable");
    };
    let manifest = format!(
        "[workspace]\n\n[package]\nname = \"weight\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nelastipool = {{ path = {root:?} }}\n\n[profile.release]\nstrip = true\n"
    );
    write("Cargo.toml", manifest);
    let lock = fs::read_to_string(root.join("Cargo.lock")).expect("the workspace has one");
    write("Cargo.lock", lock);
    for (name, body) in [BASE].into_iter().chain(PROGRAMS) {
        write(&format!("src/bin/{name}.rs"), format!("fn main() {{\n{body}\n}}\n"));
    }
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(&folder).args(["build", "--quiet", "--release", "--target-dir", "target"]);
    assert!(command.status().expect("cargo can be started").success(), "the programs compile");
    let size = |name: &str| {
        let program = folder.join("target/release").join(name).with_extension(EXE_EXTENSION);
        fs::metadata(program).expect("cargo has built it").len() as i64
    };
    let base = size(BASE.0);
    PROGRAMS.map(|(name, _)| (name, (size(name) - base) / 1024)).to_vec()
}
