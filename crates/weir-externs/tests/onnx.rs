//! The model of anomaly_filter against the scores that its training script prints, and models that
//! are no models.
#![cfg(feature = "onnx")]

use std::path::Path;
use std::sync::Arc;
use weir_extern_api::{Call, Extern, Files, Folder, Object, Parameter, ProgramFileError, Signature};
use weir_externs::Status;
use weir_ir::{ConstValue, ExternInstance, Loc};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/programs/anomaly_filter");
const MODEL: &str = "anomaly_filter.onnx";
/// The fields of `features_t`.
const WIDTHS: [u32; 8] = [16, 16, 16, 16, 24, 16, 16, 1];
/// The script computes in 64 bits, the model in 32: scores may differ by this, in units of 1/65536.
const TOLERANCE: i64 = 8;

fn make(file: ConstValue, files: &dyn Files) -> Result<Arc<dyn Object>, String> {
    let instance = ExternInstance {
        name: "MyIngress.model".into(),
        type_name: "onnx_model".into(),
        type_arguments: Vec::new(),
        arguments: vec![("file".into(), file)],
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    };
    let registry = weir_externs::registry();
    registry.find_type("onnx_model").expect("a type")(&instance, files)
}

fn shipped() -> Arc<dyn Object> {
    make(ConstValue::String(MODEL.into()), &Folder::new(Path::new(FOLDER))).expect("the model is accepted")
}

fn classify_signature(widths: &[u32]) -> Signature {
    let parameters = vec![
        Parameter::input("features", widths),
        Parameter::output("class", &[8]),
        Parameter::output("score", &[16]),
        Parameter::output("status", &[8]),
    ];
    Signature::new(parameters, &[])
}

fn score_signature(widths: &[u32]) -> Signature {
    let parameters = vec![
        Parameter::input("features", widths),
        Parameter::input("class", &[8]),
        Parameter::output("score", &[16]),
        Parameter::output("status", &[8]),
    ];
    Signature::new(parameters, &[])
}

/// Class, score and status of a call.
fn call(method: &dyn Extern, signature: &Signature, features: &[u64], class: u64) -> (u64, u64, u64) {
    method.check(signature).expect("the declaration fits");
    let mut words = vec![0; signature.words()];
    words[..features.len()].copy_from_slice(features);
    words[features.len()] = class;
    let mut call = Call::new(signature, &mut words, None);
    method.call(&mut call);
    (call.get(1), call.get(2), call.get(3))
}

/// Features, the class and the scores of both classes.
fn vectors() -> Vec<([u64; 8], u64, [u64; 2])> {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("vectors.txt")).expect("the script wrote it");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
            let (features, rest) = numbers.split_at(8);
            (features.try_into().expect("eight"), rest[0], [rest[1], rest[2]])
        })
        .collect()
}

#[test]
fn scores_are_those_of_the_training_script() {
    let model = shipped();
    let classify = model.method("classify").expect("a method");
    let score = model.method("score").expect("a method");
    assert!(model.method("train").is_none() && model.keys().is_none());
    let (for_class, for_score) = (classify_signature(&WIDTHS), score_signature(&WIDTHS));
    let vectors = vectors();
    assert!(vectors.len() > 100);
    let undecided = vectors
        .iter()
        .filter(|(.., scores)| scores[1].abs_diff(1 << 15) < 1 << 14);
    assert!(undecided.count() > 20, "most scores are near 0 or 1, and tell little");
    for (features, class, scores) in vectors {
        let near = |found: u64, expected: u64| (found as i64 - expected as i64).abs() <= TOLERANCE;
        for number in [0, 1] {
            let (_, found, status) = call(&*score, &for_score, &features, number);
            let expected = scores[number as usize];
            assert!(near(found, expected), "{features:?}: {found} instead of {expected}");
            assert_eq!(status, u64::from(Status::Ok.code()));
        }
        let (found_class, found, _) = call(&*classify, &for_class, &features, 0);
        assert_eq!(found_class, class, "{features:?}");
        assert!(near(found, scores[class as usize]), "{features:?}: {found}");
    }
    let outside = call(&*score, &for_score, &[1; 8], 2);
    assert_eq!(outside, (2, 0, Status::OutOfRange.code().into()));
}

#[test]
fn several_threads_get_the_same_scores() {
    let model = shipped();
    let signature = score_signature(&WIDTHS);
    let of_all = || {
        let score = model.method("score").expect("a method");
        let all = vectors()
            .into_iter()
            .map(|(features, ..)| call(&*score, &signature, &features, 1));
        all.collect::<Vec<_>>()
    };
    let expected = of_all();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(of_all)).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no panic"), expected);
        }
    });
}

#[test]
fn declarations_that_do_not_fit_the_model_are_refused() {
    let classify = shipped().method("classify").expect("a method");
    let error = |widths: &[u32]| classify.check(&classify_signature(widths)).expect_err("refused");
    assert_eq!(
        error(&WIDTHS[1..]),
        "`features` has 7 fields here, but the model `anomaly_filter.onnx` takes 8"
    );
    assert_eq!(
        error(&[16, 16, 65, 16, 24, 16, 16, 1]),
        "field 3 of `features` has 65 bits, but at most 64 are possible"
    );
    let swapped = classify.check(&score_signature(&WIDTHS)).expect_err("refused");
    assert!(
        swapped.contains("`void classify<T>(in T features, out bit<8> class"),
        "{swapped}"
    );
}

/// One file, under any name.
struct One(Vec<u8>);

impl Files for One {
    fn read(&self, _: &str, _: usize) -> Result<Vec<u8>, ProgramFileError> {
        Ok(self.0.clone())
    }
}

#[test]
fn missing_and_damaged_models_are_errors_that_name_the_file() {
    let path = |name: &str| ConstValue::String(name.into());
    let folder = Folder::new(Path::new(FOLDER));
    let refused = |file, files: &dyn Files| make(file, files).err().expect("refused");
    assert_eq!(
        refused(path("none.onnx"), &folder),
        format!("cannot read {FOLDER}/none.onnx: No such file or directory (os error 2)")
    );
    assert!(refused(path("../x.onnx"), &folder).starts_with("`../x.onnx` is no file of the program"));
    assert_eq!(
        refused(ConstValue::Bool(true), &folder),
        "the constructor of `onnx_model` takes the path of a model: `onnx_model(string file)`"
    );
    let text = refused(path("train.py"), &folder);
    assert!(
        text.starts_with("the model `train.py` cannot be used: it is no ONNX file, or damaged: "),
        "{text}"
    );
    let empty = refused(path("m"), &One(Vec::new()));
    assert_eq!(
        empty,
        "the model `m` cannot be used: it has no graph, so it is no ONNX model"
    );
}

#[test]
fn a_model_cut_short_is_refused_and_one_with_a_wrong_byte_never_panics() {
    let whole = std::fs::read(Path::new(FOLDER).join(MODEL)).expect("the model");
    assert!(whole.len() < 50_000);
    for length in (1..whole.len()).step_by(13) {
        let cut = make(ConstValue::String("m".into()), &One(whole[..length].to_vec()));
        assert!(cut.err().is_some_and(|error| error.contains("`m`")), "{length} bytes");
    }
    let signature = classify_signature(&WIDTHS);
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let Ok(model) = make(ConstValue::String("m".into()), &One(damaged)) else {
            continue;
        };
        let classify = model.method("classify").expect("a method");
        if classify.check(&signature).is_ok() {
            call(&*classify, &signature, &[1; 8], 0);
        }
    }
}
