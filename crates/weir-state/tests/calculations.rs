//! Calculations: calls that hash by custom CRCs, each of which can have parameters of its own.

use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options as CompilerOptions, compile_source};
use weir_ir::Program;
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved};
use weir_switch::{CrcParameters, CrcScope, ErrorKind, LaneUse, Switch, Write, calculation_name};

const SOURCE: &str = include_str!("../../weir-server/tests/p4/calculations.p4");

/// By which catalogues check CRCs.
const TEXT: &[u8] = b"123456789";

/// CRC-32C.
const CASTAGNOLI: CrcParameters = CrcParameters {
    polynomial: 0x1edc_6f41,
    ..CrcParameters::CRC32
};

/// CRC-32/BZIP2.
const BZIP2: CrcParameters = CrcParameters {
    reflect_in: false,
    reflect_out: false,
    ..CrcParameters::CRC32
};

/// CRC-32K.
const KOOPMAN: CrcParameters = CrcParameters {
    polynomial: 0x741b_8cd7,
    initial: 0,
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

fn program() -> Arc<Program> {
    let compiled = compile_source("test.p4", SOURCE, &CompilerOptions::default(), weir_arch::targets());
    Arc::new(compiled.program.expect("compiles"))
}

fn fresh(program: &Arc<Program>) -> Switch {
    Switch::new(Arc::clone(program)).expect("loads")
}

/// A CRC as a division of polynomials: the bits of the message, behind them as many zeros as the
/// CRC has, are divided one after the other. The initial value is added to the first bits.
fn divided(parameters: &CrcParameters, data: &[u8]) -> u64 {
    let width = parameters.width as usize;
    let mut bits: Vec<bool> = Vec::new();
    for byte in data {
        let bit = |place: u32| byte >> place & 1 == 1;
        match parameters.reflect_in {
            true => bits.extend((0..8).map(bit)),
            false => bits.extend((0..8).rev().map(bit)),
        }
    }
    bits.extend(vec![false; width]);
    let of = |value: u64| (0..width).rev().map(move |place| value >> place & 1 == 1);
    for (bit, added) in bits.iter_mut().zip(of(parameters.initial)) {
        *bit ^= added;
    }
    for at in 0..bits.len() - width {
        if bits[at] {
            for (bit, divisor) in bits[at + 1..].iter_mut().zip(of(parameters.polynomial)) {
                *bit ^= divisor;
            }
        }
    }
    let mut rest = bits.split_off(bits.len() - width);
    if parameters.reflect_out {
        rest.reverse();
    }
    let value = rest.iter().fold(0, |value, bit| value << 1 | u64::from(*bit));
    value ^ parameters.xor_out
}

/// What the switch answers to the text, interpreted and in machine code.
fn answers(switch: &Switch) -> Vec<Vec<u8>> {
    let mut interpreted = switch.clone();
    let mut engines = vec![interpreted.inject(1, TEXT, 0).remove(0).bytes];
    for lanes in [LaneUse::Never, LaneUse::Always] {
        let mut compiled = switch.clone();
        compiled.compile().expect("is compiled");
        compiled.set_lanes(lanes);
        engines.push(compiled.inject(1, TEXT, 0).remove(0).bytes);
    }
    engines
}

/// That the calculations `calc`, `calc_1`, `calc_2`, `calc_3` and `calc_4` hash by these.
fn hashes_by(switch: &Switch, wide: [&CrcParameters; 3], narrow: [&CrcParameters; 2]) {
    let [first, second, third] = wide.map(|p| (divided(p, TEXT) as u32).to_be_bytes());
    let [hash, checksum] = narrow.map(|p| (divided(p, TEXT) as u16).to_be_bytes());
    let plain = 0xcbf4_3926_u32.to_be_bytes();
    let expected = [&first[..], &plain, &second, &third, &hash, &checksum].concat();
    for answer in answers(switch) {
        assert_eq!(answer, expected);
    }
}

const CRC16: CrcParameters = CrcParameters::CRC16;
const CRC32: CrcParameters = CrcParameters::CRC32;

#[test]
fn the_loop_of_this_test_gives_the_check_values_of_catalogues() {
    assert_eq!(divided(&CASTAGNOLI, TEXT), 0xe306_9283);
    assert_eq!(divided(&BZIP2, TEXT), 0xfc89_1918);
    assert_eq!(divided(&CCITT, TEXT), 0x29b1);
    assert_eq!(divided(&CRC16, TEXT), 0xbb3d);
}

#[test]
fn calls_of_the_source_are_numbered_in_its_order_and_checksums_behind_hashes() {
    let program = program();
    let found = weir_arch::calculations(&program);
    let found: Vec<(String, Option<&str>)> = found
        .iter()
        .map(|c| (calculation_name(c.number), c.algorithm))
        .collect();
    let expected = [
        ("calc", "crc32_custom"),
        ("calc_0", "crc32"),
        ("calc_1", "crc32_custom"),
        ("calc_2", "crc32_custom"),
        ("calc_3", "crc16_custom"),
        ("calc_4", "crc16_custom"),
        ("calc_5", "crc16_custom"),
    ];
    assert_eq!(
        found,
        expected.map(|(name, algorithm)| (name.to_owned(), Some(algorithm)))
    );
    // They are in a saved program, too.
    let text = weir_ir::print::print(&program);
    let again = weir_ir::parse::parse(&text).expect("is read");
    assert_eq!(weir_ir::print::print(&again), text);
    assert_eq!(weir_arch::calculations(&again), weir_arch::calculations(&program));
    let newer = text.replacen("weir 2", "weir 3", 1);
    let error = weir_ir::parse::parse(&newer).expect_err("is of a newer version");
    assert!(error.to_string().contains("version 1 or 2 of the format"), "{error}");
}

#[test]
fn calls_of_a_program_of_version_1_have_the_parameters_of_their_width() {
    let mut text = weir_ir::print::print(&program()).replacen("weir 2", "weir 1", 1);
    for number in 0..7 {
        text = text.replace(&format!(" calculation {number}"), "");
    }
    let old = Arc::new(weir_ir::parse::parse(&text).expect("is read"));
    assert_eq!(weir_arch::calculations(&old), []);
    let mut switch = fresh(&old);
    switch.write(Write::CustomCrc(32, Some(KOOPMAN))).expect("fits");
    hashes_by(&switch, [&KOOPMAN; 3], [&CRC16; 2]);
}

#[test]
fn each_calculation_has_its_own_parameters_in_both_engines() {
    let mut switch = fresh(&program());
    hashes_by(&switch, [&CRC32; 3], [&CRC16; 2]);
    for (number, parameters) in [(0, CASTAGNOLI), (2, BZIP2), (3, KOOPMAN), (5, CCITT)] {
        switch
            .write(Write::Calculation(number, Some(parameters)))
            .expect("fits");
    }
    hashes_by(&switch, [&CASTAGNOLI, &BZIP2, &KOOPMAN], [&CRC16, &CCITT]);
}

#[test]
fn a_width_is_set_for_calculations_without_parameters_of_their_own() {
    let mut switch = fresh(&program());
    switch.write(Write::Calculation(2, Some(BZIP2))).expect("fits");
    switch.write(Write::CustomCrc(32, Some(CASTAGNOLI))).expect("fits");
    hashes_by(&switch, [&CASTAGNOLI, &BZIP2, &CASTAGNOLI], [&CRC16; 2]);
    assert_eq!(switch.state().crc(CrcScope::Calculation(2)), Some(BZIP2));
    assert_eq!(switch.state().crc(CrcScope::Calculation(3)), Some(CASTAGNOLI));
    switch.write(Write::Calculation(2, None)).expect("is there");
    hashes_by(&switch, [&CASTAGNOLI; 3], [&CRC16; 2]);
    switch.write(Write::CustomCrc(32, None)).expect("is there");
    hashes_by(&switch, [&CRC32; 3], [&CRC16; 2]);
    // A transaction takes back what it has set.
    let mut transaction = switch.transaction();
    transaction.write(Write::Calculation(0, Some(KOOPMAN))).expect("fits");
    drop(transaction);
    assert_eq!(switch.state().given_calculation(0), None);
    hashes_by(&switch, [&CRC32; 3], [&CRC16; 2]);
}

#[test]
fn other_names_and_widths_are_refused_with_those_that_there_are() {
    let mut switch = fresh(&program());
    let named = |width, name| switch.state().crc_named(width, name).map_err(|e| e.to_string());
    assert_eq!(named(32, "crc32_custom"), Ok(CrcScope::Width(32)));
    assert_eq!(named(32, "calc_1"), Ok(CrcScope::Calculation(2)));
    for (width, name) in [(32, "calc_0"), (32, "calc_3"), (32, "calc_9"), (32, "crc16_custom")] {
        let expected = format!(
            "the program has no calculation `{name}` by a custom CRC of 32 bits whose result is read; it has calc, \
             calc_1, calc_2"
        );
        assert_eq!(named(width, name), Err(expected));
    }
    for (number, parameters, kind, expected) in [
        (1, CASTAGNOLI, ErrorKind::NotFound, "no calculation `calc_0`"),
        (
            99,
            CASTAGNOLI,
            ErrorKind::NotFound,
            "it has calc, calc_1, calc_2, calc_3, calc_4, calc_5",
        ),
        (
            u32::MAX,
            CASTAGNOLI,
            ErrorKind::NotFound,
            "no calculation `calc_4294967294`",
        ),
        (
            0,
            CCITT,
            ErrorKind::InvalidArgument,
            "those of a CRC of 32 bits, not of 16",
        ),
    ] {
        let error = switch.write(Write::Calculation(number, Some(parameters)));
        let error = error.expect_err("does not fit");
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn parameters_of_calculations_are_in_the_journal_and_in_the_whole_state() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let restored = |path: &Path| {
        let saved = Saved::of(path, std::fs::read(path).unwrap()).expect("is whole");
        let mut switch = fresh(&program);
        saved.restore(0, &mut switch).expect("fits");
        switch
    };
    let begin = Begin::of(&program);
    let path = folder.path().join("state");
    let mut switch = fresh(&program);
    let keeper = Keeper::start(Claim::new(&path).unwrap(), Options::default(), Contents::new(&begin)).unwrap();
    switch.set_journal(Some(keeper.journal()));
    for (number, parameters) in [(0, CASTAGNOLI), (2, BZIP2), (3, KOOPMAN)] {
        switch
            .write(Write::Calculation(number, Some(parameters)))
            .expect("fits");
    }
    switch.write(Write::Calculation(3, None)).expect("is there");
    keeper.kept_blocking().unwrap();
    hashes_by(&restored(&path), [&CASTAGNOLI, &BZIP2, &CRC32], [&CRC16; 2]);
    let again = folder.path().join("again");
    let contents = Contents::new(&begin).switch(&switch);
    let keeper = Keeper::start(Claim::new(&again).unwrap(), Options::default(), contents).unwrap();
    keeper.kept_blocking().unwrap();
    let switch = restored(&again);
    hashes_by(&switch, [&CASTAGNOLI, &BZIP2, &CRC32], [&CRC16; 2]);
    assert_eq!(switch.state().given_calculation(3), None);
}
