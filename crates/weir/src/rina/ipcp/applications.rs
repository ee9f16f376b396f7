//! Applications of an IPC process: their names, their flows, and the SDUs between.

use super::manage;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_ipcp::{FlowError, FlowEvent, FlowId, IpcProcess};
use weir_rina::cdap::objects::QosRequest;
use weir_rina::transport::SendError;
use weir_rina::{ApplicationName, NameForm, Time};
use weir_rina_host::protocol::{Call, FlowNumber, Qos, Reply, Request, VERSION, WINDOW};
use weir_rina_host::server::{ApplicationId, Input, Server};

/// The application gets new credit for SDUs once the connection has taken this many.
const GRANT: u32 = WINDOW / 4;

/// A flow and the application that it belongs to.
struct Flow {
    application: ApplicationId,
    /// The call that requested it, while it is not answered.
    call: Option<Call>,
    /// SDUs of the application that the connection does not take yet.
    waiting: VecDeque<Vec<u8>>,
    /// SDUs that were taken since the last grant.
    taken: u32,
    /// SDUs that the application takes.
    credit: u32,
    /// Why it has ended: for the application, once all SDUs are read.
    closed: Option<String>,
    /// The application has deallocated it, or is gone: what waits is still sent.
    is_deallocated: bool,
}

/// The applications.
#[derive(Default)]
pub struct Applications {
    greeted: BTreeSet<ApplicationId>,
    names: BTreeMap<ApplicationName, ApplicationId>,
    flows: BTreeMap<FlowId, Flow>,
    /// News of flows that were not handled yet.
    news: VecDeque<(FlowId, FlowEvent)>,
}

fn name(text: &str) -> Result<ApplicationName, String> {
    let name = ApplicationName::from_text(text.as_bytes(), NameForm::Rlite).map_err(|error| error.to_string())?;
    let is_named = !name.process.is_empty() && text.len() <= 255;
    is_named
        .then_some(name)
        .ok_or_else(|| format!("expected a name of 1 to 255 bytes, found `{text}`"))
}

fn text(name: &ApplicationName) -> String {
    name.to_text(NameForm::Rlite).unwrap_or_else(|_| name.process.clone())
}

fn request_of(qos: &Qos) -> QosRequest {
    QosRequest {
        qos: 0,
        average_bandwidth: qos.rate.unwrap_or(0),
        in_order: qos.is_ordered || qos.is_reliable,
        max_gap: if qos.is_reliable { 0 } else { -1 },
        delay: 0,
    }
}

fn qos_of(request: &QosRequest) -> Qos {
    Qos {
        is_reliable: request.max_gap == 0,
        is_ordered: request.in_order,
        rate: (request.average_bandwidth > 0).then_some(request.average_bandwidth),
    }
}

impl Flow {
    fn new(application: ApplicationId, call: Option<Call>) -> Self {
        Flow {
            application,
            call,
            waiting: VecDeque::new(),
            taken: 0,
            credit: WINDOW,
            closed: None,
            is_deallocated: false,
        }
    }
}

impl Applications {
    /// Takes what an application has sent.
    pub fn take(&mut self, process: &mut IpcProcess, server: &mut Server, input: Input, now: Time) {
        match input {
            Input::Request(from, request) => self.request(process, server, from, request, now),
            Input::Sdu(from, flow, sdu) => self.send(process, server, (from, FlowId(flow.0)), sdu, now),
            Input::Gone(application) => self.gone(process, application, now),
        }
    }

    fn request(
        &mut self,
        process: &mut IpcProcess,
        server: &mut Server,
        from: ApplicationId,
        request: Request,
        now: Time,
    ) {
        // Its connection may have ended since: the answer would be dropped.
        if !server.is_connected(from) {
            return;
        }
        let is_greeted = self.greeted.contains(&from);
        if !is_greeted && !matches!(request, Request::Hello { version: VERSION }) {
            server.disconnect(from, &format!("expected Hello with version {VERSION}"));
            return self.gone(process, from, now);
        }
        match request {
            Request::Hello { .. } => {
                self.greeted.insert(from);
                let config = process.config();
                let welcome = Reply::Welcome {
                    version: VERSION,
                    name: config.name.clone(),
                    dif: config.dif.clone(),
                    max_sdu: u32::try_from(config.max_sdu).unwrap_or(u32::MAX),
                };
                server.send(from, &welcome);
            }
            Request::Register { call, name: text } => {
                let result = name(&text).and_then(|name| {
                    process.register(&name, now).map_err(|error| error.to_string())?;
                    self.names.insert(name, from);
                    Ok(())
                });
                server.send(from, &Reply::Done { call, result });
            }
            Request::Unregister { name: text } => {
                if let Ok(name) = name(&text)
                    && self.names.get(&name) == Some(&from)
                {
                    self.names.remove(&name);
                    process.unregister(&name, now);
                }
            }
            Request::Allocate {
                call,
                local,
                remote,
                qos,
            } => {
                let flow = name(&local).and_then(|local| {
                    let remote = name(&remote)?;
                    let flow = process.allocate(&local, &remote, request_of(&qos), now);
                    flow.map_err(|error| error.to_string())
                });
                match flow {
                    Ok(flow) => drop(self.flows.insert(flow, Flow::new(from, Some(call)))),
                    Err(reason) => server.send(
                        from,
                        &Reply::Done {
                            call,
                            result: Err(reason),
                        },
                    ),
                }
            }
            Request::Accept { flow } => {
                let flow = FlowId(flow.0);
                if self.is_owner(from, flow) && process.accept(flow, now).is_err() {
                    self.close(flow, "the request is gone");
                }
            }
            Request::Refuse { flow, reason } => {
                let flow = FlowId(flow.0);
                if self.is_owner(from, flow) {
                    self.flows.remove(&flow);
                    // It may be gone already.
                    let _ = process.refuse(flow, &reason, now);
                }
            }
            Request::Deallocate { flow } => {
                let flow = FlowId(flow.0);
                if self.is_owner(from, flow) {
                    self.deallocate(process, flow, now);
                }
            }
            Request::Credit { flow, sdus } => {
                let flow = FlowId(flow.0);
                if let Some(known) = self.flows.get_mut(&flow).filter(|known| known.application == from) {
                    known.credit = known.credit.saturating_add(sdus).min(WINDOW * 2);
                    self.news.push_back((flow, FlowEvent::Readable));
                }
            }
            Request::Manage { call, command } => {
                let result = manage::manage(process, &command, now).map(|value| value.to_string());
                server.send(from, &Reply::Managed { call, result });
            }
        }
    }

    fn is_owner(&self, application: ApplicationId, flow: FlowId) -> bool {
        self.flows
            .get(&flow)
            .is_some_and(|known| known.application == application && !known.is_deallocated)
    }

    /// Deallocates a flow once the connection has taken all that waits.
    fn deallocate(&mut self, process: &mut IpcProcess, flow: FlowId, now: Time) {
        if let Some(known) = self.flows.get_mut(&flow) {
            known.is_deallocated = true;
        }
        self.flush(process, flow, now);
        if self.flows.get(&flow).is_some_and(|known| known.waiting.is_empty()) {
            self.flows.remove(&flow);
            process.deallocate(flow, now);
        }
    }

    fn send(
        &mut self,
        process: &mut IpcProcess,
        server: &mut Server,
        (from, flow): (ApplicationId, FlowId),
        sdu: Vec<u8>,
        now: Time,
    ) {
        // An SDU may cross the message that the flow has ended.
        let is_owner = |known: &&mut Flow| known.application == from && !known.is_deallocated;
        let Some(known) = self.flows.get_mut(&flow).filter(is_owner) else {
            return;
        };
        if known.waiting.len() >= WINDOW as usize {
            server.disconnect(from, "expected no SDU without credit");
            return self.gone(process, from, now);
        }
        known.waiting.push_back(sdu);
        self.flush(process, flow, now);
        self.grant(server, flow);
    }

    /// Gives SDUs to the connection, as many as it takes.
    fn flush(&mut self, process: &mut IpcProcess, flow: FlowId, now: Time) {
        let Some(known) = self.flows.get_mut(&flow) else {
            return;
        };
        while let Some(sdu) = known.waiting.front() {
            match process.send(flow, sdu, now) {
                Err(FlowError::Send(SendError::Full)) => return,
                // What a flow that has ended was given is lost, and the application knows.
                Ok(()) | Err(_) => {
                    known.waiting.pop_front();
                    known.taken += 1;
                }
            }
        }
    }

    fn grant(&mut self, server: &mut Server, flow: FlowId) {
        if let Some(known) = self.flows.get_mut(&flow)
            && known.taken >= GRANT
        {
            let sdus = std::mem::take(&mut known.taken);
            let number = FlowNumber(flow.0);
            server.send(known.application, &Reply::Credit { flow: number, sdus });
        }
    }

    fn gone(&mut self, process: &mut IpcProcess, application: ApplicationId, now: Time) {
        self.greeted.remove(&application);
        let names: Vec<ApplicationName> = self
            .names
            .iter()
            .filter(|(_, owner)| **owner == application)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.names.remove(&name);
            process.unregister(&name, now);
        }
        let flows: Vec<FlowId> = self
            .flows
            .iter()
            .filter(|(_, flow)| flow.application == application)
            .map(|(id, _)| *id)
            .collect();
        flows.into_iter().for_each(|flow| self.deallocate(process, flow, now));
    }

    /// Notes news of a flow, for [`Applications::serve`].
    pub fn note(&mut self, flow: FlowId, event: FlowEvent) {
        self.news.push_back((flow, event));
    }

    fn close(&mut self, flow: FlowId, reason: &str) {
        self.news.push_back((flow, FlowEvent::Closed(reason.to_owned())));
    }

    /// Without a socket for applications every request is refused.
    pub fn refuse_all(&mut self, process: &mut IpcProcess, now: Time) {
        while let Some((flow, event)) = self.news.pop_front() {
            if matches!(event, FlowEvent::Requested { .. }) {
                let _ = process.refuse(flow, "there are no applications here", now);
            }
        }
    }

    /// Tells applications the news of their flows. Whether there were any.
    pub fn serve(&mut self, process: &mut IpcProcess, server: &mut Server, now: Time) -> bool {
        let has_news = !self.news.is_empty();
        while let Some((flow, event)) = self.news.pop_front() {
            self.serve_one(process, server, flow, event, now);
        }
        has_news
    }

    fn serve_one(&mut self, process: &mut IpcProcess, server: &mut Server, flow: FlowId, event: FlowEvent, now: Time) {
        let number = FlowNumber(flow.0);
        if let FlowEvent::Requested { local, remote, qos } = event {
            let Some(&application) = self.names.get(&local) else {
                let _ = process.refuse(flow, "the application is gone", now);
                return;
            };
            self.flows.insert(flow, Flow::new(application, None));
            let requested = Reply::Requested {
                flow: number,
                local: text(&local),
                remote: text(&remote),
                qos: qos_of(&qos),
            };
            return server.send(application, &requested);
        }
        let Some(known) = self.flows.get_mut(&flow) else {
            return;
        };
        let application = known.application;
        if known.is_deallocated {
            return self.serve_deallocated(process, flow, &event, now);
        }
        match event {
            FlowEvent::Allocated => {
                if let Some(call) = known.call.take() {
                    server.send(application, &Reply::Allocated { call, flow: number });
                }
                self.flush(process, flow, now);
            }
            FlowEvent::Refused(reason) => {
                if let Some(call) = known.call {
                    let result = Err(reason);
                    server.send(application, &Reply::Done { call, result });
                }
                self.flows.remove(&flow);
            }
            FlowEvent::Readable => self.read(process, server, flow, now),
            FlowEvent::Writable => {
                self.flush(process, flow, now);
                self.grant(server, flow);
            }
            FlowEvent::Closed(reason) => {
                known.closed = Some(reason);
                self.read(process, server, flow, now);
            }
            FlowEvent::Requested { .. } => {}
        }
    }

    /// News of a flow that no application has any more.
    fn serve_deallocated(&mut self, process: &mut IpcProcess, flow: FlowId, event: &FlowEvent, now: Time) {
        match event {
            FlowEvent::Writable => self.deallocate(process, flow, now),
            FlowEvent::Refused(_) => drop(self.flows.remove(&flow)),
            FlowEvent::Closed(_) => {
                self.flows.remove(&flow);
                process.deallocate(flow, now);
            }
            FlowEvent::Requested { .. } | FlowEvent::Allocated | FlowEvent::Readable => {}
        }
    }

    /// Gives SDUs to the application, as many as it takes; then the end of the flow, if it has
    /// ended.
    fn read(&mut self, process: &mut IpcProcess, server: &mut Server, flow: FlowId, now: Time) {
        let Some(known) = self.flows.get_mut(&flow) else {
            return;
        };
        let number = FlowNumber(flow.0);
        while known.credit > 0 {
            let Some(sdu) = process.read(flow, now) else {
                if let Some(reason) = known.closed.take() {
                    let closed = Reply::Closed { flow: number, reason };
                    server.send(known.application, &closed);
                    self.flows.remove(&flow);
                    process.deallocate(flow, now);
                }
                return;
            };
            known.credit -= 1;
            server.send_sdu(known.application, number, &sdu);
        }
    }
}
