//! Runs the program on folders made for it.

#[path = "../../tests/common/example.rs"]
mod example;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::path::Path;
use std::process::{Command, Output, Stdio};

use example::Folder;

// SHA-256 as in FIPS 180-2 and its examples.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
#[cfg(unix)]
const MILLION_A: &str = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

// ----- running it -----

impl Folder {
    fn checksum<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        self.command(env!("CARGO_BIN_EXE_checksum"), args)
    }

    fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.checksum(args).output().expect("the program runs")
    }
}

#[track_caller]
fn assert_ok(output: &Output) {
    // The list has a line for each file.
    assert_sums_up(output, output.stdout.iter().filter(|byte| **byte == b'\n').count());
}

/// It succeeds, and says no more on stderr than how many files it was.
#[track_caller]
fn assert_sums_up(output: &Output, expected_files: usize) {
    // Without a terminal there is no progress bar.
    let stderr = text(&output.stderr);
    let summary = stderr.strip_prefix("checksum: ").and_then(|rest| rest.split_once(" files in "));
    let (files, rest) = summary.unwrap_or_else(|| panic!("no summary: {stderr}"));
    assert_eq!(files, expected_files.to_string());
    let (seconds, workers) = rest.split_once(" s, by ").expect("a time");
    assert!(seconds.parse::<f64>().is_ok() && workers.ends_with(" workers\n"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(output.status.success(), "{}", output.status);
}

#[cfg(unix)]
#[track_caller]
fn assert_lines(output: &Output, expected: &[Vec<u8>]) {
    let expected: Vec<u8> = expected.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    assert_eq!(output.stdout.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

// ----- tests -----

#[test]
#[cfg(unix)]
fn checksum_lists_files_sorted_by_the_bytes_of_their_names() {
    let folder = Folder::new("sorted");
    folder.write("d/empty", "");
    folder.write("d/abc", "abc");
    folder.write("d/deeper/abc", "abc");
    // Before the folder `deeper`, by bytes, and after it, component by component.
    folder.write("d/deeper.txt", "");
    folder.write("d/Upper", "abc");
    folder.write("d/.hidden", "");
    // More than one read.
    folder.write("d/million", vec![b'a'; 1_000_000]);
    folder.write("not asked for", "abc");
    let output = folder.run(["d"]);
    assert_ok(&output);
    let lines = [
        (EMPTY, "d/.hidden"),
        (ABC, "d/Upper"),
        (ABC, "d/abc"),
        (EMPTY, "d/deeper.txt"),
        (ABC, "d/deeper/abc"),
        (EMPTY, "d/empty"),
        (MILLION_A, "d/million"),
    ];
    assert_lines(&output, &lines.map(|(sum, name)| format!("{sum}  {name}").into_bytes()));
}

/// Names that break lines, terminals and tools: each with its escaped form, in the order of the
/// list.
#[cfg(unix)]
fn odd_names() -> Vec<(&'static [u8], &'static [u8])> {
    let mut names: Vec<(&[u8], &[u8])> = vec![
        (b"\tab", b"\tab"),
        (b"\nnew\nline", b"\\nnew\\nline"),
        (b" space ", b" space "),
        (b"*star", b"*star"),
        (b"-dash", b"-dash"),
        (b"--jobs", b"--jobs"),
        (b"\\back\\\\slash\\n", b"\\\\back\\\\\\\\slash\\\\n"),
        (b"all\\\r\n", b"all\\\\\\r\\n"),
        (b"return\r", b"return\\r"),
        (b"\xc3\xa4\xe2\x82\xac", b"\xc3\xa4\xe2\x82\xac"),
    ];
    // Some systems do not have such names.
    if cfg!(not(target_vendor = "apple")) {
        names.push((b"not\xff\xfeUTF-8\xc3", b"not\xff\xfeUTF-8\xc3"));
        names.push((b"\xff\nboth", b"\xff\\nboth"));
    }
    names.sort();
    names
}

#[cfg(unix)]
fn write_odd_names(folder: &Folder) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;

    let mut lines = Vec::new();
    for (name, escaped) in odd_names() {
        folder.write(Path::new("d").join(OsStr::from_bytes(name)), "abc");
        let mark = if name == escaped { &b""[..] } else { b"\\" };
        lines.push([mark, ABC.as_bytes(), b"  d/", escaped].concat());
    }
    lines
}

#[test]
#[cfg(unix)]
fn checksum_escapes_names_as_coreutils_do() {
    let folder = Folder::new("escapes");
    let lines = write_odd_names(&folder);
    let output = folder.run(["d"]);
    assert_ok(&output);
    assert_lines(&output, &lines);
}

#[test]
#[cfg(unix)]
fn checksum_takes_odd_names_as_arguments() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new("arguments");
    folder.write("-", "");
    folder.write("-dash", "abc");
    let output = folder.run(["--", "-dash", "-"]);
    assert_ok(&output);
    // A lone dash would be the standard input of `sha256sum --check`.
    let lines = [format!("{ABC}  -dash"), format!("{EMPTY}  ./-")].map(String::into_bytes);
    assert_lines(&output, &lines);

    let broken = OsStr::from_bytes(b"no\nsuch\xff");
    let output = folder.run([broken]);
    assert_eq!(output.status.code(), Some(1));
    let message = b"checksum: no\\nsuch\xff: ";
    assert!(output.stderr.starts_with(message), "{}", output.stderr.escape_ascii());
}

#[test]
#[cfg(unix)]
fn sha256sum_accepts_the_list_of_checksum() {
    let Some(version) = coreutils_version() else {
        println!("not checked: there is no sha256sum of the GNU coreutils here");
        return;
    };
    let folder = Folder::new("check");
    // Before version 9 a carriage return was not escaped.
    if version >= 9 {
        write_odd_names(&folder);
    } else {
        println!("odd names not checked: sha256sum is that of coreutils {version}");
    }
    folder.write("d/empty", "");
    folder.write("d/million", vec![b'a'; 1_000_000]);
    folder.write("-", "abc");
    let output = folder.run(["d", "-"]);
    assert_ok(&output);
    folder.write("list", &output.stdout);
    let mut check = Command::new("sha256sum");
    // `--strict`: a line that it does not understand is an error too.
    check.current_dir(&folder.0).args(["--check", "--quiet", "--strict", "list"]);
    let check = check.output().expect("sha256sum runs");
    assert!(check.status.success(), "{}{}", text(&check.stdout), text(&check.stderr));
}

/// The major version of `sha256sum`, if it is the one of the GNU coreutils.
#[cfg(unix)]
fn coreutils_version() -> Option<u32> {
    let output = Command::new("sha256sum").arg("--version").output().ok()?;
    let output = text(&output.stdout);
    let version = output.split_once("(GNU coreutils) ")?.1;
    version.split('.').next()?.parse().ok()
}

#[test]
fn checksum_reports_what_cannot_be_read_and_lists_the_rest() {
    let folder = Folder::new("unreadable");
    folder.write("a", "abc");
    folder.write("z", "");
    let output = folder.run(["z", "missing", "a", "gone"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), format!("{ABC}  a\n{EMPTY}  z\n"));
    let stderr = text(&output.stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines[0].starts_with("checksum: missing: "), "{stderr}");
    assert!(lines[1].starts_with("checksum: gone: "), "{stderr}");
    assert_eq!(lines[2], "checksum: 2 files could not be read");

    let output = folder.run(["a", "missing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).ends_with("\nchecksum: 1 file could not be read\n"));
}

/// A file whose name can be found and whose contents no user can read: the memory of a
/// process, at the address 0.
#[test]
#[cfg(target_os = "linux")]
fn checksum_reports_a_file_that_fails_in_its_task() {
    let folder = Folder::new("failing");
    folder.write("a", "abc");
    let output = folder.run(["a", "/proc/self/mem"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), format!("{ABC}  a\n"));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("checksum: /proc/self/mem: "), "{stderr}");
    assert!(stderr.ends_with("\nchecksum: 1 file could not be read\n"), "{stderr}");
}

#[test]
#[cfg(unix)]
fn checksum_follows_links_only_if_they_are_asked_for() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    folder.write("d/file", "abc");
    symlink("file", folder.0.join("d/link")).expect("a link");
    symlink("..", folder.0.join("d/loop")).expect("a link");
    symlink("nowhere", folder.0.join("d/dangling")).expect("a link");
    let output = folder.run(["d"]);
    assert_ok(&output);
    assert_eq!(text(&output.stdout), format!("{ABC}  d/file\n"));

    symlink("d", folder.0.join("to-folder")).expect("a link");
    let output = folder.run(["d/link", "to-folder"]);
    assert_ok(&output);
    assert_eq!(text(&output.stdout), format!("{ABC}  d/link\n{ABC}  to-folder/file\n"));

    let output = folder.run(["d/dangling"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("checksum: d/dangling: "));

    let output = folder.run(["/dev/null"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("checksum: /dev/null: neither "));
}

/// Many small files and a few large ones.
fn write_many(folder: &Folder, count: usize) {
    for number in 0..count {
        // Long names, so that the list does not fit into a pipe.
        let name = format!("d/{}/{number}-{}", number % 10, "n".repeat(120));
        folder.write(name, number.to_string().repeat(1 + number % 100 * 50));
    }
}

#[test]
fn checksum_list_does_not_depend_on_the_number_of_jobs() {
    let folder = Folder::new("jobs");
    write_many(&folder, 300);
    let one = folder.run(["--jobs", "1", "d"]);
    assert_ok(&one);
    assert_eq!(one.stdout.lines().count(), 300);
    for jobs in ["2", "8", "512"] {
        let many = folder.run(["--jobs", jobs, "d"]);
        assert_ok(&many);
        assert!(many.stdout == one.stdout, "with {jobs} jobs the list is another one");
    }
    for jobs in ["0", "-1", "many"] {
        let none = folder.run([&format!("--jobs={jobs}"), "d"]);
        assert_eq!(none.status.code(), Some(2), "--jobs={jobs}");
    }
}

#[test]
fn checksum_treats_a_closed_pipe_as_no_error() {
    let folder = Folder::new("pipe");
    write_many(&folder, 400);
    let mut command = folder.checksum(["d"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let mut line = String::new();
    let mut stdout = BufReader::with_capacity(64, child.stdout.take().expect("it was piped"));
    stdout.read_line(&mut line).expect("a line");
    drop(stdout);
    assert_sums_up(&child.wait_with_output().expect("it ends"), 400);
    assert!(line.contains("  d"), "{line}");
}

#[test]
fn checksum_bench_prints_times_and_no_list() {
    let folder = Folder::new("bench");
    folder.write("a", "abc");
    folder.write("b", "1234567");
    let output = folder.run(["--bench", "--jobs", "2", "a", "b"]);
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(text(&output.stdout), "");
    let stderr = text(&output.stderr);
    let labels = ["files:         2", "bytes:         10", "one thread:", "pool of 2:", "ratio:"];
    assert_eq!(stderr.lines().count(), labels.len(), "{stderr}");
    for (line, label) in stderr.lines().zip(labels) {
        assert!(line.starts_with(label), "{stderr}");
    }
}

/// Without arguments it reads the folder that `$RUSTC --print sysroot` prints: here that is a
/// folder of this very name, and the compiler is `echo`.
#[test]
#[cfg(unix)]
fn checksum_reads_the_toolchain_by_default() {
    let folder = Folder::new("default");
    folder.write("--print sysroot/bin/rustc", "abc");
    let run = |compiler: &str| {
        let mut command = folder.checksum::<&str>([]);
        command.env("RUSTC", compiler).output().expect("the program runs")
    };
    let output = run("echo");
    assert_ok(&output);
    assert_eq!(text(&output.stdout), format!("{ABC}  --print sysroot/bin/rustc\n"));

    let output = run("./no-compiler");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).starts_with("checksum: no PATH given, and cannot run ./no-comp"));
}
