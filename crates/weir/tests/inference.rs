//! `anomaly_filter`: the same packets under every mode of `--async`, and models that are missing,
//! damaged, or named by a program that may not name them.

mod common;

use common::weir;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/programs/anomaly_filter");
const MODEL: &str = "anomaly_filter.onnx";

fn program() -> String {
    format!("{FOLDER}/anomaly_filter.p4")
}

/// The folder with the program and this content of its model.
fn beside(model: Option<&[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anomaly_filter.p4");
    std::fs::copy(program(), &path).unwrap();
    if let Some(model) = model {
        std::fs::write(folder.path().join(MODEL), model).unwrap();
    }
    (folder, path)
}

/// What `weir run` says before it ends; it must not begin.
fn refused(path: &Path) -> String {
    let path = path.to_str().unwrap();
    let (code, out, err) = weir(&["run", path, "-i", "1@null", "--time", "1s", "--message-format", "short"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(!err.contains("running"), "{err}");
    err
}

#[cfg(feature = "onnx")]
mod with_inference {
    use super::*;

    #[test]
    fn every_mode_and_engine_sends_the_same_packets() {
        let files = std::fs::read_dir(FOLDER).unwrap().map(|file| file.unwrap().path());
        let tests: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|e| e == "stf"))
            .map(|path| path.to_str().unwrap().to_owned())
            .collect();
        assert!(tests.len() >= 8);
        let program = program();
        for mode in ["sync", "async", "auto"] {
            let mut arguments = vec!["test", &program, "--engine", "both", "--async", mode];
            arguments.extend(tests.iter().map(String::as_str));
            let (code, out, err) = weir(&arguments);
            assert_eq!((code, err.as_str()), (0, ""), "{mode}: {out}");
            assert_eq!(out.matches(": passed (").count(), tests.len(), "{out}");
        }
    }

    #[test]
    fn a_missing_model_is_an_error_before_the_switch_runs() {
        let (folder, path) = beside(None);
        let missing = folder.path().join(MODEL);
        let expected = format!("cannot read {}: No such file or directory", missing.display());
        let err = refused(&path);
        assert!(err.contains(&expected) && err.contains("anomaly_filter.p4:"), "{err}");
        let (code, _, err) = weir(&["check", path.to_str().unwrap()]);
        assert!(
            code == 0 && err.contains("warning[not-runnable]") && err.contains(&expected),
            "{err}"
        );
    }

    #[test]
    fn a_damaged_model_is_an_error_that_names_it() {
        let whole = std::fs::read(Path::new(FOLDER).join(MODEL)).unwrap();
        let (_folder, path) = beside(Some(&whole[..whole.len() / 2]));
        let err = refused(&path);
        assert!(
            err.contains("the model `anomaly_filter.onnx` cannot be used: it is no ONNX file, or damaged"),
            "{err}"
        );
    }

    #[test]
    fn a_program_that_passes_other_features_is_told_how_many_the_model_takes() {
        let whole = std::fs::read(Path::new(FOLDER).join(MODEL)).unwrap();
        let (_folder, path) = beside(Some(&whole));
        let text = std::fs::read_to_string(&path).unwrap();
        let call = "model.score(meta.features, ANOMALOUS";
        assert!(text.contains(call));
        std::fs::write(
            &path,
            text.replace(call, "model.score(meta.features.packets, ANOMALOUS"),
        )
        .unwrap();
        let err = refused(&path);
        assert!(
            err.contains("`features` has 1 fields here, but the model `anomaly_filter.onnx` takes 8"),
            "{err}"
        );
    }

    #[test]
    fn programs_name_no_files_outside_of_their_folder() {
        let (_folder, path) = beside(None);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(MODEL, "../../etc/passwd")).unwrap();
        let err = refused(&path);
        assert!(err.contains("`../../etc/passwd` is no file of the program"), "{err}");
    }
}

#[cfg(not(feature = "onnx"))]
#[test]
fn a_build_without_inference_says_how_to_get_it() {
    let (_folder, path) = beside(None);
    let err = refused(&path);
    let expected = "this weir is built without inference, which the model `anomaly_filter.onnx` needs: \
                    build it with `--features onnx`";
    assert!(err.contains(expected) && err.contains("anomaly_filter.p4:"), "{err}");
}
