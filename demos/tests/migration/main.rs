//! The programs of `docs/migration.md` compile and run, before and after the move, and the page
//! shows exactly their difference.

mod orx_on_the_pool;
mod rayon_side_by_side;

/// Runs the program with each pool, and compares both with the page.
macro_rules! programs {
    ($($name:ident: $title:literal, $file:literal;)*) => {$(
        mod $name {
            mod before {
                include!(concat!("before/", $file));

                #[test]
                fn runs() {
                    main();
                }
            }

            mod after {
                include!(concat!("after/", $file));

                #[test]
                fn runs() {
                    main();
                }
            }

            #[test]
            fn the_page_shows_the_difference() {
                let before = include_str!(concat!("before/", $file));
                let after = include_str!(concat!("after/", $file));
                let lines = super::difference($title);
                assert_eq!(super::side(&lines, '-'), before, "before the move");
                assert_eq!(super::side(&lines, '+'), after, "after the move");
            }
        }
    )*};
}

programs! {
    from_rusty_pool: "# From rusty_pool", "rusty_pool.rs";
    from_threadpool: "# From threadpool", "threadpool.rs";
    from_rayon: "# From rayon's `spawn`", "rayon.rs";
    from_tokio: "# From tokio's `spawn_blocking`", "tokio.rs";
}

programs! {
    from_futures: "# From the `ThreadPool` of futures", "futures.rs";
}

/// Returns the lines of the first difference in this section of the page.
fn difference(title: &str) -> Vec<&'static str> {
    let page = include_str!("../../../docs/migration.md");
    let section = page.lines().skip_while(|line| *line != title).skip(1);
    let section = section.take_while(|line| !line.starts_with("# "));
    let block = section.skip_while(|line| *line != "```diff").skip(1);
    block.take_while(|line| *line != "```").collect()
}

/// Returns one side of a difference: the lines with `sign` and the common ones.
fn side(lines: &[&str], sign: char) -> String {
    let belongs = |line: &&&str| line.is_empty() || line.starts_with([' ', sign]);
    let lines = lines.iter().filter(belongs);
    lines.map(|line| line.get(1..).unwrap_or("").to_owned() + "\n").collect()
}
