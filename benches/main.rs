//! A package needs a target that is no bench: this one says how to run them.

fn main() {
    println!("cargo bench --package benches");
}
