//! Parameters of custom CRCs: written as a part of a transaction, refused where they do not fit,
//! and kept in the state file.

use std::sync::Arc;
use weir_compiler::{Options as CompilerOptions, compile_source};
use weir_ir::Program;
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved};
use weir_switch::{BatchMode, CrcParameters, ErrorKind, Switch, Write};

const SOURCE: &str = include_str!("../../weir-server/tests/p4/custom_crc.p4");

fn program(defines: &str) -> Arc<Program> {
    let source = format!("{defines}\n{SOURCE}");
    let compiled = compile_source("test.p4", &source, &CompilerOptions::default(), weir_arch::targets());
    Arc::new(compiled.program.expect("compiles"))
}

fn fresh(program: &Arc<Program>) -> Switch {
    Switch::new(Arc::clone(program)).expect("loads")
}

/// CRC-32C.
const CASTAGNOLI: CrcParameters = CrcParameters {
    polynomial: 0x1edc_6f41,
    ..CrcParameters::CRC32
};

/// CRC-16/CCITT-FALSE.
const CCITT: CrcParameters = CrcParameters {
    polynomial: 0x1021,
    initial: 0xffff,
    reflect_in: false,
    reflect_out: false,
    ..CrcParameters::CRC16
};

/// What the switch answers to the text by which catalogues check CRCs.
fn answer(switch: &mut Switch) -> Vec<u8> {
    switch.inject(1, b"123456789", 0).remove(0).bytes
}

#[test]
fn parameters_change_what_packets_get_and_are_taken_back_with_their_transaction() {
    let mut switch = fresh(&program("#define CRC32"));
    assert_eq!(answer(&mut switch), [0xcb, 0xf4, 0x39, 0x26]);
    let mut transaction = switch.transaction();
    transaction.write(Write::CustomCrc(32, Some(CASTAGNOLI))).expect("fits");
    assert_eq!(transaction.switch().state().custom_crc(32), CASTAGNOLI);
    drop(transaction);
    assert_eq!(switch.state().given_custom_crc(32), None);
    assert_eq!(answer(&mut switch), [0xcb, 0xf4, 0x39, 0x26]);

    switch.write(Write::CustomCrc(32, Some(CASTAGNOLI))).expect("fits");
    assert_eq!(answer(&mut switch), [0xe3, 0x06, 0x92, 0x83]);
    let writes = vec![Write::CustomCrc(32, None), Write::CustomCrc(16, Some(CCITT))];
    let error = switch
        .write_all(writes, BatchMode::Rollback)
        .expect_err("no CRC of 16 bits");
    assert_eq!(error.failures[0].0, 1);
    assert_eq!(switch.state().given_custom_crc(32), Some(CASTAGNOLI));
    switch.write(Write::CustomCrc(32, None)).expect("is there");
    assert_eq!(answer(&mut switch), [0xcb, 0xf4, 0x39, 0x26]);
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let mut switch = fresh(&program("#define CRC16"));
    for (width, parameters, kind, expected) in [
        (
            32,
            CASTAGNOLI,
            ErrorKind::FailedPrecondition,
            "no custom CRC of 32 bits whose result is read; it uses crc16_custom",
        ),
        (
            16,
            CASTAGNOLI,
            ErrorKind::InvalidArgument,
            "a CRC of 16 bits, not of 32",
        ),
        (
            16,
            CrcParameters {
                xor_out: 0x1_0000,
                ..CCITT
            },
            ErrorKind::InvalidArgument,
            "the final exclusive or of crc16_custom has 16 bits; 0x10000 has more",
        ),
    ] {
        let error = switch.write(Write::CustomCrc(width, Some(parameters)));
        let error = error.expect_err("does not fit");
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(answer(&mut switch), [0xbb, 0x3d]);
}

#[test]
fn parameters_are_in_the_journal_and_in_the_whole_state() {
    let program = program("#define CRC16\n#define CRC32");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let restored = |path: &std::path::Path| {
        let saved = Saved::of(path, std::fs::read(path).unwrap()).expect("is whole");
        let mut switch = fresh(&program);
        saved.restore(0, &mut switch).expect("fits");
        switch
    };
    let begin = Begin::of(&program);
    let mut switch = fresh(&program);
    let keeper = Keeper::start(Claim::new(&path).unwrap(), Options::default(), Contents::new(&begin)).unwrap();
    switch.set_journal(Some(keeper.journal()));
    switch.write(Write::CustomCrc(16, Some(CCITT))).expect("fits");
    switch.write(Write::CustomCrc(32, Some(CASTAGNOLI))).expect("fits");
    keeper.kept_blocking().unwrap();
    let expected = [0x29, 0xb1, 0xe3, 0x06, 0x92, 0x83];
    assert_eq!(answer(&mut restored(&path)), expected);

    // The state put together anew has what was set, and nothing of what was not.
    switch.write(Write::CustomCrc(16, None)).expect("is there");
    let again = folder.path().join("again");
    let contents = Contents::new(&begin).switch(&switch);
    let keeper = Keeper::start(Claim::new(&again).unwrap(), Options::default(), contents).unwrap();
    keeper.kept_blocking().unwrap();
    let mut switch = restored(&again);
    assert_eq!(answer(&mut switch), [&[0xbb, 0x3d][..], &expected[2..]].concat());
    assert_eq!(switch.state().given_custom_crc(16), None);
}
