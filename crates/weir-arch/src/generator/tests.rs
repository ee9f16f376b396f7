use super::*;

fn first_chip() -> Generators {
    let mut generators = Generators::new(GeneratorModel {
        pipes: 4,
        applications: 8,
        ports: 68..=71,
        pattern_bytes: 4,
        brings_context: false,
        gaps_from_end: false,
    });
    let port = GeneratorPort {
        generates: true,
        matches: true,
    };
    generators.set_port(68, port).unwrap();
    generators.write_buffer(0, 16, &[0xaa, 0xbb]).unwrap();
    generators
}

fn of(trigger: Trigger) -> Application {
    Application {
        enabled: true,
        trigger,
        length: 3,
        offset: 16,
        source_port: 68,
        ..Application::default()
    }
}

fn all(generators: &mut Generators, until: u64) -> Vec<(u64, u32, Vec<u8>)> {
    std::iter::from_fn(|| generators.due(until).map(|g| (g.time_ns, g.port, g.bytes))).collect()
}

#[test]
fn batches_and_packets_come_in_their_time() {
    let mut generators = first_chip();
    let application = Application {
        more_batches: 1,
        more_packets: 1,
        packet_gap_ns: 100,
        batch_gap_ns: 1000,
        ..of(Trigger::OneShot { after_ns: 50 })
    };
    generators.configure(0, 3, application, 7).unwrap();
    assert_eq!(generators.next_ns(), Some(57));
    assert_eq!(all(&mut generators, 56), []);
    let packet = |time, batch, number| (time, 68, vec![3, 0, 0, batch, 0, number, 0xaa, 0xbb, 0]);
    let expected = [
        packet(57, 0, 0),
        packet(157, 0, 1),
        packet(1057, 1, 0),
        packet(1157, 1, 1),
    ];
    assert_eq!(all(&mut generators, u64::MAX), expected);
    let counts = generators.application(0, 3).unwrap().1;
    assert_eq!((counts.triggers, counts.batches, counts.packets), (1, 2, 4));
    assert_eq!(generators.next_ns(), None);
}

#[test]
fn periods_go_on_until_the_application_is_switched_off() {
    let mut generators = first_chip();
    let application = of(Trigger::Periodic { every_ns: 1000 });
    generators.configure(0, 0, application.clone(), 0).unwrap();
    let times = |sent: Vec<(u64, u32, Vec<u8>)>| sent.into_iter().map(|s| s.0).collect::<Vec<_>>();
    assert_eq!(times(all(&mut generators, 3500)), [1000, 2000, 3000]);
    let off = Application {
        enabled: false,
        ..application
    };
    generators.configure(0, 0, off, 3500).unwrap();
    assert_eq!(all(&mut generators, u64::MAX), []);
}

#[test]
fn without_gaps_packets_follow_each_other_as_fast_as_the_port_is() {
    let mut generators = first_chip();
    let application = Application {
        more_packets: 2,
        length: 105,
        ..of(Trigger::OneShot { after_ns: 0 })
    };
    generators.configure(0, 0, application, 0).unwrap();
    // 6 + 105 + 20 bytes at 100 Gb/s.
    let times: Vec<u64> = all(&mut generators, 100).into_iter().map(|s| s.0).collect();
    assert_eq!(times, [0, 11, 22]);
}

#[test]
fn recirculated_packets_trigger_what_matches_them() {
    let mut generators = first_chip();
    let pattern = Pattern {
        value: 0xff12_0000,
        mask: 0xffff_0000,
    };
    generators
        .configure(0, 1, of(Trigger::Recirculated(pattern)), 0)
        .unwrap();
    generators.recirculated(69, &[0xff, 0x12, 3, 4, 5], 10);
    generators.recirculated(68, &[0xff, 0x13, 3, 4, 5], 10);
    generators.recirculated(68, &[0xff, 0x12], 10);
    assert_eq!(generators.next_ns(), None);
    generators.recirculated(68, &[0xff, 0x12, 3, 4, 5], 10);
    generators.recirculated(68, &[0xff, 0x12, 3, 5, 5], 10);
    let sent = all(&mut generators, 100);
    assert_eq!(sent[0].2[..6], [1, 0x12, 3, 4, 0, 0]);
    assert_eq!(sent[1].2[..6], [1, 0x12, 3, 5, 0, 0]);
}

#[test]
fn ports_that_go_down_are_named_and_only_a_leader_tells() {
    let mut generators = first_chip();
    generators
        .configure(0, 7, of(Trigger::PortDown { mask: None }), 0)
        .unwrap();
    generators.port_down(130, 5);
    assert_eq!(generators.next_ns(), None);
    generators.port_down(9, 5);
    assert_eq!(all(&mut generators, 5)[0].2[..6], [7, 0, 0, 9, 0, 0]);
    generators.set_leader(false);
    generators.port_down(9, 6);
    assert_eq!(generators.next_ns(), None);
}

#[test]
fn nothing_is_sent_without_a_port_that_generates() {
    let mut generators = first_chip();
    generators
        .configure(1, 0, of(Trigger::OneShot { after_ns: 1 }), 0)
        .unwrap();
    assert_eq!(all(&mut generators, 10), []);
    assert_eq!(generators.application(1, 0).unwrap().1, Counts::default());
}

#[test]
fn what_is_beyond_the_generator_is_refused() {
    let mut generators = first_chip();
    let timer = || of(Trigger::OneShot { after_ns: 1 });
    assert!(generators.configure(4, 0, timer(), 0).is_err());
    assert!(generators.configure(0, 8, timer(), 0).is_err());
    let long = Application {
        offset: 16383,
        length: 2,
        ..timer()
    };
    assert!(generators.configure(0, 0, long, 0).is_err());
    assert_eq!(
        generators.configure(0, 0, of(Trigger::Deparser(Pattern::default())), 0),
        Err(GeneratorError::Trigger)
    );
    assert!(generators.set_port(64, GeneratorPort::default()).is_err());
    assert!(generators.write_buffer(0, 16384, &[1]).is_err());
}

#[test]
fn a_short_period_takes_no_time_while_nothing_comes_of_it() {
    let hour = 3_600_000_000_000;
    let mut generators = first_chip();
    // No port of the second pipe generates.
    generators
        .configure(1, 0, of(Trigger::Periodic { every_ns: 1 }), 0)
        .unwrap();
    assert_eq!(all(&mut generators, hour), []);
    assert_eq!(generators.next_ns(), Some(hour + 1));
    // While it waits for its second packet triggers are lost.
    let busy = Application {
        more_packets: 1,
        packet_gap_ns: 2_000_000_000,
        ..of(Trigger::Periodic { every_ns: 1 })
    };
    generators.configure(1, 0, Application::default(), 0).unwrap();
    generators.configure(0, 0, busy, 0).unwrap();
    let times: Vec<u64> = all(&mut generators, 3_000_000_000).into_iter().map(|s| s.0).collect();
    assert_eq!(times, [1, 2_000_000_001, 2_000_000_004]);
    assert_eq!(generators.application(0, 0).unwrap().1.triggers, 2);
}
