//! The links of the documents lead somewhere: in a clone, and on the registry's page.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is a member").to_owned()
}

/// Returns the targets of the page's links `[text](target)` and images that are relative to the
/// page.
fn relative_links(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("the page exists");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.to_owned());
    // Rustdoc resolves `crate::ThreadPool`.
    let elsewhere = |target: &str| target.contains("://") || target.contains("::");
    targets.filter(|target| !elsewhere(target) && !target.starts_with('#')).collect()
}

#[test]
fn the_readme_needs_no_file_beside_it_but_its_images() {
    for target in relative_links(&root().join("README.md")) {
        assert!(target.ends_with(".svg"), "a link to {target}");
    }
}

#[test]
fn relative_links_lead_to_files() {
    let mut pages: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "versus/README.md"]
            .map(|page| root().join(page))
            .into();
    let docs = fs::read_dir(root().join("docs")).expect("it exists");
    let docs = docs.map(|file| file.expect("it is readable").path());
    pages.extend(docs.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    for page in pages {
        let folder = page.parent().expect("it is in a folder");
        for target in relative_links(&page) {
            let file = target.split('#').next().unwrap_or_default();
            assert!(folder.join(file).exists(), "{}: {target}", page.display());
        }
    }
}
