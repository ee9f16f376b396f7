//! weir with an extern that looks for words in packets.

use std::process::ExitCode;
use std::sync::Arc;
use weir::extern_api::{Call, Extern, Outcome, Signature};

/// `extern void scan(payload_read data, string word, out bit<1> found);`
struct Scan;

impl Extern for Scan {
    fn check(&self, signature: &Signature) -> Result<(), String> {
        let has_word = signature.text(1).is_some_and(|word| !word.is_empty());
        let has_result = signature.scalar(2, 0).is_some();
        match signature.payload().is_some() && has_word && has_result {
            true => Ok(()),
            false => Err("expected is (payload_read data, string word, out bit<1> found), and a word".into()),
        }
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let word = call.signature().text(1).unwrap_or_default().as_bytes();
        let found = call.payload().windows(word.len()).any(|bytes| bytes == word);
        call.set(2, found.into());
        Outcome::Continue
    }
}

fn main() -> ExitCode {
    let mut externs = weir::externs();
    externs.function("scan", Arc::new(Scan));
    weir::main(&externs)
}
