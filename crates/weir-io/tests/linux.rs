//! Interfaces and TAPs against the kernel, in network namespaces of their own. Needs root and
//! iproute2; without root the tests say so and pass, except in CI.
#![cfg(target_os = "linux")]

mod common;

use common::{Namespace, checksum_is_right, collect, in_namespace, ip};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use weir_io::{Batch, Device, DeviceSpec, Frame, Generator, IoError, Ports, PortsOptions, RawSocket, Tap, wait};

#[test]
fn frames_cross_a_pair_of_interfaces_unchanged_with_their_vlan_tags() {
    in_namespace(|| {
        ip("link add wa type veth peer name wb");
        ip("link set wa up");
        ip("link set wb up");
        let (mut a, mut b) = (RawSocket::open("wa").unwrap(), RawSocket::open("wb").unwrap());
        let tags: [&[u8]; 4] = [
            &[],
            &[0x81, 0x00, 0x60, 0x05],
            &[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x0f, 0xff],
            &[0x81, 0x00, 0x00, 0x00],
        ];
        let mut sent: Vec<Vec<u8>> = Vec::new();
        for i in 0..200u8 {
            let addresses = [[0x02, 0, 0, 0, 0, 9], [0x02, 0x77, 0, 0, 0, i]].concat();
            let tag = tags[usize::from(i) % tags.len()];
            sent.push([&addresses, tag, &[0x88, 0xb5], &[i; 100]].concat());
        }
        let frames: Vec<_> = sent.iter().map(|data| Frame { data, time_ns: 0 }).collect();
        assert_eq!(a.transmit(&frames).unwrap(), 200);
        let received = collect(&mut b, 200, |f| f[6..8] == [0x02, 0x77]);
        assert_eq!(received, sent);
        let mut back = Batch::new(256);
        a.receive(&mut back).unwrap();
        assert!(
            back.iter().all(|f| f.data[6..8] != [0x02, 0x77]),
            "what is sent does not come back"
        );
        assert_eq!(a.counters().sent, 200);
        assert!(a.link_up() && a.speed().is_some());
        let long = vec![0; 9000];
        let frame = |data| Frame { data, time_ns: 0 };
        assert_eq!(a.transmit(&[frame(&long), frame(&sent[0])]).unwrap(), 2);
        assert_eq!((a.counters().send_dropped, a.counters().sent), (1, 201));
        ip("link del wa");
        assert!(!b.link_up());
        assert!(b.receive(&mut Batch::new(1)).is_ok());
        let gone = (0..2).find_map(|_| b.transmit(&[frame(&sent[0])]).err());
        assert!(matches!(gone, Some(IoError::Gone { .. })), "{gone:?}");
    });
}

/// Sends 500 frames without receiving any. Returns how many are received afterwards, and how many
/// were lost.
fn kept_by(ring: Option<u32>, device: DeviceSpec, sender: &mut RawSocket) -> (usize, u64) {
    let options = PortsOptions {
        longest: 1514,
        at_least: 0,
        growth: 0,
        split: false,
        ring,
    };
    let mut ports = Ports::open(&[device], &options, |_| 64).unwrap_or_else(|e| panic!("{e}"));
    let receiver = &mut ports.devices[0][0];
    let data = [
        [2, 0, 0, 0, 0, 9, 2, 0x77, 0, 0, 0, 1].as_slice(),
        &[0x88, 0xb5],
        &[0; 50],
    ]
    .concat();
    let frames = vec![
        Frame {
            data: &data,
            time_ns: 0
        };
        500
    ];
    let mut sent = 0;
    while sent < 500 {
        sent += sender.transmit(&frames[sent..]).unwrap();
    }
    let (mut batch, mut kept) = (Batch::new(64), 0);
    while wait(&[&**receiver], Duration::from_millis(200)).unwrap() {
        batch.clear();
        receiver.receive(&mut batch).unwrap();
        kept += batch.iter().filter(|f| f.data[6..8] == [2, 0x77]).count();
    }
    (kept, receiver.counters().receive_dropped)
}

#[test]
fn an_interface_has_room_for_as_many_packets_as_it_was_told() {
    in_namespace(|| {
        ip("link add wa type veth peer name wb");
        ip("link set wa up");
        ip("link set wb up");
        let mut sender = RawSocket::open("wb").unwrap();
        for device in ["xdp:wa", "packet:wa"] {
            let device: DeviceSpec = device.parse().unwrap();
            let (kept, lost) = kept_by(Some(64), device.clone(), &mut sender);
            // AF_PACKET's memory comes in blocks: there are some more.
            assert!(
                (1..=128).contains(&kept) && lost >= 300,
                "{device}: {kept} kept, {lost} lost"
            );
            for ring in [Some(1024), None] {
                assert_eq!(kept_by(ring, device.clone(), &mut sender), (500, 0), "{device}");
            }
        }
    });
}

#[test]
fn checksums_that_the_kernel_leaves_open_are_finished() {
    in_namespace(|| {
        let far = Namespace::new("udp");
        ip(&format!("link add wa type veth peer name wb netns {}", far.0));
        ip("link set wa up");
        far.ip("addr add 10.9.0.1/24 dev wb");
        far.ip("link set wb up");
        far.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev wb");
        let mut near = RawSocket::open("wa").unwrap();
        let sender = far.spawn(|| {
            let socket = UdpSocket::bind("10.9.0.1:5000").unwrap();
            for i in 0..10u8 {
                socket.send_to(&vec![i; 100 + usize::from(i)], "10.9.0.2:6000").unwrap();
            }
        });
        let frames = collect(&mut near, 10, |f| f[12..14] == [8, 0]);
        sender.join().unwrap();
        assert_eq!(frames.len(), 10);
        assert!(frames.iter().all(|f| checksum_is_right(f)));
        assert!(near.counters().checksums_finished >= 10);
    });
}

/// Carries frames between two devices until told to stop; the length of the longest.
fn bridge(mut a: RawSocket, mut b: RawSocket, stop: &std::sync::atomic::AtomicBool) -> (usize, u64) {
    let (mut batch, mut longest) = (Batch::new(64), 0);
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        wait(&[&a, &b], Duration::from_millis(10)).unwrap();
        for forward in [true, false] {
            let (from, to) = if forward { (&mut a, &mut b) } else { (&mut b, &mut a) };
            batch.clear();
            from.receive(&mut batch).unwrap();
            let frames: Vec<_> = batch.iter().collect();
            longest = frames.iter().map(|f| f.data.len()).fold(longest, usize::max);
            let mut done = 0;
            while done < frames.len() {
                done += to.transmit(&frames[done..]).unwrap();
            }
        }
    }
    (longest, a.counters().segmented + b.counters().segmented)
}

#[test]
fn tcp_between_two_kernels_passes_through_in_segments() {
    const SIZE: usize = 8 << 20;
    in_namespace(|| {
        let (left, right) = (Namespace::new("left"), Namespace::new("right"));
        for (name, host, namespace) in [("wl", 1, &left), ("wr", 2, &right)] {
            ip(&format!(
                "link add {name} type veth peer name eth0 netns {}",
                namespace.0
            ));
            ip(&format!("link set {name} up"));
            namespace.ip(&format!("addr add 10.7.0.{host}/24 dev eth0"));
            namespace.ip("link set eth0 up");
        }
        let (a, b) = (RawSocket::open("wl").unwrap(), RawSocket::open("wr").unwrap());
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let carrier = std::thread::spawn({
            let stop = stop.clone();
            move || bridge(a, b, &stop)
        });
        let listener = right
            .spawn(|| TcpListener::bind("10.7.0.2:80").unwrap())
            .join()
            .unwrap();
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        let data: Vec<u8> = (0..SIZE).map(|i| ((i * 31) >> 7) as u8).collect();
        let copy = data.clone();
        let sender = left.spawn(move || {
            let address = "10.7.0.2:80".parse().unwrap();
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap();
            stream.write_all(&copy).unwrap();
        });
        sender.join().unwrap();
        assert!(receiver.join().unwrap() == data);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let (longest, segmented) = carrier.join().unwrap();
        assert_eq!(longest, 1514);
        assert!(segmented > 0, "the kernel has sent frames that had to be cut");
    });
}

#[test]
fn a_tap_gives_what_the_kernel_sends_and_takes_what_it_receives() {
    in_namespace(|| {
        let mut tap = Tap::open("wt").unwrap();
        ip("link set wt address 02:00:00:00:00:02");
        ip("addr add 10.8.0.1/24 dev wt");
        ip("neigh add 10.8.0.2 lladdr 02:00:00:00:00:01 dev wt");
        let socket = UdpSocket::bind("10.8.0.1:5000").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let spec = "size=200,dst=10.8.0.1,src=10.8.0.2,sport=7,dport=5000,dmac=02:00:00:00:00:02";
        let mut generator = Generator::new(format!("{spec},count=1").parse().unwrap());
        let mut batch = Batch::new(1);
        generator.receive(&mut batch).unwrap();
        let frames: Vec<_> = batch.iter().collect();
        assert_eq!(tap.transmit(&frames).unwrap(), 1);
        let mut data = [0; 300];
        let (length, from) = socket.recv_from(&mut data).unwrap();
        assert_eq!((length, from.port()), (200 - 42, 7));
        socket.send_to(b"answer", from).unwrap();
        let answers = collect(&mut tap, 1, |f| f[12..14] == [8, 0] && f[23] == 17);
        assert_eq!(answers[0][42..48], *b"answer");
        assert!(checksum_is_right(&answers[0]));
        assert!(tap.link_up());
        assert!(matches!(Tap::open("wt"), Err(IoError::Busy { .. })));
    });
}

#[test]
fn an_interface_that_does_not_exist_is_an_error_that_names_those_that_do() {
    in_namespace(|| {
        ip("link add wa type veth peer name wb");
        let error = RawSocket::open("eth7").unwrap_err().to_string();
        assert_eq!(error, "there is no interface `eth7`; there are lo, wb, wa");
        let error = RawSocket::open("a/b").unwrap_err();
        assert!(matches!(error, IoError::InvalidName { .. }));
    });
}

#[test]
fn a_missing_right_is_named_with_what_gives_it() {
    in_namespace(|| {
        // SAFETY: takes no pointer. As a system call, which unlike the library's wrapper changes
        // this thread only.
        let became = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        assert_eq!(became, 0);
        let error = RawSocket::open("lo").unwrap_err().to_string();
        assert!(
            error.starts_with("opening a raw socket on `lo` needs CAP_NET_RAW: run as root"),
            "{error}"
        );
        let error = Tap::open("wt").unwrap_err().to_string();
        assert!(
            error.contains("needs CAP_NET_ADMIN") || error.contains("/dev/net/tun"),
            "{error}"
        );
    });
}

#[test]
fn a_packet_is_handed_over_at_once_and_a_full_ring_is_counted() {
    in_namespace(|| {
        ip("link add wa type veth peer name wb");
        ip("link set wa up");
        ip("link set wb up");
        let (mut a, mut b) = (RawSocket::open("wa").unwrap(), RawSocket::open("wb").unwrap());
        let mut data = vec![0; 60];
        data[6..8].copy_from_slice(&[0x02, 0x77]);
        let frame = Frame {
            data: &data,
            time_ns: 0,
        };
        let mut times: Vec<_> = (0..21)
            .map(|_| {
                let started = std::time::Instant::now();
                assert_eq!(a.transmit(&[frame]).unwrap(), 1);
                assert_eq!(collect(&mut b, 1, |f| f[6..8] == [0x02, 0x77]).len(), 1);
                started.elapsed()
            })
            .collect();
        times.sort();
        // A ring of blocks would take a millisecond. A quarter, for a machine that is busy.
        assert!(times[5] < Duration::from_micros(900), "{times:?}");
        // More than the ring holds, three times round.
        let (burst, mut batch) = (vec![frame; 1000], Batch::new(12_000));
        for _ in 0..3 {
            for _ in 0..10 {
                let mut done = 0;
                while done < burst.len() {
                    done += a.transmit(&burst[done..]).unwrap();
                }
            }
            let before = b.counters();
            batch.clear();
            b.receive(&mut batch).unwrap();
            let ours = batch.iter().filter(|f| f.data[6..8] == [0x02, 0x77]).count() as u64;
            assert!(ours > 3000, "{ours}");
            let dropped = b.counters().receive_dropped;
            assert!(dropped >= before.receive_dropped && ours < 10_000, "{dropped}");
        }
        let counters = b.counters();
        assert!(counters.received + counters.receive_dropped >= 30_021, "{counters:?}");
    });
}
