//! What a call site costs its program: bytes of code, and time to compile. Each call site has a
//! closure or future type of its own, as in real programs.
//!
//! It builds small programs that differ only in the number of call sites, and compares them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use clap::Args;
use indicatif::ProgressBar;
use object::{Object, ObjectSection, SectionKind};

use crate::Result;
use crate::quantile::quantile;
use crate::report::{align_right, number, table};

#[derive(Args)]
pub(crate) struct CodeSize {
    /// How many call sites a program has
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(2..))]
    sites: u32,

    /// How many times each program is compiled
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// A crate that runs closures or futures.
struct Library {
    name: &'static str,
    pool_type: &'static str,
    new_pool: &'static str,
}

const NONE: Library = Library { name: "none", pool_type: "()", new_pool: "()" };
const ELASTIPOOL: Library = Library {
    name: "elastipool",
    pool_type: "elastipool::ThreadPool",
    new_pool: "elastipool::ThreadPool::builder().build()",
};
const RUSTY_POOL: Library = Library {
    name: "rusty_pool",
    pool_type: "rusty_pool::ThreadPool",
    new_pool: "rusty_pool::ThreadPool::default()",
};
const RAYON: Library = Library {
    name: "rayon",
    pool_type: "rayon::ThreadPool",
    new_pool: "rayon::ThreadPoolBuilder::new().build().unwrap()",
};
const TOKIO: Library = Library {
    name: "tokio",
    pool_type: "tokio::runtime::Runtime",
    new_pool: "tokio::runtime::Runtime::new().unwrap()",
};

/// One way to call a library.
struct Call {
    library: Library,
    name: &'static str,
    /// What the call site does. `TASK` stands for the closure or the future.
    code: &'static str,
    task: &'static str,
}

/// `SITE` stands for the number of the call site.
const CLOSURE: &str = "move || _ = black_box(x + SITE)";
const CLOSURE_WITH_RESULT: &str = "move || black_box(x + SITE)";
const FUTURE: &str = "async move { _ = black_box(ready(x + SITE).await) }";

const CALLS: &[Call] = &[
    Call { library: NONE, name: "plain call", code: "(TASK)()", task: CLOSURE },
    Call { library: ELASTIPOOL, name: "execute", code: "pool.execute(TASK)", task: CLOSURE },
    Call { library: RUSTY_POOL, name: "execute", code: "pool.execute(TASK)", task: CLOSURE },
    Call { library: RAYON, name: "spawn", code: "pool.spawn(TASK)", task: CLOSURE },
    Call {
        library: ELASTIPOOL,
        name: "evaluate",
        code: "pool.evaluate(TASK)",
        task: CLOSURE_WITH_RESULT,
    },
    Call {
        library: RUSTY_POOL,
        name: "evaluate",
        code: "pool.evaluate(TASK)",
        task: CLOSURE_WITH_RESULT,
    },
    Call { library: RAYON, name: "install", code: "pool.install(TASK)", task: CLOSURE_WITH_RESULT },
    Call {
        library: TOKIO,
        name: "spawn_blocking",
        code: "pool.spawn_blocking(TASK)",
        task: CLOSURE_WITH_RESULT,
    },
    Call { library: ELASTIPOOL, name: "spawn", code: "pool.spawn(TASK)", task: FUTURE },
    Call { library: RUSTY_POOL, name: "spawn", code: "pool.spawn(TASK)", task: FUTURE },
    Call { library: TOKIO, name: "spawn", code: "pool.spawn(TASK)", task: FUTURE },
];

impl Call {
    /// A program with that many call sites. None of them is inlined into `main`, and none is left
    /// out.
    fn program(&self, sites: u32) -> String {
        let Library { pool_type, new_pool, .. } = self.library;
        let code = self.code.replace("TASK", self.task);
        let site = |site: u32| {
            let code = code.replace("SITE", &site.to_string());
            format!("#[inline(never)]\nfn site_{site}(pool: &Pool, x: u64) {{\n    {code};\n}}\n")
        };
        let functions: String = (0..sites).map(site).collect();
        let names: String = (0..sites).map(|site| format!("site_{site}, ")).collect();
        format!(
            "#![allow(unused)]\n\
             use std::future::ready;\n\
             use std::hint::black_box;\n\
             type Pool = {pool_type};\n\
             {functions}\
             fn main() {{\n    \
                 let pool: Pool = {new_pool};\n    \
                 let sites: [fn(&Pool, u64); {sites}] = [{names}];\n    \
                 for site in black_box(sites) {{\n        site(&pool, 1);\n    }}\n\
             }}\n"
        )
    }
}

/// A program's size and the time it took to build it.
struct Built {
    code: u64,
    time: Duration,
}

/// Where the programs are built, one after another. Their dependencies are built once.
struct Workshop(PathBuf);

impl Workshop {
    /// Beside the running program.
    fn open() -> Result<Self> {
        let folder = env::current_exe()?.with_file_name("call-sites");
        fs::create_dir_all(folder.join("src"))?;
        let versus = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = versus.parent().ok_or("this package is a folder of the workspace")?;
        // The versions that the rows are measured with.
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let manifest = format!(
            "[workspace]\n\n\
             [package]\n\
             name = \"call-sites\"\n\
             version = \"0.0.0\"\n\
             edition = \"2024\"\n\n\
             [dependencies]\n\
             elastipool = {{ path = {root:?} }}\n\
             rayon = \"1\"\n\
             rusty_pool = \"1\"\n\
             tokio = {{ version = \"1\", features = [\"rt-multi-thread\"] }}\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        let workshop = Workshop(folder);
        workshop.build("fn main() {}\n")?;
        Ok(workshop)
    }

    fn build(&self, program: &str) -> Result<Built> {
        fs::write(self.0.join("src/main.rs"), program)?;
        let target = self.0.join("target");
        let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(["build", "--release", "--offline", "--quiet", "--target-dir"]).arg(&target);
        let start = Instant::now();
        let status = command.current_dir(&self.0).stdout(Stdio::null()).status()?;
        let time = start.elapsed();
        if !status.success() {
            return Err(format!("a program in {} does not compile", self.0.display()).into());
        }
        let name = format!("call-sites{}", env::consts::EXE_SUFFIX);
        Ok(Built { code: code_size(&target.join("release").join(name))?, time })
    }
}

/// The bytes of machine code in a program.
fn code_size(program: &Path) -> Result<u64> {
    let bytes = fs::read(program)?;
    let sections = object::File::parse(&*bytes)?;
    let code = sections.sections().filter(|section| section.kind() == SectionKind::Text);
    Ok(code.map(|section| section.size()).sum())
}

impl CodeSize {
    /// Builds all programs, in turns, and prints a table.
    pub(crate) fn run(&self) -> Result<()> {
        let workshop = Workshop::open()?;
        let mut samples: Vec<Vec<(f64, f64)>> = CALLS.iter().map(|_| Vec::new()).collect();
        let bar = ProgressBar::new(u64::from(self.rounds) * CALLS.len() as u64);
        for _ in 0..self.rounds {
            for (call, samples) in CALLS.iter().zip(&mut samples) {
                // What all call sites share is in both programs.
                let one = workshop.build(&call.program(1))?;
                let all = workshop.build(&call.program(self.sites))?;
                let bytes = all.code.saturating_sub(one.code) as f64 / f64::from(self.sites - 1);
                samples.push((bytes, all.time.saturating_sub(one.time).as_secs_f64()));
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        self.print(&samples);
        Ok(())
    }

    fn print(&self, samples: &[Vec<(f64, f64)>]) {
        let seconds = format!("seconds for {}", self.sites);
        let mut table = table(&["crate", "call", "bytes per call site", &seconds]);
        for (call, samples) in CALLS.iter().zip(samples) {
            let median = |values: &mut dyn Iterator<Item = f64>| {
                let mut values: Vec<_> = values.collect();
                values.sort_unstable_by(f64::total_cmp);
                quantile(&values, 0.5).map_or_else(String::new, number)
            };
            table.add_row([
                call.library.name.to_owned(),
                call.name.to_owned(),
                median(&mut samples.iter().map(|&(bytes, _)| bytes)),
                median(&mut samples.iter().map(|&(_, seconds)| seconds)),
            ]);
        }
        align_right(&mut table, &[2, 3]);
        println!("{table}");
    }
}

#[cfg(test)]
mod tests {
    use super::CALLS;

    #[test]
    fn each_call_site_has_a_task_of_its_own() {
        for call in CALLS {
            let program = call.program(3);
            assert_eq!(
                program.matches("black_box(x + 2)").count()
                    + program.matches("ready(x + 2)").count(),
                1
            );
            assert!(program.contains("[site_0, site_1, site_2, ]"), "{program}");
        }
    }
}
