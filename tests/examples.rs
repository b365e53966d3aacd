//! Runs the examples `sum` and `histogram` on folders made for them.

// No programs are run under miri, and none are built for the model checker.
#![cfg(not(any(miri, elastipool_loom)))]

mod common;

use std::fs;
use std::process::Output;

use common::example::{Folder, program};

// ----- running them -----

impl Folder {
    fn create(&self, name: &str) {
        fs::create_dir_all(self.0.join(name)).expect("a folder");
    }

    fn run(&self, example: &str, args: &[&str]) -> Output {
        self.command(program(example), args).output().expect("the example runs")
    }

    /// Runs it as a user who cannot read everything. `None` if there is none.
    #[cfg(unix)]
    fn run_unprivileged(&self, example: &str, args: &[&str]) -> Option<Output> {
        use std::os::unix::process::CommandExt;
        use std::process::Command;

        const UNPRIVILEGED: u32 = 65534;

        if !rustix::process::geteuid().is_root() {
            return Some(self.run(example, args));
        }
        // The program itself may lie where only root may look.
        let copy = self.0.join("program");
        fs::copy(program(example), &copy).expect("a copy");
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

// ----- sum -----

/// The output without the times, which are checked to be there.
#[track_caller]
fn without_times(output: &Output) -> String {
    assert_ok(output);
    let stdout = text(&output.stdout);
    let mut times = 0;
    let lines: Vec<_> = stdout
        .lines()
        .map(|line| match line.split_once(" in ") {
            Some((line, time)) => {
                assert!(time.ends_with('s') && time.starts_with(|c: char| c.is_ascii_digit()));
                times += 1;
                line
            }
            None => line,
        })
        .collect();
    assert_eq!(times, 2, "{stdout}");
    lines.join("\n")
}

fn sums(numbers: usize, sum: &str) -> String {
    format!("numbers:     {numbers}\nsequential:  {sum}\non the pool: {sum}\nequal:       yes")
}

#[test]
fn sum_is_that_of_the_numbers_in_the_file() {
    let folder = Folder::new("sum");
    let numbers = (1..=1000_u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>();
    folder.write("numbers", numbers);
    // 500 * 1001
    assert_eq!(without_times(&folder.run("sum", &["numbers"])), sums(1000, "500500"));
    for chunks in [1, 2, 7, 999, 1000, 1001, usize::MAX] {
        let output = folder.run("sum", &["--chunks", &chunks.to_string(), "numbers"]);
        assert_eq!(without_times(&output), sums(1000, "500500"), "--chunks {chunks}");
    }
    for chunks in ["0", "-1", "many"] {
        let output = folder.run("sum", &[&format!("--chunks={chunks}"), "numbers"]);
        assert_eq!(output.status.code(), Some(2), "--chunks={chunks}");
    }
}

#[test]
fn sum_is_exact_where_64_bits_are_too_few() {
    let folder = Folder::new("overflow");
    folder.write("ones", [0xff; 80]);
    // 10 * (2^64 - 1)
    let expected = sums(10, "184467440737095516150");
    assert_eq!(without_times(&folder.run("sum", &["ones", "--chunks", "3"])), expected);
}

#[test]
fn sum_takes_what_is_missing_in_the_last_number_for_zeros() {
    let folder = Folder::new("padding");
    folder.write("bytes", [1, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
    assert_eq!(without_times(&folder.run("sum", &["bytes"])), sums(2, "259"));
}

#[test]
fn sum_of_an_empty_file_is_zero() {
    let folder = Folder::new("zero");
    folder.write("empty", "");
    assert_eq!(without_times(&folder.run("sum", &["empty"])), sums(0, "0"));
}

#[test]
fn sum_is_that_of_many_numbers_by_default() {
    let folder = Folder::new("no-file");
    let n = 1_u64 << 24;
    let expected = sums(1 << 24, &(n * (n + 1) / 2).to_string());
    assert_eq!(without_times(&folder.run("sum", &[])), expected);
}

#[test]
fn sum_says_what_it_cannot_read() {
    let folder = Folder::new("no-sum");
    folder.create("d");
    for path in ["missing", "d"] {
        let output = folder.run("sum", &[path]);
        assert_fails(&output, &format!("sum: {path}: "));
        assert_eq!(text(&output.stdout), "");
    }
}

// ----- histogram -----

#[test]
fn histogram_counts_sizes_by_powers_of_two() {
    let folder = Folder::new("histogram");
    for (number, size) in [0, 0, 1, 2, 3, 4, 7, 7, 7, 16, 1023, 1024, 5000].into_iter().enumerate()
    {
        folder.write(format!("d/{}/{number}", number % 2), vec![b'x'; size]);
    }
    let bar = |length| "#".repeat(length);
    // The longest bar is that of 4 files.
    let mut expected = String::from("   bytes       files\n");
    let rows = [
        ("0", 2, 25),
        ("1+", 1, 13),
        ("2+", 2, 25),
        ("4+", 4, 50),
        ("8+", 0, 0),
        ("16+", 1, 13),
        ("32+", 0, 0),
        ("64+", 0, 0),
        ("128+", 0, 0),
        ("256+", 0, 0),
        ("512+", 1, 13),
        ("1Ki+", 1, 13),
        ("2Ki+", 0, 0),
        ("4Ki+", 1, 13),
    ];
    for (label, files, length) in rows {
        expected += format!("{label:>8}  {files:>10}  {}", bar(length)).trim_end();
        expected += "\n";
    }
    expected += "     all          13  7094 bytes\n";
    assert_prints(&folder.run("histogram", &["d"]), &expected);
    // The order of the arguments does not matter.
    assert_prints(&folder.run("histogram", &["d/1", "d/0"]), &expected);
}

#[test]
fn histogram_of_many_files_adds_up() {
    let folder = Folder::new("many");
    for number in 0..500 {
        folder.write(format!("d/{}/{number}", number % 7), vec![b'x'; number]);
    }
    let output = folder.run("histogram", &["d"]);
    assert_ok(&output);
    let stdout = text(&output.stdout);
    // 499 * 250
    assert!(stdout.ends_with("     all         500  124750 bytes\n"), "{stdout}");
    // 0, 1, 2 to 3, ..., 256 to 499
    assert_eq!(stdout.lines().count(), 1 + 10 + 1, "{stdout}");
}

#[test]
fn histogram_of_an_empty_folder_has_no_rows() {
    let folder = Folder::new("no-files");
    folder.create("d");
    let expected = "   bytes       files\n     all           0  0 bytes\n";
    assert_prints(&folder.run("histogram", &["d"]), expected);
}

#[test]
fn histogram_reports_what_is_missing_and_counts_the_rest() {
    let folder = Folder::new("half");
    folder.write("file", "x");
    let output = folder.run("histogram", &["missing", "file"]);
    assert_fails(&output, "histogram: ");
    assert!(text(&output.stderr).contains("missing"));
    assert!(text(&output.stdout).ends_with("     all           1  1 bytes\n"));
}

#[test]
#[cfg(unix)]
fn histogram_reports_a_folder_that_cannot_be_read() {
    let folder = with_unreadable("unreadable-sizes", "file");
    let Some(output) = folder.run_unprivileged("histogram", &["d"]) else {
        println!("not checked: programs in {} cannot be run", folder.0.display());
        return;
    };
    assert_fails(&output, "histogram: ");
    assert!(text(&output.stderr).contains("d/closed"));
    assert!(text(&output.stdout).ends_with("     all           1  0 bytes\n"));
}

#[test]
#[cfg(unix)]
fn histogram_reads_the_toolchain_by_default() {
    let folder = Folder::new("toolchain");
    folder.write("--print sysroot/bin/rustc", "abc");
    let run = |compiler: &str| {
        let mut command = folder.command(program("histogram"), [""; 0]);
        command.env("RUSTC", compiler).output().expect("the example runs")
    };
    let output = run("echo");
    assert_ok(&output);
    assert!(text(&output.stdout).ends_with("     all           1  3 bytes\n"));
    let output = run("./no-compiler");
    assert_fails(&output, "histogram: no PATH given, and cannot run ./no-compiler: ");
    let output = run("false");
    assert_fails(&output, "histogram: no PATH given, and false does not know its sysroot");
}

#[test]
#[cfg(unix)]
fn histogram_does_not_follow_links() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    folder.write("d/p/file", "x");
    symlink("..", folder.0.join("d/loop")).expect("a link");
    symlink("nowhere", folder.0.join("d/dangling")).expect("a link");
    let output = folder.run("histogram", &["d"]);
    assert_ok(&output);
    assert!(text(&output.stdout).ends_with("     all           1  1 bytes\n"));
}
