//! Applications over a real socket; the IPC process is a loopback that connects the two ends of
//! each flow.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_rina_host::protocol::{Call, FlowNumber, Reply, Request, VERSION, WINDOW, write_message};
use weir_rina_host::server::{ApplicationId, Input, Server};
use weir_rina_host::{HostError, Ipcp, Qos};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Ends {
    /// The other end of each flow, its application, and what it may still be sent.
    flows: BTreeMap<FlowNumber, (FlowNumber, ApplicationId, u32)>,
    waiting: BTreeMap<FlowNumber, VecDeque<Vec<u8>>>,
    names: BTreeMap<String, ApplicationId>,
    calls: BTreeMap<FlowNumber, (ApplicationId, Call)>,
    next: u32,
}

/// An IPC process that knows only its own applications.
struct Loopback {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    fn start(path: &Path) -> Self {
        let mut server = Server::bind(path).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut ends = Ends::default();
            while !flag.load(Ordering::Relaxed) {
                let mut files: Vec<_> = server
                    .files()
                    .map(|(file, flags)| rustix::event::PollFd::from_borrowed_fd(file, flags))
                    .collect();
                let wait = rustix::event::Timespec {
                    tv_sec: 0,
                    tv_nsec: 10_000_000,
                };
                rustix::event::poll(&mut files, Some(&wait)).unwrap();
                drop(files);
                for input in server.poll() {
                    ends.take(&mut server, input);
                }
                ends.deliver(&mut server);
                server.flush();
            }
        });
        Loopback {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

impl Ends {
    fn take(&mut self, server: &mut Server, input: Input) {
        match input {
            Input::Request(id, request) => self.request(server, id, request),
            Input::Sdu(_, flow, sdu) => {
                if let Some((other, ..)) = self.flows.get(&flow) {
                    self.waiting.entry(*other).or_default().push_back(sdu);
                }
            }
            Input::Gone(id) => {
                self.names.retain(|_, owner| *owner != id);
                let of_it: Vec<FlowNumber> = self
                    .flows
                    .iter()
                    .filter(|(_, end)| end.1 == id)
                    .map(|(n, _)| *n)
                    .collect();
                of_it.into_iter().for_each(|flow| self.end(server, flow));
            }
        }
    }

    fn end(&mut self, server: &mut Server, flow: FlowNumber) {
        if let Some((other, ..)) = self.flows.remove(&flow)
            && let Some((_, id, _)) = self.flows.remove(&other)
        {
            for sdu in self.waiting.remove(&other).unwrap_or_default() {
                server.send_sdu(id, other, &sdu);
            }
            server.send(
                id,
                &Reply::Closed {
                    flow: other,
                    reason: "bye".into(),
                },
            );
        }
    }

    fn request(&mut self, server: &mut Server, id: ApplicationId, request: Request) {
        match request {
            Request::Hello { version } if version != VERSION => server.disconnect(id, "another version"),
            Request::Hello { .. } => server.send(
                id,
                &Reply::Welcome {
                    version: VERSION,
                    name: "loop".into(),
                    dif: "test".into(),
                    max_sdu: 100_000,
                },
            ),
            Request::Register { call, name } => {
                let result = if self.names.contains_key(&name) {
                    Err("registered".into())
                } else {
                    Ok(())
                };
                self.names.entry(name).or_insert(id);
                server.send(id, &Reply::Done { call, result });
            }
            Request::Unregister { name } => drop(self.names.remove(&name)),
            Request::Allocate {
                call,
                local,
                remote,
                qos,
            } => {
                let Some(&owner) = self.names.get(&remote) else {
                    return server.send(
                        id,
                        &Reply::Done {
                            call,
                            result: Err("no such name".into()),
                        },
                    );
                };
                self.next += 2;
                let (here, there) = (FlowNumber(self.next), FlowNumber(self.next + 1));
                self.flows.insert(here, (there, id, WINDOW));
                self.flows.insert(there, (here, owner, WINDOW));
                self.calls.insert(there, (id, call));
                server.send(
                    owner,
                    &Reply::Requested {
                        flow: there,
                        local: remote,
                        remote: local,
                        qos,
                    },
                );
            }
            Request::Accept { flow } => {
                let (id, call) = self.calls.remove(&flow).unwrap();
                server.send(
                    id,
                    &Reply::Allocated {
                        call,
                        flow: self.flows[&flow].0,
                    },
                );
            }
            Request::Refuse { flow, reason } => {
                let (id, call) = self.calls.remove(&flow).unwrap();
                server.send(
                    id,
                    &Reply::Done {
                        call,
                        result: Err(reason),
                    },
                );
                let (other, ..) = self.flows.remove(&flow).unwrap();
                self.flows.remove(&other);
            }
            Request::Deallocate { flow } => self.end(server, flow),
            Request::Credit { flow, sdus } => {
                if let Some(end) = self.flows.get_mut(&flow) {
                    end.2 += sdus;
                }
            }
            Request::Manage { call, command } => server.send(
                id,
                &Reply::Managed {
                    call,
                    result: Ok(format!("\"{command}\"")),
                },
            ),
        }
    }

    fn deliver(&mut self, server: &mut Server) {
        for (flow, waiting) in &mut self.waiting {
            let Some((other, id, credit)) = self.flows.get_mut(flow) else {
                continue;
            };
            let (other, id) = (*other, *id);
            let mut sent = 0;
            while *credit > 0
                && let Some(sdu) = waiting.pop_front()
            {
                *credit -= 1;
                sent += 1;
                server.send_sdu(id, *flow, &sdu);
            }
            if sent > 0
                && let Some((_, sender, _)) = self.flows.get(&other)
            {
                server.send(
                    *sender,
                    &Reply::Credit {
                        flow: other,
                        sdus: sent,
                    },
                );
            }
        }
    }
}

struct Setup {
    _loopback: Loopback,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Setup {
            _loopback: Loopback::start(&folder.path().join("s")),
            folder,
        }
    }

    fn connect(&self) -> Ipcp {
        Ipcp::connect(&self.folder.path().join("s")).unwrap()
    }
}

#[test]
fn sdus_arrive_in_order_with_their_boundaries() {
    let setup = Setup::new();
    let (a, b) = (setup.connect(), setup.connect());
    assert_eq!((a.name(), a.dif(), a.max_sdu()), ("loop", "test", 100_000));
    let server = b.register("server").unwrap();
    let reader = std::thread::spawn(move || {
        let incoming = server.next(PATIENCE).unwrap().unwrap();
        assert_eq!((incoming.remote(), incoming.qos()), ("client", Qos::RELIABLE));
        let flow = incoming.accept().unwrap();
        for n in 0..20_000_usize {
            let sdu = flow.read_sdu(PATIENCE).unwrap().unwrap();
            assert_eq!(
                (sdu.len(), sdu.first().copied()),
                (n % 700, (n % 700 > 0).then_some(n as u8))
            );
        }
        flow.write_sdu(b"all").unwrap();
        assert!(matches!(flow.read_sdu(PATIENCE), Err(HostError::Closed(_))));
    });
    let flow = a.allocate("client", "server", Qos::RELIABLE, PATIENCE).unwrap();
    for n in 0..20_000_usize {
        flow.write_sdu(&vec![n as u8; n % 700]).unwrap();
    }
    assert_eq!(flow.read_sdu(PATIENCE).unwrap().unwrap(), b"all");
    drop(flow);
    reader.join().unwrap();
    assert_eq!(a.manage("show").unwrap(), "\"show\"");
}

#[test]
fn a_flow_that_is_not_read_delays_no_other() {
    let setup = Setup::new();
    let (a, b) = (setup.connect(), setup.connect());
    let server = b.register("server").unwrap();
    let accept = || server.next(PATIENCE).unwrap().unwrap().accept().unwrap();
    let connect = |a: &Ipcp| {
        let a = a.clone();
        std::thread::spawn(move || a.allocate("client", "server", Qos::RELIABLE, PATIENCE).unwrap())
    };
    let slow = connect(&a);
    let slow_there = accept();
    let slow = slow.join().unwrap();
    let fast = connect(&a);
    let fast_there = accept();
    let fast = fast.join().unwrap();
    let writer = std::thread::spawn(move || {
        // Blocks once the windows are full: both ends of the socket, and no more.
        for n in 0..2000_u32 {
            slow.write_sdu(&n.to_be_bytes()).unwrap();
        }
        slow
    });
    for n in 0..5000_u32 {
        fast.write_sdu(&n.to_be_bytes()).unwrap();
        assert_eq!(fast_there.read_sdu(PATIENCE).unwrap().unwrap(), n.to_be_bytes());
    }
    for n in 0..2000_u32 {
        assert_eq!(slow_there.read_sdu(PATIENCE).unwrap().unwrap(), n.to_be_bytes());
    }
    drop(writer.join().unwrap());
}

#[test]
fn refusals_limits_and_missing_names_are_errors() {
    let setup = Setup::new();
    let a = setup.connect();
    let error = a.allocate("client", "none", Qos::UNRELIABLE, PATIENCE).unwrap_err();
    assert_eq!(error.to_string(), "no such name");
    let server = a.register("server").unwrap();
    assert!(matches!(setup.connect().register("server"), Err(HostError::Refused(_))));
    let refuser = std::thread::spawn(move || {
        server.next(PATIENCE).unwrap().unwrap().refuse("busy").unwrap();
        // One that is dropped is refused, too.
        drop(server.next(PATIENCE).unwrap().unwrap());
        server.next(PATIENCE).unwrap().unwrap().accept().unwrap()
    });
    let b = setup.connect();
    let error = b.allocate("client", "server", Qos::RELIABLE, PATIENCE).unwrap_err();
    assert_eq!(error.to_string(), "busy");
    assert!(b.allocate("client", "server", Qos::RELIABLE, PATIENCE).is_err());
    let flow = b.allocate("client", "server", Qos::RELIABLE, PATIENCE).unwrap();
    let _other = refuser.join().unwrap();
    let error = flow.write_sdu(&vec![0; 100_001]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected an SDU of at most 100000 bytes, found 100001"
    );
    assert!(matches!(flow.read_sdu(Duration::from_millis(1)), Ok(None)));
}

#[test]
fn rubbish_ends_the_connection_with_a_reason_and_harms_no_other() {
    use std::io::{Read, Write};
    let setup = Setup::new();
    let good = setup.connect();
    for rubbish in [
        &b"GET / HTTP/1.1\r\n"[..],
        &[0, 0, 0, 0],
        &[0, 0, 0, 2, 9, 9],
        &[0, 0, 0, 2, 0, 0xff],
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(setup.folder.path().join("s")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(rubbish).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.contains("expected") || text.contains("malformed"), "{text}");
    }
    assert!(good.manage("x").is_ok());
}

#[test]
fn a_connection_that_is_dropped_leaves_neither_socket_nor_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sock");
    let _ipcp = Loopback::start(&path);
    let sockets = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let is_socket = |file: &std::fs::DirEntry| {
            std::fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
        };
        files.filter_map(Result::ok).filter(is_socket).count()
    };
    // More than the IPC process takes at once, and than other tests use.
    for _ in 0..500 {
        drop(Ipcp::connect(&path).unwrap());
    }
    // The other side closes its ends a little later.
    for _ in 0..1000 {
        if sockets() <= 200 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} sockets are open", sockets());
}

#[test]
fn calls_end_when_the_ipc_process_does() {
    let mut setup = Setup::new();
    let a = setup.connect();
    let server = a.register("server").unwrap();
    let b = setup.connect();
    let acceptor = std::thread::spawn(move || server.next(PATIENCE).unwrap().unwrap().accept().unwrap());
    let flow = b.allocate("client", "server", Qos::RELIABLE, PATIENCE).unwrap();
    let other = acceptor.join().unwrap();
    let path = setup.folder.path().join("s");
    let folder = std::mem::replace(&mut setup.folder, tempfile::tempdir().unwrap());
    drop(setup);
    assert!(flow.read_sdu(PATIENCE).is_err() && other.read_sdu(PATIENCE).is_err());
    assert!(matches!(b.manage("x"), Err(HostError::Gone(_))));
    assert!(matches!(Ipcp::connect(&path), Err(HostError::NotRunning { .. })));
    drop(folder);
}

#[test]
fn stale_sockets_are_replaced_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let stale = std::os::unix::net::UnixListener::bind(&path).unwrap();
    drop(stale);
    let server = Server::bind(&path).unwrap();
    assert_eq!(Server::bind(&path).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    drop(server);
    assert!(!path.exists());
    std::fs::write(&path, "mine").unwrap();
    assert_eq!(
        Server::bind(&path).unwrap_err().kind(),
        std::io::ErrorKind::AlreadyExists
    );
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(Server::bind(&link).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

/// Hello, then as many requests of the management agent.
fn requests(count: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&Request::Hello { version: VERSION }, &mut bytes);
    for call in 0..count {
        let command = "link-states".to_owned();
        write_message(
            &Request::Manage {
                call: Call(call),
                command,
            },
            &mut bytes,
        );
    }
    bytes
}

/// One turn of an IPC process whose answers are long. Returns the number of requests.
fn answer(server: &mut Server) -> usize {
    let inputs = server.poll();
    for input in &inputs {
        if let Input::Request(id, Request::Manage { call, .. }) = input {
            let result = Ok("x".repeat(50_000));
            server.send(*id, &Reply::Managed { call: *call, result });
        }
    }
    server.flush();
    inputs.len()
}

#[test]
fn an_application_that_reads_no_answers_has_few_requests_taken_and_delays_no_other() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::bind(&folder.path().join("s")).unwrap();
    let connect = || std::os::unix::net::UnixStream::connect(folder.path().join("s")).unwrap();
    let (mut greedy, mut other) = (connect(), connect());
    greedy.write_all(&requests(1000)).unwrap();
    let mut taken = 0;
    for _ in 0..1000 {
        let of_turn = answer(&mut server);
        assert!(of_turn <= 16, "{of_turn} requests at once");
        taken += of_turn;
    }
    assert!((2..200).contains(&taken), "{taken} requests without a reader");
    assert!(!server.has_backlog(), "its owner may sleep");
    other.write_all(&requests(1)).unwrap();
    assert_eq!(answer(&mut server), 2);
    // All is answered once it reads.
    greedy.set_nonblocking(true).unwrap();
    let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
    for _ in 0..100_000 {
        taken += answer(&mut server);
        bytes += greedy.read(&mut buffer).unwrap_or(0);
        if bytes > 1000 * 50_000 {
            break;
        }
    }
    assert_eq!(taken, 1001);
}

#[test]
fn an_answer_that_is_too_long_for_a_message_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let mut server = Server::bind(&path).unwrap();
    let client = std::thread::spawn(move || {
        let ipcp = Ipcp::connect(&path).unwrap();
        ipcp.manage("all").unwrap_err().to_string()
    });
    while !client.is_finished() {
        for input in server.poll() {
            match input {
                Input::Request(id, Request::Hello { version }) => {
                    let (name, dif) = ("a".to_owned(), "d".to_owned());
                    let max_sdu = 1;
                    server.send(
                        id,
                        &Reply::Welcome {
                            version,
                            name,
                            dif,
                            max_sdu,
                        },
                    );
                }
                Input::Request(id, Request::Manage { call, .. }) => {
                    let result = Ok("x".repeat(9 << 20));
                    server.send(id, &Reply::Managed { call, result });
                }
                Input::Request(..) | Input::Sdu(..) | Input::Gone(_) => {}
            }
        }
        server.flush();
    }
    assert!(client.join().unwrap().ends_with("expected at most 8388608"));
}

#[test]
fn silent_connections_shut_no_application_out() {
    let setup = Setup::new();
    let path = setup.folder.path().join("s");
    let connect = || std::os::unix::net::UnixStream::connect(&path).unwrap();
    let silent: Vec<_> = (0..300).map(|_| connect()).collect();
    assert_eq!(setup.connect().manage("show").unwrap(), "\"show\"");
    drop(silent);
}

#[test]
fn sdus_of_an_application_that_has_ended_are_taken_whatever_waits_for_it() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::bind(&folder.path().join("s")).unwrap();
    let mut stream = std::os::unix::net::UnixStream::connect(folder.path().join("s")).unwrap();
    stream.write_all(&requests(1)).unwrap();
    let inputs = server.poll();
    let Some(&Input::Request(id, _)) = inputs.first() else {
        panic!("{inputs:?}");
    };
    // More messages than one poll takes, with an SDU after them.
    let credit = |_| {
        let mut bytes = Vec::new();
        let flow = FlowNumber(1);
        write_message(&Request::Credit { flow, sdus: 1 }, &mut bytes);
        bytes
    };
    let mut bytes: Vec<u8> = (0..20).flat_map(credit).collect();
    bytes.extend(weir_rina_host::protocol::sdu_header(FlowNumber(1), 4));
    bytes.extend(b"last");
    stream.write_all(&bytes).unwrap();
    drop(stream);
    server.send_sdu(id, FlowNumber(1), &[0; 1000]);
    let mut inputs = Vec::new();
    for _ in 0..20 {
        inputs.extend(server.poll());
    }
    let sdu = Input::Sdu(id, FlowNumber(1), b"last".to_vec());
    assert_eq!(inputs.last(), Some(&Input::Gone(id)));
    assert_eq!(inputs.iter().filter(|input| **input == sdu).count(), 1);
}

#[test]
fn a_stopped_ipc_process_is_named_as_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = Ipcp::connect_within(&path, Duration::from_millis(10)).unwrap_err();
    assert!(error.to_string().contains("the IPC process does not answer"), "{error}");
}
