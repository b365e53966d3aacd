//! Runs the program `manifests` on folders made for it.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::example::Folder;

const PROGRAM: &str = env!("CARGO_BIN_EXE_manifests");

// ----- running it -----

impl Folder {
    fn create(&self, name: &str) {
        fs::create_dir_all(self.0.join(name)).expect("a folder");
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(PROGRAM, args).output().expect("the program runs")
    }

    /// Runs it as a user who cannot read everything. `None` if there is none.
    #[cfg(unix)]
    fn run_unprivileged(&self, args: &[&str]) -> Option<Output> {
        use std::os::unix::process::CommandExt;
        use std::process::Command;

        const UNPRIVILEGED: u32 = 65534;

        if !rustix::process::geteuid().is_root() {
            return Some(self.run(args));
        }
        // The program itself may lie where only root may look.
        let copy = self.0.join("program");
        fs::copy(PROGRAM, &copy).expect("a copy");
        let mut command = Command::new(&copy);
        let output =
            command.current_dir(&self.0).args(args).uid(UNPRIVILEGED).gid(UNPRIVILEGED).output();
        fs::remove_file(copy).expect("it is there");
        output.ok()
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).replace("\r\n", "\n")
}

#[track_caller]
fn assert_ok(output: &Output) {
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}

#[track_caller]
fn assert_prints(output: &Output, expected: &str) {
    assert_ok(output);
    assert_eq!(text(&output.stdout), expected);
}

/// It ends with an error, of which stderr says no more than this.
#[track_caller]
fn assert_fails(output: &Output, message: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with(message), "{stderr}");
    assert_eq!(stderr.matches(program_prefix(message)).count(), 1, "{stderr}");
}

/// That with which each message begins.
fn program_prefix(message: &str) -> &str {
    message.split_inclusive(": ").next().unwrap_or(message)
}

/// In a folder that only root can read there is one thing, and beside it there are others.
#[cfg(unix)]
fn with_unreadable(test: &str, file: &str) -> Folder {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new(test);
    folder.write(format!("d/closed/{file}"), "");
    folder.write(format!("d/open/{file}"), "");
    for (name, mode) in [("", 0o755), ("d", 0o755), ("d/open", 0o755), ("d/closed", 0o000)] {
        let path = folder.0.join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    folder
}

/// The number in a line of `manifests`.
#[track_caller]
fn number(output: &Output, label: &str) -> usize {
    let stdout = text(&output.stdout);
    let number = stdout.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{stdout}"))
}

const GOOD: &str = "[package]\nname = \"good\"\n";
const BROKEN: &str = "[package]\nname = \"broken\nversion = 1\n";

/// 3 * 20 packages below 3 folders.
fn write_packages(folder: &Folder) {
    for number in 0..60 {
        folder.write(format!("d/{}/{number}/Cargo.toml", number % 3), GOOD);
        // Neither of these is read.
        folder.write(format!("d/{}/{number}/src/lib.rs", number % 3), BROKEN);
        folder.write(format!("d/{}/{number}/other.toml", number % 3), BROKEN);
    }
}

#[test]
fn manifests_are_found_and_counted_whatever_the_limit_is() {
    let folder = Folder::new("manifests");
    write_packages(&folder);
    let expected = "folders:    64\nmanifests:  60\n";
    assert_prints(&folder.run(&["d"]), expected);
    for limit in ["1", "2", "1000"] {
        assert_prints(&folder.run(&["--limit", limit, "d"]), expected);
        let output = folder.run(&["--limit", limit, "--keep-going", "d/0", "d/1"]);
        assert_prints(&output, "folders:    42\nmanifests:  40\n");
    }
    for limit in ["0", "-1", "many"] {
        let output = folder.run(&[&format!("--limit={limit}"), "d"]);
        assert_eq!(output.status.code(), Some(2), "--limit={limit}");
    }
}

#[test]
fn manifests_below_a_package_are_for_nested() {
    let folder = Folder::new("nested");
    folder.write("d/p/Cargo.toml", GOOD);
    folder.write("d/p/tests/data/Cargo.toml", GOOD);
    assert_prints(&folder.run(&["d"]), "folders:    2\nmanifests:  1\n");
    assert_prints(&folder.run(&["--nested", "d"]), "folders:    4\nmanifests:  2\n");
}

#[test]
fn manifests_may_be_named_one_by_one() {
    let folder = Folder::new("named");
    folder.write("d/Cargo.toml", GOOD);
    folder.write("any.toml", GOOD);
    let output = folder.run(&["d/Cargo.toml", "any.toml", "d"]);
    assert_prints(&output, "folders:    1\nmanifests:  3\n");
}

#[test]
fn manifests_in_an_empty_folder_are_none() {
    let folder = Folder::new("no-manifests");
    folder.create("d");
    assert_prints(&folder.run(&["d"]), "folders:    1\nmanifests:  0\n");
}

#[test]
fn manifests_name_a_broken_one_and_what_is_wrong() {
    let folder = Folder::new("broken");
    write_packages(&folder);
    folder.write("d/1/13/Cargo.toml", BROKEN);
    for limit in ["1", "2", "100"] {
        let output = folder.run(&["--limit", limit, "d"]);
        let path = Path::new("d").join("1").join("13").join("Cargo.toml");
        assert_fails(&output, &format!("manifests: {}: TOML parse error", path.display()));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("line 2"), "{stderr}");
        // How much was read before is a matter of luck.
        assert!(number(&output, "manifests") < 60);
    }
}

#[test]
fn manifests_after_a_broken_one_are_dropped() {
    let folder = Folder::new("dropped");
    // One task at a time, in line: the folder, its manifest, and the folders that are to be dropped
    // then.
    folder.write("d/Cargo.toml", BROKEN);
    (0..7).for_each(|number| folder.write(format!("d/{number}/Cargo.toml"), GOOD));
    let output = folder.run(&["--nested", "--limit", "1", "d"]);
    assert_fails(&output, "manifests: d");
    assert_eq!(text(&output.stdout), "folders:    1\nmanifests:  0\ndropped:    7\n");
}

#[test]
fn manifests_with_keep_going_are_all_read_and_reported() {
    let folder = Folder::new("keep-going");
    write_packages(&folder);
    for number in [3, 4, 5] {
        folder.write(format!("d/{}/{number}/Cargo.toml", number % 3), BROKEN);
    }
    // No text at all.
    folder.write("d/0/6/Cargo.toml", b"\xff");
    for limit in ["1", "8"] {
        let args = ["--keep-going", "--limit", limit, "d", "missing"];
        let output = folder.run(&args);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "folders:    64\nmanifests:  56\n");
        let stderr = text(&output.stderr);
        assert_eq!(stderr.matches("manifests: ").count(), 5, "{stderr}");
        assert_eq!(stderr.matches("TOML parse error").count(), 3, "{stderr}");
        assert!(stderr.contains("manifests: missing: "), "{stderr}");
    }
}

#[test]
fn manifests_of_a_missing_folder_are_a_failure() {
    let folder = Folder::new("missing");
    let output = folder.run(&["missing"]);
    assert_fails(&output, "manifests: missing: ");
    assert_eq!(text(&output.stdout), "folders:    0\nmanifests:  0\ndropped:    0\n");
}

#[test]
#[cfg(unix)]
fn manifests_of_a_folder_that_cannot_be_read_are_a_failure() {
    let folder = with_unreadable("unreadable-manifests", "Cargo.toml");
    let Some(output) = folder.run_unprivileged(&["--keep-going", "d"]) else {
        println!("not checked: programs in {} cannot be run", folder.0.display());
        return;
    };
    assert_fails(&output, "manifests: d/closed: ");
    assert_eq!(text(&output.stdout), "folders:    2\nmanifests:  1\n");
}

#[test]
#[cfg(unix)]
fn manifests_behind_links_to_folders_are_not_read() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    folder.write("d/p/Cargo.toml", GOOD);
    symlink("..", folder.0.join("d/loop")).expect("a link");
    symlink("nowhere", folder.0.join("d/Cargo.toml")).expect("a link");
    assert_prints(&folder.run(&["d"]), "folders:    2\nmanifests:  1\n");
}

/// Without arguments it reads cargo's registry, and without that the folder that
/// `$RUSTC --print sysroot` prints: here that is a folder of this very name, and the compiler is
/// `echo`.
#[test]
#[cfg(unix)]
fn manifests_are_those_of_the_registry_by_default() {
    let folder = Folder::new("registry");
    folder.write("cargo/registry/src/index/package-1.0.0/Cargo.toml", GOOD);
    folder.write("--print sysroot/Cargo.toml", GOOD);
    let run = |cargo_home: &str, compiler: &str| {
        let mut command = folder.command(PROGRAM, [""; 0]);
        let command = command.env("CARGO_HOME", cargo_home).env("RUSTC", compiler);
        command.output().expect("the program runs")
    };
    assert_prints(&run("cargo", "./no-compiler"), "folders:    3\nmanifests:  1\n");
    assert_prints(&run("no-cargo", "echo"), "folders:    1\nmanifests:  1\n");
    let output = run("no-cargo", "./no-compiler");
    assert_fails(&output, "manifests: no PATH given, and cannot run ./no-compiler: ");
    let output = run("no-cargo", "false");
    assert_fails(&output, "manifests: no PATH given, and false does not know its sysroot");

    // In a home, where nothing says otherwise.
    folder.write("home/.cargo/registry/src/index/package-1.0.0/Cargo.toml", GOOD);
    let mut command = folder.command(PROGRAM, [""; 0]);
    let output = command.env_remove("CARGO_HOME").env("HOME", "home").output();
    assert_prints(&output.expect("the program runs"), "folders:    3\nmanifests:  1\n");
}
