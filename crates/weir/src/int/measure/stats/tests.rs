//! Expected values are numpy's; quantiles of Student's t are integrals of its density, by numpy.

use super::*;

/// Pseudorandom delays with a trend, of a linear congruential generator.
fn delays() -> Vec<i64> {
    let mut state: i64 = 12_345;
    let delay = |at: i64| {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        2000 + state / 65_536 % 500 + at / 100 * 10
    };
    (0..1000).map(delay).collect()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs().max(1e-3)
}

#[track_caller]
fn near(found: Option<Interval>, expected: (f64, f64)) {
    let found = found.expect("there is an interval");
    assert!(
        is_near(found.low, expected.0) && is_near(found.high, expected.1),
        "{found:?} {expected:?}"
    );
}

#[test]
fn a_summary_is_that_of_numpy() {
    let summary = Summary::of(&delays()).unwrap();
    assert_eq!((summary.count, summary.min, summary.max), (1000, 2004.0, 2586.0));
    assert!(is_near(summary.mean.value, 2292.264));
    assert!(is_near(summary.deviation, 146.436_757_776));
    assert_eq!((summary.median.value, summary.p99), (2289.0, 2568.0));
    assert!(is_near(summary.p99_9, 2582.004));
    near(summary.mean.interval, (2_279.233_234, 2_305.294_766));
    near(summary.median.interval, (2274.0, 2309.0));
}

#[test]
fn few_samples_are_taken_as_independent() {
    let summary = Summary::of(&delays()[..20]).unwrap();
    assert!(is_near(summary.deviation, 155.819_362_352));
    near(summary.mean.interval, (2_200.974_294, 2_346.825_706));
    let one = Summary::of(&[7]).unwrap();
    assert_eq!((one.mean.value, one.deviation, one.median.value), (7.0, 0.0, 7.0));
    assert_eq!((one.mean.interval, one.median.interval), (None, None));
    assert!(Summary::of(&[]).is_none());
}

#[test]
fn large_values_lose_no_digits() {
    let base = 1 << 50;
    let summary = Summary::of(&[base, base + 1, base + 2, base + 3]).unwrap();
    assert_eq!(summary.mean.value - base as f64, 1.5);
    assert!(is_near(summary.deviation, 1.290_994_449));
}

#[test]
fn quantiles_of_student_are_exact_to_five_digits() {
    let expected = [
        (1, 12.706_205),
        (5, 2.570_582),
        (11, 2.200_985),
        (20, 2.085_963),
        (31, 2.039_513),
        (98, 1.984_467),
        (1000, 1.962_339),
    ];
    for (degrees, quantile) in expected {
        let found = student(degrees).unwrap();
        assert!((found - quantile).abs() < 2e-5, "{degrees}: {found}");
    }
    assert_eq!(student(0), None);
}

#[test]
fn a_line_is_that_of_numpy() {
    let points = [
        (106.0, 20_900.0),
        (256.0, 22_010.0),
        (512.0, 24_130.0),
        (1024.0, 28_190.0),
        (1514.0, 32_150.0),
    ];
    let fit = Fit::of(&points).unwrap();
    assert!(is_near(fit.slope.value, 8.008_402_331_6) && is_near(fit.intercept.value, 20_011.066_249));
    assert!(is_near(fit.r_squared, 0.999_939_480_4));
    near(
        fit.slope.interval,
        (8.008_402_331_6 - 0.114_474_151_7, 8.008_402_331_6 + 0.114_474_151_7),
    );
    near(
        fit.intercept.interval,
        (20_011.066_249 - 98.203_718, 20_011.066_249 + 98.203_718),
    );
}

#[test]
fn a_line_needs_two_sizes_and_its_interval_three() {
    assert!(Fit::of(&[(64.0, 1.0)]).is_none());
    assert!(Fit::of(&[(64.0, 1.0), (64.0, 2.0)]).is_none());
    let fit = Fit::of(&[(0.0, 1.0), (10.0, 6.0)]).unwrap();
    assert_eq!((fit.slope.value, fit.intercept.value, fit.r_squared), (0.5, 1.0, 1.0));
    assert_eq!((fit.slope.interval, fit.intercept.interval), (None, None));
    let flat = Fit::of(&[(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)]).unwrap();
    assert_eq!((flat.slope.value, flat.r_squared), (0.0, 1.0));
}

#[test]
fn errors_of_differences_add_as_squares() {
    let estimate = |value: f64, half: f64| Estimate {
        value,
        interval: Some(Interval::around(value, half)),
    };
    let difference = estimate(100.0, 3.0).minus(estimate(40.0, 4.0));
    assert_eq!(difference.value, 60.0);
    near(difference.interval, (55.0, 65.0));
    let unknown = Estimate {
        value: 1.0,
        interval: None,
    };
    assert_eq!(unknown.minus(estimate(1.0, 1.0)).interval, None);
}
