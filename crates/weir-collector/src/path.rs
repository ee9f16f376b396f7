//! Ports, links and paths by their names on the wire.

use std::fmt;
use weir_int::Hop;

/// A port of a node. What a report does not say is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortKey {
    /// Node id.
    pub node: Option<u32>,
    /// Port number: that of level 1, else of level 2.
    pub port: Option<u32>,
}

/// A link between two nodes, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey {
    /// Where packets leave.
    pub from: PortKey,
    /// Where they arrive.
    pub to: PortKey,
}

/// What a path has of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathHop {
    /// Node id.
    pub node: Option<u32>,
    /// Port of arrival.
    pub ingress: Option<u32>,
    /// Port of departure.
    pub egress: Option<u32>,
}

impl PathHop {
    /// The identity of a hop.
    #[must_use]
    pub fn of(hop: &Hop) -> Self {
        PathHop {
            node: hop.node_id,
            ingress: hop.ingress_port.map(u32::from).or(hop.l2_ingress_port),
            egress: hop.egress_port.map(u32::from).or(hop.l2_egress_port),
        }
    }

    /// The port of departure.
    #[must_use]
    pub fn egress_port(&self) -> PortKey {
        PortKey {
            node: self.node,
            port: self.egress,
        }
    }

    /// The port of arrival.
    #[must_use]
    pub fn ingress_port(&self) -> PortKey {
        PortKey {
            node: self.node,
            port: self.ingress,
        }
    }
}

/// Hops from the source to the sink.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Box<[PathHop]>);

impl Path {
    /// The links between the hops.
    pub fn links(&self) -> impl Iterator<Item = LinkKey> + '_ {
        self.0.windows(2).map(|pair| LinkKey {
            from: pair[0].egress_port(),
            to: pair[1].ingress_port(),
        })
    }
}

/// A number, or a question mark for what is not known.
struct Known(Option<u32>);

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("?"),
        }
    }
}

impl fmt::Display for PortKey {
    /// `node:port`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Known(self.node), Known(self.port))
    }
}

impl fmt::Display for LinkKey {
    /// `node:port -> node:port`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

impl fmt::Display for PathHop {
    /// `node(ingress>egress)`; without ports `node`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Known(self.node))?;
        if self.ingress.is_none() && self.egress.is_none() {
            return Ok(());
        }
        write!(f, "({}>{})", Known(self.ingress), Known(self.egress))
    }
}

impl fmt::Display for Path {
    /// Hops with spaces between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, hop) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{hop}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Path, PathHop};

    #[test]
    fn paths_are_shown_by_node_and_ports() {
        let hop = |node, ingress, egress| PathHop { node, ingress, egress };
        let path = Path([hop(Some(1), Some(2), None), hop(None, None, None)].into());
        assert_eq!(path.to_string(), "1(2>?) ?");
        let links: Vec<String> = path.links().map(|link| link.to_string()).collect();
        assert_eq!(links, ["1:? -> ?:?"]);
    }
}
