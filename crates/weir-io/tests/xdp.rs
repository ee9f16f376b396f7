//! AF_XDP against the kernel, in network namespaces. Needs root and iproute2; without root the
//! tests say so and pass, except in CI.
#![cfg(target_os = "linux")]

mod common;

use common::{Namespace, checksum_is_right, collect, in_namespace, ip};
use std::time::{Duration, Instant};
use weir_io::{
    Batch, Device, DeviceSpec, Frame, FrameLayout, IoError, Pool, RawSocket, XdpMode, XdpOptions, XdpSocket, ZeroCopy,
    wait,
};

/// Two ends of a link in the namespace of the test.
fn pair(options: &str) {
    ip(&format!("link add wa {options}type veth peer name wb {options}")
        .trim_end()
        .replace("  ", " "));
    ip("link set wa up");
    ip("link set wb up");
}

fn mode(mode: XdpMode) -> XdpOptions {
    XdpOptions {
        mode,
        ..XdpOptions::default()
    }
}

fn frame(i: usize, length: usize) -> Vec<u8> {
    let mut data = vec![i as u8; length];
    data[..12].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0x77, 0, 0, (i >> 8) as u8, i as u8]);
    data[12..14].copy_from_slice(&[0x88, 0xb5]);
    data
}

fn is_ours(data: &[u8]) -> bool {
    data[6..8] == [2, 0x77]
}

fn send_all(device: &mut dyn Device, frames: &[Vec<u8>]) {
    let frames: Vec<_> = frames.iter().map(|data| Frame { data, time_ns: 0 }).collect();
    let (mut done, end) = (0, Instant::now() + Duration::from_secs(10));
    while done < frames.len() {
        done += device.transmit(&frames[done..]).unwrap();
        assert!(Instant::now() < end, "sent {done}");
    }
}

/// Opens a socket once the program of the one before is gone. A process that another test starts
/// has copies of all descriptors until it executes its program, and with them holds the interface.
fn open_next(name: &str, options: &XdpOptions) -> XdpSocket {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match XdpSocket::open(name, options) {
            Ok(socket) => return socket,
            Err(error) if error.to_string().contains("File exists") && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn frames_cross_in_both_modes_unchanged_in_order_and_counted() {
    in_namespace(|| {
        pair("");
        for (a, b) in [(XdpMode::Generic, XdpMode::Auto), (XdpMode::Native, XdpMode::Native)] {
            let mut a = open_next("wa", &mode(a));
            let mut b = open_next("wb", &mode(b));
            let sent: Vec<_> = (0..500).map(|i| frame(i, 60 + i * 29 % 1455)).collect();
            for part in sent.chunks(100) {
                send_all(&mut a, part);
                assert_eq!(collect(&mut b, part.len(), is_ours), part);
            }
            let (a, b) = (a.counters(), b.counters());
            assert_eq!((a.sent, a.send_dropped, b.receive_dropped), (500, 0, 0));
            let bytes: usize = sent.iter().map(Vec::len).sum();
            assert!(a.sent_bytes == bytes as u64 && b.received >= 500);
        }
    });
}

#[test]
fn the_program_goes_with_the_socket_and_holds_the_interface() {
    in_namespace(|| {
        pair("");
        let first = XdpSocket::open("wa", &XdpOptions::default()).unwrap();
        assert_eq!(first.description(), "xdp:wa (generic, 1 queue)");
        let error = XdpSocket::open("wa", &XdpOptions::default()).unwrap_err();
        assert!(matches!(error, IoError::NoXdp { .. }), "{error}");
        drop(first);
        drop(XdpSocket::open("wa", &XdpOptions::default()).unwrap());
        let error = XdpSocket::open("wa", &mode(XdpMode::ZeroCopy)).unwrap_err().to_string();
        assert_eq!(
            error,
            "AF_XDP does not work on `wa`: zero-copy is not supported by its driver; packet:wa is slower and works on every interface"
        );
        ip("link set wa mtu 9000");
        let error = XdpSocket::open("wa", &XdpOptions::default()).unwrap_err().to_string();
        assert!(error.contains("ip link set wa mtu 3754"), "{error}");
        ip("link set wa mtu 3754");
        ip("link set wb mtu 3754");
        let mut a = XdpSocket::open("wa", &XdpOptions::default()).unwrap();
        let mut b = RawSocket::open("wb").unwrap();
        let long = vec![frame(1, 3768)];
        send_all(&mut b, &long);
        assert_eq!(collect(&mut a, 1, is_ours), long);
        assert!(matches!(
            XdpSocket::open("wz", &XdpOptions::default()),
            Err(IoError::NoInterface { .. })
        ));
    });
}

#[test]
fn frames_go_on_in_place_with_a_header_more_through_a_shared_pool() {
    in_namespace(|| {
        let (left, right) = (Namespace::new("xleft"), Namespace::new("xright"));
        for (name, far) in [("wl", &left), ("wr", &right)] {
            ip(&format!("link add {name} type veth peer name eth0 netns {}", far.0));
            ip(&format!("link set {name} up"));
            far.ip("link set eth0 up");
        }
        let mut sender = left.spawn(|| RawSocket::open("eth0").unwrap()).join().unwrap();
        let mut receiver = right.spawn(|| RawSocket::open("eth0").unwrap()).join().unwrap();
        for shared in [true, false] {
            let pool = Pool::new(4096, 1522, FrameLayout::Packed).unwrap();
            let options = |pool: &Pool| XdpOptions {
                ring: Some(512),
                pool: shared.then(|| pool.clone()),
                ..XdpOptions::default()
            };
            let mut a = XdpSocket::open("wl", &options(&pool)).unwrap();
            let mut b = XdpSocket::open("wr", &options(&pool)).unwrap();
            assert_eq!(a.pool().is(&b.pool()), shared);
            let (mut from_a, mut to_b) = (a.pool().batch(64), b.pool().batch(64));
            let total = 5000;
            for round in 0..total / 50 {
                let sent: Vec<_> = (0..50).map(|i| frame(round * 50 + i, 60 + i)).collect();
                send_all(&mut sender, &sent);
                let end = Instant::now() + Duration::from_secs(10);
                let mut passed = 0;
                while passed < 50 {
                    assert!(
                        Instant::now() < end,
                        "round {round}: passed {passed}, {:?}",
                        a.counters()
                    );
                    a.receive_frames(&mut from_a).unwrap();
                    for i in 0..from_a.len() {
                        let mut frame = from_a.get_mut(i).unwrap();
                        if !is_ours(frame.data()) {
                            continue;
                        }
                        assert!(frame.headroom() >= 128 && frame.tailroom() >= 64);
                        let (start, length) = (frame.headroom(), frame.length());
                        frame.whole().copy_within(start..start + 12, start - 4);
                        frame.whole()[start + 8..start + 12].copy_from_slice(&[0x81, 0, 0, 5]);
                        assert!(frame.set_packet(start - 4, length + 4));
                        assert!(from_a.move_to(i, &mut to_b));
                        passed += 1;
                    }
                    from_a.clear();
                    while !to_b.is_empty() {
                        b.transmit_frames(&mut to_b).unwrap();
                    }
                }
                let expected = sent
                    .iter()
                    .map(|f| [&f[..12], &[0x81, 0, 0, 5], &f[12..]].concat())
                    .collect::<Vec<_>>();
                assert_eq!(collect(&mut receiver, 50, is_ours), expected);
            }
            assert_eq!(b.counters().sent, total as u64);
            assert_eq!(b.counters().send_dropped + a.counters().receive_dropped, 0);
        }
    });
}

#[test]
fn every_queue_has_a_socket_and_they_can_be_parted() {
    in_namespace(|| {
        pair("numrxqueues 4 numtxqueues 4 ");
        let mut b = XdpSocket::open("wb", &XdpOptions::default()).unwrap();
        assert_eq!(b.queues(), 4);
        let a = XdpSocket::open("wa", &XdpOptions::default()).unwrap();
        let mut parts = a.into_queues().unwrap();
        assert_eq!(parts.len(), 4);
        // What a queue sends, the queue of the same number at the other end receives.
        let sent: Vec<_> = (0..400).map(|i| frame(i, 100)).collect();
        for (part, frames) in parts.iter_mut().zip(sent.chunks(100)) {
            send_all(part, frames);
            assert_eq!(collect(&mut b, 100, is_ours), frames);
        }
        assert_eq!(parts.iter().map(|p| p.counters().sent).sum::<u64>(), 400);
        // A part alone still receives after the others have gone.
        parts.truncate(1);
        send_all(&mut b, &sent[..10]);
        assert_eq!(collect(&mut parts[0], 10, is_ours), &sent[..10]);
    });
}

#[test]
fn what_is_lost_is_counted() {
    in_namespace(|| {
        pair("");
        let options = XdpOptions {
            ring: Some(64),
            ..XdpOptions::default()
        };
        let mut a = RawSocket::open("wa").unwrap();
        let mut b = XdpSocket::open("wb", &options).unwrap();
        let sent: Vec<_> = (0..1000).map(|i| frame(i, 60)).collect();
        send_all(&mut a, &sent);
        let (mut batch, mut ours) = (Batch::new(2000), 0);
        b.receive(&mut batch).unwrap();
        ours += batch.iter().filter(|f| is_ours(f.data)).count();
        assert!((32..=128).contains(&ours), "{ours}");
        assert!(b.counters().receive_dropped >= 1000 - ours as u64, "{:?}", b.counters());
        assert!(b.counters().receive_dropped <= 1010);
        // And it goes on.
        send_all(&mut a, &sent[..20]);
        assert_eq!(collect(&mut b, 20, is_ours), &sent[..20]);
        let (long, short, good) = (vec![0; 1600], vec![0; 13], frame(1, 60));
        let frame = |data| Frame { data, time_ns: 0 };
        let before = b.counters();
        assert_eq!(b.transmit(&[frame(&long), frame(&short), frame(&good)]).unwrap(), 3);
        let after = b.counters();
        assert_eq!((after.send_dropped - before.send_dropped, after.sent), (2, 1));
        ip("link set wa down");
        // The kernel may take a second to say so.
        let end = Instant::now() + Duration::from_secs(10);
        while b.link_up() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!b.link_up());
        for _ in 0..3 {
            assert_eq!(b.transmit(&[frame(&good)]).unwrap(), 1);
        }
        assert_eq!(
            (b.counters().send_dropped, b.counters().sent),
            (after.send_dropped + 3, 1)
        );
    });
}

#[test]
fn an_interface_that_goes_is_noticed_and_an_idle_one_sleeps() {
    in_namespace(|| {
        pair("");
        let mut b = XdpSocket::open("wb", &XdpOptions::default()).unwrap();
        let (mut slept, mut batch) = (false, Batch::new(100));
        // The kernel at the other end has something to say in its first seconds.
        for _ in 0..40 {
            let started = Instant::now();
            slept = !wait(&[&b], Duration::from_millis(200)).unwrap();
            assert!(!slept || started.elapsed() >= Duration::from_millis(199));
            if slept {
                break;
            }
            batch.clear();
            assert!(b.receive(&mut batch).unwrap() > 0, "woken for nothing");
        }
        assert!(slept);
        ip("link del wa");
        let data = frame(1, 60);
        let frame = Frame {
            data: &data,
            time_ns: 0,
        };
        let gone = (0..2).find_map(|_| b.transmit(&[frame]).err());
        assert!(matches!(gone, Some(IoError::Gone { .. })), "{gone:?}");
        let gone = (0..1000).find_map(|_| b.receive(&mut Batch::new(1)).err());
        assert!(matches!(gone, Some(IoError::Gone { .. })), "{gone:?}");
    });
}

#[test]
fn a_plain_name_takes_what_does_no_harm_and_says_why() {
    in_namespace(|| {
        pair("");
        let open = |text: &str| weir_io::open(&text.parse::<DeviceSpec>().unwrap()).unwrap();
        assert_eq!(
            open("wa").description(),
            "wa (AF_PACKET; local senders leave checksums and segments to a virtual interface and AF_XDP is not told; xdp:wa forces it)"
        );
        assert_eq!(open("packet:wa").description(), "packet:wa");
        let mut forced = open("xdp:wa");
        assert_eq!(forced.description(), "xdp:wa (generic, 1 queue)");
        assert!(forced.zero_copy().is_some() && open("wb").zero_copy().is_none());
        assert!(open("lo").description().starts_with("lo (AF_PACKET;"));
    });
}

#[test]
fn a_missing_right_is_named() {
    in_namespace(|| {
        pair("");
        // SAFETY: takes no pointer. As a system call, which unlike the library's wrapper changes
        // this thread only.
        let became = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        assert_eq!(became, 0);
        let error = XdpSocket::open("wa", &XdpOptions::default()).unwrap_err().to_string();
        assert!(
            error.starts_with("opening AF_XDP on `wa` needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK"),
            "{error}"
        );
    });
}

/// What the documentation of `XdpSocket` says: with offloads at the sender, checksums arrive
/// unfinished, and `ethtool` there helps.
#[test]
fn checksums_are_as_the_sender_left_them() {
    in_namespace(|| {
        let far = Namespace::new("xudp");
        ip(&format!("link add wa type veth peer name wb netns {}", far.0));
        ip("link set wa up");
        far.ip("addr add 10.9.0.1/24 dev wb");
        far.ip("link set wb up");
        far.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wb");
        let mut near = XdpSocket::open("wa", &XdpOptions::default()).unwrap();
        for offload in [true, false] {
            if !offload {
                let arguments = ["netns", "exec", &far.0, "ethtool", "-K", "wb", "tx", "off"];
                let status = std::process::Command::new("ip").args(arguments).output();
                assert!(status.unwrap().status.success(), "ethtool is installed");
            }
            let sender = far.spawn(|| {
                let socket = std::net::UdpSocket::bind("10.9.0.1:5000").unwrap();
                for i in 0..10u8 {
                    socket.send_to(&[i; 100], "10.9.0.2:6000").unwrap();
                }
            });
            let frames = collect(&mut near, 10, |f| f[12..14] == [8, 0]);
            sender.join().unwrap();
            assert_eq!(frames.len(), 10);
            let right = frames.iter().filter(|f| checksum_is_right(f)).count();
            assert_eq!(right, if offload { 0 } else { 10 });
        }
    });
}

#[test]
fn the_first_mode_that_works_is_taken() {
    in_namespace(|| {
        ip("link set lo mtu 1500");
        let lo = XdpSocket::open("lo", &XdpOptions::default()).unwrap();
        assert_eq!(lo.mode(), XdpMode::Generic);
        let mut tap = weir_io::Tap::open("wt").unwrap();
        let mut far = XdpSocket::open("wt", &XdpOptions::default()).unwrap();
        assert_eq!(
            (far.mode(), far.pool().layout()),
            (XdpMode::Native, FrameLayout::Packed)
        );
        let sent: Vec<_> = (0..300).map(|i| frame(i, 60 + i)).collect();
        for part in sent.chunks(50) {
            send_all(&mut tap, part);
            assert_eq!(collect(&mut far, 50, is_ours), part);
            send_all(&mut far, part);
            assert_eq!(collect(&mut tap, 50, is_ours), part);
        }
    });
}

#[test]
fn busy_polling_and_aligned_frames_carry_frames_too() {
    in_namespace(|| {
        pair("");
        let pool = Pool::new(2048, 1522, FrameLayout::Aligned).unwrap();
        let options = XdpOptions {
            mode: XdpMode::Native,
            ring: Some(256),
            pool: Some(pool.clone()),
            busy_poll: Some(weir_io::XdpBusyPoll {
                microseconds: 20,
                budget: 64,
            }),
        };
        let mut a = XdpSocket::open("wa", &options).unwrap();
        let mut b = XdpSocket::open("wb", &options).unwrap();
        let mut back = pool.batch(64);
        for round in 0..100 {
            let sent: Vec<_> = (0..40).map(|i| frame(round * 40 + i, 60 + i * 30)).collect();
            send_all(&mut a, &sent);
            let end = Instant::now() + Duration::from_secs(10);
            let mut got = Vec::new();
            while got.len() < 40 && Instant::now() < end {
                b.receive_frames(&mut back).unwrap();
                got.extend((0..back.len()).filter_map(|i| back.get(i).filter(|f| is_ours(f)).map(<[u8]>::to_vec)));
                back.clear();
            }
            assert_eq!(got, sent);
        }
    });
}
