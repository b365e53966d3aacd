//! Says what `cargo run` without a package's name cannot know.

fn main() {
    println!(
        "Which one? The README lists the programs: start with `cargo run --release -p checksum`."
    );
    println!("`cargo bench` runs the benches.");
}
