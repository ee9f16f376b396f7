//! Directives about packet generators: what they say, and doing it.

use crate::ast::{Comparison, Directive};
use crate::control::Refusal;
use crate::parse::{Parsed, comparison, number, port, port_and_bytes, ports};
use crate::scan::Scanner;
use crate::value::Value;
use weir_switch::{Application, Counts, GeneratorPort, Pattern, Switch, Trigger};

/// Something about packet generators.
#[derive(Debug, Clone, PartialEq)]
pub enum GeneratorDirective {
    /// What a port has to do with its pipe's generator.
    Port {
        /// The port.
        port: u32,
        /// What.
        what: GeneratorPort,
    },
    /// Bytes of a buffer.
    Buffer {
        /// The pipe.
        pipe: u32,
        /// Where they begin.
        offset: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Ports of a mask.
    Mask {
        /// The pipe.
        pipe: u32,
        /// Number of the mask.
        mask: u32,
        /// Local numbers of the ports.
        ports: Vec<u32>,
    },
    /// An application.
    Application {
        /// The pipe.
        pipe: u32,
        /// Its number.
        app: u32,
        /// What it is.
        what: Application,
    },
    /// What an application has done.
    Check {
        /// The pipe.
        pipe: u32,
        /// The application.
        app: u32,
        /// What is counted.
        counted: Counted,
        /// How it is compared, and with what.
        check: (Comparison, u64),
    },
}

/// What applications count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the words of the language")]
pub enum Counted {
    Triggers,
    Batches,
    Packets,
}

impl Counted {
    fn of(self, counts: Counts) -> u64 {
        match self {
            Counted::Triggers => counts.triggers,
            Counted::Batches => counts.batches,
            Counted::Packets => counts.packets,
        }
    }
}

/// The directive with this keyword, if it is about generators.
pub(crate) fn directive(s: &mut Scanner, keyword: &str) -> Parsed<Option<Directive>> {
    let directive = match keyword {
        "pktgen_port" => GeneratorDirective::Port {
            port: port(s)?,
            what: port_use(s)?,
        },
        "pktgen_buffer" => {
            let pipe = number(s, "a pipe")?;
            let (offset, bytes) = port_and_bytes(s)?;
            GeneratorDirective::Buffer { pipe, offset, bytes }
        }
        "pktgen_mask" => GeneratorDirective::Mask {
            pipe: number(s, "a pipe")?,
            mask: number(s, "the number of a mask")?,
            ports: ports(s)?,
        },
        "pktgen_app" => GeneratorDirective::Application {
            pipe: number(s, "a pipe")?,
            app: number(s, "the number of an application")?,
            what: application(s)?,
        },
        "check_pktgen" => check(s)?,
        _ => return Ok(None),
    };
    Ok(Some(Directive::Generator(directive)))
}

fn port_use(s: &mut Scanner) -> Parsed<GeneratorPort> {
    let mut what = GeneratorPort::default();
    while !s.is_empty() {
        let start = s.mark();
        match s.word().unwrap_or_default().to_ascii_lowercase().as_str() {
            "generates" => what.generates = true,
            "matches" => what.matches = true,
            _ => return Err(s.error_at(start, "`generates` or `matches`")),
        }
    }
    Ok(what)
}

fn pattern(s: &mut Scanner) -> Parsed<Pattern> {
    let mut bits = |what: &str| {
        let start = s.mark();
        let single = s.word().and_then(|w| Value::parse(&w)).and_then(|v| v.single());
        let bits = single.and_then(|v| u128::try_from(v).ok());
        bits.ok_or_else(|| s.error_at(start, what))
    };
    Ok(Pattern {
        value: bits("the value of a pattern")?,
        mask: bits("the mask of a pattern")?,
    })
}

fn application(s: &mut Scanner) -> Parsed<Application> {
    let start = s.mark();
    let word = s.word().unwrap_or_default().to_ascii_lowercase();
    let trigger = match word.as_str() {
        "off" => return Ok(Application::default()),
        "one_shot" => Trigger::OneShot {
            after_ns: number(s, "nanoseconds")?,
        },
        "periodic" => Trigger::Periodic {
            every_ns: number(s, "nanoseconds")?,
        },
        "port_down" => Trigger::PortDown { mask: None },
        "recirculated" => Trigger::Recirculated(pattern(s)?),
        "deparser" => Trigger::Deparser(pattern(s)?),
        _ => {
            let expected = "`one_shot`, `periodic`, `port_down`, `recirculated`, `deparser` or `off`";
            return Err(s.error_at(start, expected));
        }
    };
    let mut what = Application {
        enabled: true,
        trigger,
        ..Application::default()
    };
    let mut given: Vec<String> = Vec::new();
    while !s.is_empty() {
        let start = s.mark();
        let name = option(s, &mut what)?;
        if given.contains(&name) {
            return Err(s.error_at(start, format!("`{name}` once")));
        }
        if what.increments_source_port && given.iter().chain([&name]).any(|n| n == "port") {
            let (first, last) = (what.source_port, what.last_source_port);
            if last < first {
                return Err(s.error_at(start, format!("a `last_port` that is not before the `port`, {first}")));
            }
        }
        given.push(name);
    }
    Ok(what)
}

/// A word and its number; gives the word.
fn option(s: &mut Scanner, what: &mut Application) -> Parsed<String> {
    let start = s.mark();
    let word = s.word().unwrap_or_default().to_ascii_lowercase();
    match word.as_str() {
        "mask" => match &mut what.trigger {
            Trigger::PortDown { mask } => *mask = Some(number(s, "the number of a mask")?),
            _ => return Err(s.error_at(start, "`mask` only behind `port_down`")),
        },
        "offset" => what.offset = number(s, "a place in the buffer")?,
        "length" => what.length = number(s, "a number of bytes")?,
        "port" => what.source_port = port(s)?,
        "last_port" => {
            what.increments_source_port = true;
            what.last_source_port = port(s)?;
        }
        "channel" => what.channel = Some(port(s)?),
        "batches" => what.more_batches = one_less(s, "a number of batches")?,
        "packets" => what.more_packets = one_less(s, "a number of packets")?,
        "batch_gap" => what.batch_gap_ns = number(s, "nanoseconds")?,
        "batch_jitter" => what.batch_jitter_ns = number(s, "nanoseconds")?,
        "packet_gap" => what.packet_gap_ns = number(s, "nanoseconds")?,
        "packet_jitter" => what.packet_jitter_ns = number(s, "nanoseconds")?,
        _ => {
            let expected = "`offset`, `length`, `port`, `last_port`, `channel`, `batches`, `packets`, `batch_gap`, \
                            `packet_gap`, `batch_jitter`, `packet_jitter` or `mask`";
            return Err(s.error_at(start, expected));
        }
    }
    Ok(word)
}

/// A number from 1 to 65536, as chips are told of it.
fn one_less(s: &mut Scanner, what: &str) -> Parsed<u16> {
    let start = s.mark();
    let count: u32 = number(s, what)?;
    let less = count.checked_sub(1).and_then(|n| u16::try_from(n).ok());
    less.ok_or_else(|| s.error_at(start, "a number from 1 to 65536"))
}

fn check(s: &mut Scanner) -> Parsed<GeneratorDirective> {
    let pipe = number(s, "a pipe")?;
    let app = number(s, "the number of an application")?;
    let start = s.mark();
    let counted = match s.word().unwrap_or_default().to_ascii_lowercase().as_str() {
        "triggers" => Counted::Triggers,
        "batches" => Counted::Batches,
        "packets" => Counted::Packets,
        _ => return Err(s.error_at(start, "`triggers`, `batches` or `packets`")),
    };
    let sign = comparison(s)?.ok_or_else(|| s.error("a comparison, like `== 3`"))?;
    Ok(GeneratorDirective::Check {
        pipe,
        app,
        counted,
        check: (sign, number(s, "a number")?),
    })
}

/// Does what a directive says.
pub(crate) fn perform(switch: &mut Switch, directive: &GeneratorDirective) -> Result<(), Refusal> {
    match directive {
        GeneratorDirective::Port { port, what } => switch.generators_mut()?.set_port(*port, *what)?,
        GeneratorDirective::Buffer { pipe, offset, bytes } => {
            switch.generators_mut()?.write_buffer(*pipe, *offset, bytes)?;
        }
        GeneratorDirective::Mask { pipe, mask, ports } => {
            let mut all = 0;
            for port in ports {
                let bit = 1u128.checked_shl(*port).ok_or_else(|| Refusal {
                    expected: "local ports from 0 to 127".to_owned(),
                    got: port.to_string(),
                })?;
                all |= bit;
            }
            switch.generators_mut()?.set_mask(*pipe, *mask, all)?;
        }
        GeneratorDirective::Application { pipe, app, what } => {
            switch.configure_generator(*pipe, *app, what.clone())?;
        }
        GeneratorDirective::Check {
            pipe,
            app,
            counted,
            check: (sign, wanted),
        } => {
            let got = counted.of(switch.generators_mut()?.application(*pipe, *app)?.1);
            if !sign.holds(&got, wanted) {
                return Err(Refusal {
                    expected: format!("{} {wanted}", sign.sign()),
                    got: got.to_string(),
                });
            }
        }
    }
    Ok(())
}
