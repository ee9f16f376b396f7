//! From text to a test.

use crate::ast::{
    ActionUse, Alternative, Argument, Comparison, CounterIndex, Directive, KeyValue, Line, Pattern, Quantity, Rate,
    RateUnit, Test,
};
use crate::generator;
use crate::scan::{ParseError, Scanner};
use crate::value::Value;
use weir_switch::{CrcParameters, LpfConfig, LpfKind, WredConfig};

pub(crate) type Parsed<T> = Result<T, ParseError>;

/// Reads a test.
///
/// # Errors
/// Every line that is no directive.
pub fn parse(text: &str) -> Result<Test, Vec<ParseError>> {
    let (mut test, mut errors) = (Test::default(), Vec::new());
    for (number, line) in (1..).zip(lines(text)) {
        let mut scanner = Scanner::new(line, number);
        if scanner.is_empty() {
            continue;
        }
        let parsed = directive(&mut scanner).and_then(|directive| {
            if scanner.is_empty() {
                Ok(directive)
            } else {
                Err(scanner.error("the end of the line"))
            }
        });
        match parsed {
            Ok(directive) => test.lines.push(Line { number, directive }),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(test) } else { Err(errors) }
}

/// The lines of a text, which end with LF, CR LF or CR: a comment must not hide what follows its
/// line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split('\n');
    lines.flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

fn directive(s: &mut Scanner) -> Parsed<Directive> {
    let start = s.mark();
    let keyword = s.word().unwrap_or_default().to_ascii_lowercase();
    match keyword.as_str() {
        "packet" | "receive" => packet(s, keyword == "packet"),
        "expect" => expect(s),
        "no_packet" => Ok(Directive::NoPacket),
        "drain" => Ok(Directive::Drain),
        "wait" => {
            while s.word().is_some() {}
            Ok(Directive::Wait)
        }
        "expect_drop" => Ok(Directive::ExpectDrop {
            reason: name(s, "the reason of a drop")?,
        }),
        "expect_digest" => {
            let name = name(s, "the name of a digest")?;
            let mut fields = Vec::new();
            while !s.is_empty() {
                fields.push(key_value(s)?);
            }
            Ok(Directive::ExpectDigest { name, fields })
        }
        "add" => add(s),
        "setdefault" => Ok(Directive::SetDefault {
            table: name(s, "a table")?,
            action: action(s)?,
        }),
        "modify" => Ok(Directive::Modify {
            table: name(s, "a table")?,
            id: entry_name(s)?,
            action: action(s)?,
        }),
        "delete" => Ok(Directive::Delete {
            table: name(s, "a table")?,
            id: entry_name(s)?,
        }),
        "remove" => match s.word().map(|w| w.to_ascii_lowercase()).as_deref() {
            Some("all") => Ok(Directive::RemoveAll),
            _ => Err(s.error_at(start, "`remove all`")),
        },
        "member" => {
            let profile = name(s, "an action profile")?;
            Ok(Directive::Member {
                profile,
                id: number(s, "a member's number")?,
                action: action(s)?,
            })
        }
        "group" => selector_group(s),
        "value_set" => {
            let name = name(s, "a value set")?;
            Ok(Directive::ValueSet {
                name,
                values: values(s)?,
            })
        }
        "now" => now(s),
        "port" => port_state(s),
        "port_rate" => port_rate(s),
        "port_metadata" => {
            let (port, bytes) = port_and_bytes(s)?;
            Ok(Directive::PortMetadata { port, bytes })
        }
        "deflection" => Ok(Directive::Deflection { port: port(s)? }),
        "queue_capacity" => {
            let port = port(s)?;
            Ok(Directive::QueueCapacity {
                port,
                packets: number(s, "a number of packets")?,
            })
        }
        _ => match resource(s, &keyword)?.map_or_else(|| generator::directive(s, &keyword), |d| Ok(Some(d)))? {
            Some(directive) => Ok(directive),
            None => Err(s.error_at(start, "a directive (`packet`, `expect`, `add`, …)")),
        },
    }
}

/// Most bytes after a packet that may be counted with it.
const MAX_FRAME_CHECK: u64 = 64;

/// Directives about counters, registers, meters and replication.
fn resource(s: &mut Scanner, keyword: &str) -> Parsed<Option<Directive>> {
    Ok(Some(match keyword {
        "check_counter" => check_counter(s)?,
        "counter_read" => {
            let (name, index) = indexed(s, "a counter")?;
            Directive::CheckCounter {
                name,
                index: CounterIndex::Number(index),
                check: counter_check(s)?,
            }
        }
        "counter_write" => {
            let (name, index) = indexed(s, "a counter")?;
            let packets = number(s, "a number of packets")?;
            Directive::CounterWrite {
                name,
                index,
                packets,
                bytes: number(s, "a number of bytes")?,
            }
        }
        "register_read" => {
            let name = name(s, "a register")?;
            let index = cell_index(s)?;
            let check = comparison(s)?.map(|c| Ok((c, values(s)?))).transpose()?;
            Directive::RegisterRead { name, index, check }
        }
        "extern_key" => {
            let (name, index) = indexed(s, "an extern instance")?;
            Directive::ExternKey {
                name,
                index,
                bytes: whole_bytes(s, "a key")?,
            }
        }
        "register_write" => {
            let (name, index) = indexed(s, "a register")?;
            Directive::RegisterWrite {
                name,
                index,
                values: values(s)?,
            }
        }
        "lpf_set" => lpf(s)?,
        "wred_set" => wred(s)?,
        "register_reset" => Directive::RegisterReset {
            name: name(s, "a register")?,
        },
        "meter_get_rates" => {
            let (name, index) = indexed(s, "a meter")?;
            Directive::MeterGetRates { name, index }
        }
        "meter_set_rates" => {
            let (name, index) = indexed(s, "a meter")?;
            Directive::MeterSetRates {
                name,
                index,
                rates: [rate(s)?, rate(s)?],
            }
        }
        "frame_check" => {
            let start = s.mark();
            let bytes: u64 = number(s, "a number of bytes")?;
            if bytes > MAX_FRAME_CHECK {
                return Err(s.error_at(start, format!("at most {MAX_FRAME_CHECK} bytes")));
            }
            Directive::FrameCheck { bytes }
        }
        "set_crc16_parameters" => custom_crc(s, 16)?,
        "set_crc32_parameters" => custom_crc(s, 32)?,
        "meter_array_set_rates" => Directive::MeterArraySetRates {
            name: name(s, "a meter")?,
            rates: [rate(s)?, rate(s)?],
        },
        "mirroring_add" => {
            let session = number(s, "a clone session")?;
            Directive::MirroringAdd {
                session,
                port: port(s)?,
            }
        }
        "mirroring_add_mc" => {
            let session = number(s, "a clone session")?;
            Directive::MirroringAddGroup {
                session,
                group: number(s, "a multicast group")?,
            }
        }
        "mirroring_delete" => Directive::MirroringDelete {
            session: number(s, "a clone session")?,
        },
        "mirroring_get" => Directive::MirroringGet {
            session: number(s, "a clone session")?,
        },
        "mc_mgrp_create" => Directive::GroupCreate {
            group: number(s, "a multicast group")?,
        },
        "mc_node_create" => Directive::NodeCreate {
            rid: number(s, "a replication id")?,
            ports: ports(s)?,
        },
        "mc_node_update" => Directive::NodeUpdate {
            handle: number(s, "a node's handle")?,
            ports: ports(s)?,
        },
        "mc_node_associate" => {
            let group = number(s, "a multicast group")?;
            Directive::NodeAssociate {
                group,
                handle: number(s, "a node's handle")?,
                exclusion: match s.is_empty() {
                    true => None,
                    false => Some(number(s, "a number by which packets exclude the node")?),
                },
            }
        }
        "mc_port_list" => {
            let number = number(s, "a number of a list of ports")?;
            Directive::PortList {
                number,
                ports: ports(s)?,
            }
        }
        _ => return Ok(None),
    }))
}

// ------------------------------------------------------------------------------------ small parts

fn name(s: &mut Scanner, what: &str) -> Parsed<String> {
    s.word().ok_or_else(|| s.error(what))
}

/// A number that fits `T`.
pub(crate) fn number<T: TryFrom<u64>>(s: &mut Scanner, what: &str) -> Parsed<T> {
    let start = s.mark();
    let single = s.word().and_then(|w| Value::parse(&w)).and_then(|v| v.single());
    single
        .and_then(|v| u64::try_from(v).ok())
        .and_then(|v| T::try_from(v).ok())
        .ok_or_else(|| s.error_at(start, what))
}

/// `NAME POLYNOMIAL INITIAL XOR_OUT REFLECT_IN REFLECT_OUT`, as simple_switch_CLI takes them. The
/// name is that of a calculation, `calc` or `calc_N`, or of the algorithm.
fn custom_crc(s: &mut Scanner, width: u32) -> Parsed<Directive> {
    let start = s.mark();
    let algorithm = format!("crc{width}_custom");
    let name = name(s, "a calculation")?;
    let short = name.rsplit('.').next().unwrap_or(&name);
    if short != algorithm && short != "calc" && !short.starts_with("calc_") {
        return Err(s.error_at(
            start,
            format!("`{algorithm}`, or the `calc` or `calc_N` of simple_switch"),
        ));
    }
    let name = short.to_owned();
    let mask = u64::MAX >> (64 - width);
    let mut value = |what: &str| {
        let start = s.mark();
        let value: u64 = number(s, what)?;
        if value > mask {
            return Err(s.error_at(start, format!("{what} of {width} bits")));
        }
        Ok(value)
    };
    let (polynomial, initial) = (value("the polynomial")?, value("the initial value")?);
    let xor_out = value("the final exclusive or")?;
    let parameters = CrcParameters {
        width,
        polynomial,
        initial,
        xor_out,
        reflect_in: truth(s, "whether bytes are reflected")?,
        reflect_out: truth(s, "whether the result is reflected")?,
    };
    Ok(Directive::CustomCrc { name, parameters })
}

/// `true` or `false`, as a word or a number.
fn truth(s: &mut Scanner, what: &str) -> Parsed<bool> {
    let start = s.mark();
    match s.word().map(|w| w.to_ascii_lowercase()).as_deref() {
        Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        _ => Err(s.error_at(start, format!("{what}: `true` or `false`"))),
    }
}

pub(crate) fn port(s: &mut Scanner) -> Parsed<u32> {
    number(s, "a port number")
}

pub(crate) fn ports(s: &mut Scanner) -> Parsed<Vec<u32>> {
    let mut ports = Vec::new();
    while !s.is_empty() {
        ports.push(port(s)?);
    }
    Ok(ports)
}

fn indexed(s: &mut Scanner, what: &str) -> Parsed<(String, u64)> {
    let name = name(s, what)?;
    Ok((name, number(s, "an index")?))
}

fn value(s: &mut Scanner) -> Parsed<Value> {
    let start = s.mark();
    // `->` of a range is cut by the scanner.
    let mut text = s.value_word().unwrap_or_default();
    if text.ends_with('-') && s.eat('>') {
        text.push('>');
        text.push_str(&s.value_word().unwrap_or_default());
    }
    Value::parse(&text).ok_or_else(|| {
        s.error_at(
            start,
            "a value (decimal, 0x…, 0b…, an IPv4 or MAC address, with `*` for any digit)",
        )
    })
}

/// One or more, to the end of the line.
fn values(s: &mut Scanner) -> Parsed<Vec<Value>> {
    let mut values = vec![value(s)?];
    while !s.is_empty() {
        values.push(value(s)?);
    }
    Ok(values)
}

fn key_value(s: &mut Scanner) -> Parsed<KeyValue> {
    let name = name(s, "a key")?;
    if !s.eat(':') {
        return Err(s.error("`:` and a value"));
    }
    Ok(KeyValue { name, value: value(s)? })
}

pub(crate) fn comparison(s: &mut Scanner) -> Parsed<Option<Comparison>> {
    let start = s.mark();
    Ok(Some(match s.sign().as_deref() {
        None => return Ok(None),
        Some("==" | "=") => Comparison::Equal,
        Some("!=") => Comparison::NotEqual,
        Some("<") => Comparison::Less,
        Some("<=") => Comparison::LessOrEqual,
        Some(">") => Comparison::Greater,
        Some(">=") => Comparison::GreaterOrEqual,
        Some(_) => return Err(s.error_at(start, "`==`, `!=`, `<`, `<=`, `>` or `>=`")),
    }))
}

// --------------------------------------------------------------------------------------- packets

/// Hexadecimal digits up to the end, `$` or `|`.
fn digits(s: &mut Scanner, stars: bool) -> Parsed<(String, bool)> {
    let (mut all, mut exact) = (String::new(), false);
    loop {
        let start = s.mark();
        let Some(mut word) = s.word() else { break };
        if exact {
            return Err(s.error_at(start, "nothing after `$`"));
        }
        if let Some(rest) = word.strip_suffix('$').filter(|_| stars) {
            exact = true;
            word = rest.to_owned();
        }
        let word = word.strip_prefix("0x").unwrap_or(&word).to_ascii_lowercase();
        if !word.chars().all(|c| c.is_ascii_hexdigit() || (stars && c == '*')) {
            let what = if stars {
                "hexadecimal digits, `*` or `$`"
            } else {
                "hexadecimal digits"
            };
            return Err(s.error_at(start, what));
        }
        all.push_str(&word);
    }
    Ok((all, exact))
}

/// A port, and bytes.
pub(crate) fn port_and_bytes(s: &mut Scanner) -> Parsed<(u32, Vec<u8>)> {
    let port = port(s)?;
    Ok((port, whole_bytes(s, "a packet")?))
}

/// Hexadecimal digits of whole bytes; none are no bytes.
fn whole_bytes(s: &mut Scanner, what: &str) -> Parsed<Vec<u8>> {
    let start = s.mark();
    let (digits, _) = digits(s, false)?;
    if digits.len() % 2 == 1 {
        let expected = format!("an even number of digits: {what} is made of whole bytes");
        return Err(s.error_at(start, &expected));
    }
    let nibble = |c: u8| (c as char).to_digit(16).unwrap_or(0) as u8;
    let pairs = digits.as_bytes().chunks_exact(2);
    Ok(pairs.map(|c| (nibble(c[0]) << 4) | nibble(c[1])).collect())
}

fn packet(s: &mut Scanner, drained: bool) -> Parsed<Directive> {
    let (port, bytes) = port_and_bytes(s)?;
    Ok(if drained {
        Directive::Packet { port, bytes }
    } else {
        Directive::Receive { port, bytes }
    })
}

fn expect(s: &mut Scanner) -> Parsed<Directive> {
    let mut alternatives = Vec::new();
    loop {
        let start = s.mark();
        let dropped = s.word().is_some_and(|w| w.eq_ignore_ascii_case("drop"));
        if dropped {
            alternatives.push(Alternative::Drop);
        } else {
            s.reset(start);
            let port = port(s)?;
            let (digits, exact) = digits(s, true)?;
            if digits.is_empty() && !exact && !alternatives.is_empty() {
                return Err(s.error_at(start, "`PORT HEX…` or `drop` after `|`"));
            }
            let pattern = (!digits.is_empty() || exact).then_some(Pattern { digits, exact });
            alternatives.push(Alternative::Packet(port, pattern));
        }
        if !s.eat('|') {
            return Ok(Directive::Expect(alternatives));
        }
    }
}

// ---------------------------------------------------------------------------------------- tables

fn arguments(s: &mut Scanner) -> Parsed<Vec<Argument>> {
    let mut arguments = Vec::new();
    if !s.eat('(') {
        return Ok(arguments);
    }
    while !s.eat(')') {
        let start = s.mark();
        // The colons of a MAC address end no name.
        let is_value = s.at_mac();
        let word = s.word().unwrap_or_default();
        if !is_value && s.eat(':') {
            arguments.push(Argument {
                name: Some(word),
                value: value(s)?,
            });
        } else {
            s.reset(start);
            arguments.push(Argument {
                name: None,
                value: value(s)?,
            });
        }
        if !s.eat(',') && s.peek() != Some(')') {
            return Err(s.error("`,` or `)`"));
        }
    }
    Ok(arguments)
}

fn action(s: &mut Scanner) -> Parsed<ActionUse> {
    let name = name(s, "an action")?;
    Ok(ActionUse {
        name,
        arguments: arguments(s)?,
    })
}

/// What an entry is called in a test.
fn entry_name(s: &mut Scanner) -> Parsed<String> {
    Ok(name(s, "a name of an entry")?.trim_start_matches('$').to_owned())
}

fn add(s: &mut Scanner) -> Parsed<Directive> {
    let table = name(s, "a table")?;
    let mut priority = None;
    let mut keys = Vec::new();
    let action = loop {
        let start = s.mark();
        let word = match validity_key(s) {
            Some(key) => key,
            None => name(s, "a key or an action")?,
        };
        if s.eat(':') {
            keys.push(KeyValue {
                name: word,
                value: value(s)?,
            });
        } else if keys.is_empty() && priority.is_none() && word.starts_with(|c: char| c.is_ascii_digit()) {
            s.reset(start);
            priority = Some(number(s, "a priority that fits in 32 bits")?);
        } else {
            break ActionUse {
                name: word,
                arguments: arguments(s)?,
            };
        }
    };
    let id = if s.eat('=') { Some(entry_name(s)?) } else { None };
    Ok(Directive::Add {
        table,
        priority,
        keys,
        action,
        id,
    })
}

/// `valid(HEADER)` before a colon: the key that says whether a header is valid.
fn validity_key(s: &mut Scanner) -> Option<String> {
    let start = s.mark();
    let is_valid = s.word().is_some_and(|w| w.eq_ignore_ascii_case("valid")) && s.eat('(');
    let header = if is_valid { s.word() } else { None };
    match header {
        Some(header) if s.eat(')') && s.peek() == Some(':') => Some(format!("{header}.$valid$")),
        _ => {
            s.reset(start);
            None
        }
    }
}

fn selector_group(s: &mut Scanner) -> Parsed<Directive> {
    let profile = name(s, "an action selector")?;
    let id = number(s, "a group's number")?;
    let mut members = Vec::new();
    while !s.is_empty() {
        let member = number(s, "a member's number")?;
        let weight = if s.eat(':') { number(s, "a weight")? } else { 1 };
        members.push((member, weight));
    }
    Ok(Directive::SelectorGroup { profile, id, members })
}

// ------------------------------------------------------------------------------- counters, meters

fn counter_check(s: &mut Scanner) -> Parsed<Option<(Quantity, Comparison, u64)>> {
    let start = s.mark();
    let quantity = match s.word().map(|w| w.to_ascii_lowercase()).as_deref() {
        Some("bytes") => Some(Quantity::Bytes),
        Some("packets") => Some(Quantity::Packets),
        _ => {
            s.reset(start);
            None
        }
    };
    match (comparison(s)?, quantity) {
        (Some(comparison), quantity) => {
            let number = number(s, "a number")?;
            Ok(Some((quantity.unwrap_or(Quantity::Packets), comparison, number)))
        }
        (None, Some(_)) => Err(s.error("a comparison, like `== 3`")),
        (None, None) => Ok(None),
    }
}

/// `INDEX` or `$ID`
fn cell_index(s: &mut Scanner) -> Parsed<CounterIndex> {
    let start = s.mark();
    let word = s.word().unwrap_or_default();
    Ok(match word.strip_prefix('$') {
        Some(id) => CounterIndex::Entry(id.to_owned()),
        None => {
            s.reset(start);
            CounterIndex::Number(number(s, "an index or $ID")?)
        }
    })
}

fn lpf(s: &mut Scanner) -> Parsed<Directive> {
    let name = name(s, "a low-pass filter")?;
    let index = cell_index(s)?;
    let start = s.mark();
    let kind = match s.word().map(|w| w.to_ascii_lowercase()).as_deref() {
        Some("sample") => LpfKind::Sample,
        Some("rate") => LpfKind::Rate,
        _ => return Err(s.error_at(start, "`sample` or `rate`")),
    };
    let gain_ns = number(s, "the time constant of its rise in ns")?;
    let decay_ns = number(s, "the time constant of its fall in ns")?;
    let scale_down = number(s, "how many bits are cut from the result")?;
    let config = LpfConfig {
        kind,
        gain_ns,
        decay_ns,
        scale_down,
    };
    Ok(Directive::Lpf { name, index, config })
}

fn wred(s: &mut Scanner) -> Parsed<Directive> {
    let name = name(s, "an early random drop")?;
    let index = cell_index(s)?;
    let time_constant_ns = number(s, "the time constant of its filter in ns")?;
    let (min, max) = (number(s, "the least value")?, number(s, "the greatest value")?);
    let max_probability = number(s, "how many of 10000 are dropped at most")?;
    let config = WredConfig {
        time_constant_ns,
        min,
        max,
        max_probability,
    };
    Ok(Directive::Wred { name, index, config })
}

fn check_counter(s: &mut Scanner) -> Parsed<Directive> {
    let name = name(s, "a counter")?;
    let mut index = CounterIndex::Number(0);
    if s.eat('(') {
        index = cell_index(s)?;
        if !s.eat(')') {
            return Err(s.error("`)`"));
        }
    }
    Ok(Directive::CheckCounter {
        name,
        index,
        check: counter_check(s)?,
    })
}

fn rate(s: &mut Scanner) -> Parsed<Rate> {
    let start = s.mark();
    let rate = s
        .word()
        .and_then(|w| w.parse::<f64>().ok())
        .filter(|r| r.is_finite() && *r >= 0.0);
    match rate {
        Some(rate) if s.eat(':') => Ok(Rate {
            rate,
            burst: number(s, "a burst size")?,
        }),
        _ => Err(s.error_at(start, "RATE:BURST, the rate in tokens per µs")),
    }
}

fn now(s: &mut Scanner) -> Parsed<Directive> {
    let start = s.mark();
    let word = s.word().unwrap_or_default();
    let text = word.strip_prefix('+').unwrap_or("");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit {
        "ns" => Some(1),
        "us" | "µs" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    };
    let amount = digits.parse::<u64>().ok();
    amount
        .zip(factor)
        .and_then(|(a, f)| a.checked_mul(f))
        .map(|by_ns| Directive::Now { by_ns })
        .ok_or_else(|| s.error_at(start, "a time like `+1ms` (ns, us, ms, s)"))
}

fn port_state(s: &mut Scanner) -> Parsed<Directive> {
    let port = port(s)?;
    let start = s.mark();
    match s.word().map(|w| w.to_ascii_lowercase()).as_deref() {
        Some("up") => Ok(Directive::Port { port, up: true }),
        Some("down") => Ok(Directive::Port { port, up: false }),
        Some("loopback") => Ok(Directive::Loopback { port }),
        _ => Err(s.error_at(start, "`up`, `down` or `loopback`")),
    }
}

fn port_rate(s: &mut Scanner) -> Parsed<Directive> {
    let port = port(s)?;
    let start = s.mark();
    let unit = match s.word().map(|w| w.to_ascii_lowercase()).as_deref() {
        Some("pps") => RateUnit::Packets,
        Some("bps") => RateUnit::Bits,
        _ => return Err(s.error_at(start, "`pps` or `bps`")),
    };
    Ok(Directive::PortRate {
        port,
        unit,
        rate: number(s, "a rate")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::ast::Directive;
    use crate::value::Value;

    #[test]
    fn mac_addresses_may_have_colons_in_keys_masks_and_arguments() {
        let text = "add t a:00:11:22:33:44:55 b:00:11:22:33:44:00&&&ff:ff:ff:ff:ff:00 \
                    c:02:00:00:00:00:00..02:00:00:00:00:ff send(00:00:00:00:01:00, x:00:00:00:00:00:01)";
        let test = super::parse(text).expect("a test");
        let Directive::Add { keys, action, .. } = &test.lines[0].directive else {
            panic!("{:?}", test.lines[0]);
        };
        let values: Vec<&Value> = keys.iter().map(|k| &k.value).collect();
        assert_eq!(values[0].single(), Some(0x0011_2233_4455_u64.into()));
        assert_eq!(
            *values[1],
            Value::parse("0x001122334400&&&0xffffffffff00").expect("a value")
        );
        assert_eq!(
            *values[2],
            Value::parse("0x020000000000..0x0200000000ff").expect("a value")
        );
        let arguments: Vec<Option<u64>> = action
            .arguments
            .iter()
            .map(|a| a.value.single().and_then(|n| n.try_into().ok()))
            .collect();
        assert_eq!(arguments, [Some(0x100), Some(1)]);
        assert_eq!(action.arguments[0].name, None);
        assert_eq!(action.arguments[1].name.as_deref(), Some("x"));
        let errors = super::parse("add t a:00:11:22:33:44 send()").expect_err("five bytes");
        assert_eq!(errors.len(), 1, "{errors:?}");
    }

    #[test]
    fn a_carriage_return_ends_a_line_and_a_comment() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["# a comment", "wait", "", "wait # another", "drain"].join(end);
            let test = super::parse(&text).expect("a test");
            let numbers: Vec<u32> = test.lines.iter().map(|line| line.number).collect();
            assert_eq!(numbers, [2, 4, 5], "{end:?}");
        }
    }
}
