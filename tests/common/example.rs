//! Running the examples' programs, on folders made for them. (The tests of `checksum` share this
//! file, and nothing else.)

// None are built for the model checker, and none are run under miri.
#![cfg(not(any(miri, elastipool_loom)))]
#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// An example's program. `cargo test` builds it along with the tests, but `cargo test --test NAME`
/// does not: then it is missing, or older than its source, and built here.
pub(crate) fn program(example: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let name = format!("{example}{}", std::env::consts::EXE_SUFFIX);
    let program = profile_folder().join("examples").join(name);
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_fresh(&program, example) {
        build(example);
    }
    assert!(program.is_file(), "{} was not built", program.display());
    program
}

fn is_fresh(program: &Path, example: &str) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    // A source that is gone (the test was moved to another machine) makes nothing stale.
    let written = modified(&source.with_extension("rs"));
    modified(program).is_some_and(|built| written.is_none_or(|written| written <= built))
}

/// Builds the example to where `cargo test` would have put it.
fn build(example: &str) {
    let mut command = cargo("build");
    command.args(["--quiet", "--example", example]);
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "{command:?}: {status}");
}

/// `.../target/PROFILE`, where this test's program is.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its program");
    // .../target/PROFILE/deps/examples-0123456789abcdef
    test.ancestors().nth(2).expect("cargo's folders").to_owned()
}

/// A command of cargo, with the profile and the target folder of this test.
pub(crate) fn cargo(subcommand: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let profile_folder = profile_folder();
    let profile = match profile_folder.file_name() {
        Some(folder) if folder != "debug" => folder,
        // The one profile with a folder of another name.
        _ => OsStr::new("dev"),
    };
    let target_folder = profile_folder.parent().expect("a target folder");
    let mut command = Command::new(cargo);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg(subcommand);
    command.arg("--profile").arg(profile).arg("--target-dir").arg(target_folder);
    command
}

/// A folder of its own for each test, removed with all that is in it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let tests = env!("CARGO_CRATE_NAME");
        let name = format!("elastipool-{tests}-{}-{test}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir(&folder.0).expect("a new folder");
        folder
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        fs::write(&path, contents).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// A program, to be run in this folder, so that names are short and known.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).args(args);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left behind it would do no harm, and a panic here could hide that of the test.
        let _ = fs::remove_dir_all(&self.0);
    }
}
