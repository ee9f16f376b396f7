//! Both engines do the same: cases in which they once did not, and a few made-up ones.

use std::path::Path;

#[test]
fn what_once_differed_is_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "p4") {
            let source = std::fs::read_to_string(&path).unwrap();
            let test = std::fs::read_to_string(path.with_extension("stf")).unwrap();
            if let Err(difference) = weir_fuzz::replay(&source, &test) {
                panic!("{}: {difference}", path.display());
            }
            count += 1;
        }
    }
    assert!(count > 0);
}
