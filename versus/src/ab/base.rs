//! Builds the program of another commit.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::Result;

/// A versus program with the crate of another commit.
pub(crate) struct Base {
    pub(crate) program: PathBuf,
    description: String,
}

impl Base {
    /// Builds the commit in a worktree, in `folder`. There is one worktree, for one base after
    /// another: it keeps what was built.
    ///
    /// The base gets the rows of now, so that both programs do the same work: this package replaces
    /// that of the commit. If it does not compile with the crate of that commit, the commit's own
    /// package measures it.
    pub(crate) fn prepare(name: &str, folder: &Path) -> Result<Self> {
        if Path::new(name).is_file() {
            let program = Path::new(name).canonicalize()?;
            return Ok(Base { program, description: name.to_owned() });
        }
        let versus = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = versus.parent().ok_or("this package is a folder of the workspace")?;
        let commit =
            git(root, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])
                .map_err(|_| format!("git knows no commit {name}, and there is no such file"))?;
        let commit = commit.trim();
        let worktree = folder.join("worktree");
        check_out(root, commit, &worktree)?;
        let short = git(root, &["log", "-1", "--format=%h %s", commit])?.trim().to_owned();
        eprintln!("builds {short} in {}", worktree.display());
        replace_folder(versus, &worktree.join("versus"))?;
        copy_if_changed(&root.join("Cargo.lock"), &worktree.join("Cargo.lock"))?;
        let (built, rows) = match build(&worktree, folder) {
            Ok(built) => (built, "with the rows of now"),
            Err(error) => {
                eprintln!("versus: the rows of now do not compile with {commit}: {error}");
                clean(&worktree, commit)?;
                (
                    build(&worktree, folder)?,
                    "with rows of its own, which may measure something else",
                )
            }
        };
        let program = folder.join("base");
        fs::copy(built, &program)?;
        Ok(Base { program, description: format!("{short}, {rows}") })
    }
}

/// Leaves the files alone if the worktree is at that commit: cargo would compile those that are
/// written.
fn check_out(root: &Path, commit: &str, worktree: &Path) -> Result<()> {
    let path = worktree.to_str().ok_or("the target folder has a name in Unicode")?;
    // A worktree whose folder was deleted is forgotten.
    git(root, &["worktree", "prune"])?;
    if !worktree.join(".git").exists() {
        git(root, &["worktree", "add", "--quiet", "--detach", path, commit])?;
    } else if git(worktree, &["rev-parse", "HEAD"])?.trim() != commit {
        clean(worktree, commit)?;
    }
    Ok(())
}

fn clean(worktree: &Path, commit: &str) -> Result<()> {
    git(worktree, &["checkout", "--quiet", "--force", "--detach", commit])?;
    git(worktree, &["clean", "--quiet", "-fd"])?;
    Ok(())
}

fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(folder).args(args).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {} failed: {}", args.join(" "), said.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the program's path. It is built as this one was.
fn build(worktree: &Path, folder: &Path) -> Result<PathBuf> {
    let target = folder.join("target");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(worktree).args(["build", "-p", "versus", "--target-dir"]).arg(&target);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    if profile == "release" {
        command.arg("--release");
    }
    if !command.status()?.success() {
        return Err("cargo build has failed".into());
    }
    Ok(target.join(profile).join(format!("versus{}", env::consts::EXE_SUFFIX)))
}

/// Makes one folder like another, and writes only what differs.
fn replace_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        let source = from.join(path.file_name().ok_or("an entry has a name")?);
        match path.is_dir() {
            true if !source.is_dir() => fs::remove_dir_all(&path)?,
            false if !source.is_file() => fs::remove_file(&path)?,
            _ => {}
        }
    }
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().ok_or("an entry has a name")?);
        if path.is_dir() {
            replace_folder(&path, &target)?;
        } else {
            copy_if_changed(&path, &target)?;
        }
    }
    Ok(())
}

fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == bytes) { Ok(()) } else { Ok(fs::write(to, bytes)?) }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::{Base, replace_folder};

    #[test]
    fn a_folder_becomes_like_another() {
        let folder = env::temp_dir().join(format!("versus-folders-{}", process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("src")).unwrap();
        fs::create_dir_all(to.join("gone")).unwrap();
        fs::write(from.join("src/new"), "new").unwrap();
        fs::write(from.join("same"), "same").unwrap();
        fs::write(to.join("same"), "same").unwrap();
        fs::write(to.join("old"), "old").unwrap();
        let before = fs::metadata(to.join("same")).unwrap().modified().unwrap();

        replace_folder(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("src/new")).unwrap(), "new");
        assert!(!to.join("gone").exists() && !to.join("old").exists());
        assert_eq!(fs::metadata(to.join("same")).unwrap().modified().unwrap(), before);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_base_that_is_neither_commit_nor_file_says_so() {
        let error = Base::prepare("no-such-commit", &env::temp_dir()).err().unwrap();
        assert!(error.to_string().contains("no commit no-such-commit"), "{error}");
    }
}
