//! The packet generators of a switch: control planes configure them, [`Switch::advance`] has them
//! send.

use crate::switch::{Context, Switch};
use weir_arch::{Application, Generated, GeneratorError, Generators, IngressPacket};
use weir_interp::PacketTag;
use weir_jit::VECTOR;

impl Switch {
    /// The packet generators, where the program's architecture has such.
    #[must_use]
    pub fn generators(&self) -> Option<&Generators> {
        self.state.generators.as_deref()
    }

    /// The packet generators, to be changed. [`Switch::configure_generator`] is for applications,
    /// whose timers begin now.
    ///
    /// # Errors
    /// There are none.
    pub fn generators_mut(&mut self) -> Result<&mut Generators, GeneratorError> {
        self.state.generators.as_deref_mut().ok_or(GeneratorError::None)
    }

    /// Gives the generator of a pipe an application in place of what it had at this number.
    ///
    /// # Errors
    /// As [`Generators::configure`], and if there are no generators.
    pub fn configure_generator(&mut self, pipe: u32, app: u32, what: Application) -> Result<(), GeneratorError> {
        let now_ns = self.now_ns;
        self.generators_mut()?.configure(pipe, app, what, now_ns)
    }

    /// How many packets one [`Switch::advance`] generates at most; those that are due wait for the
    /// next. 0: none. In the beginning there is no limit.
    pub fn limit_generation(&mut self, packets: usize) {
        self.generation_limit = packets;
    }

    /// When a packet is to be generated, in ns.
    #[inline]
    pub(crate) fn next_generated(&self) -> Option<u64> {
        self.state.generators.as_ref()?.next_ns()
    }

    /// Generates the packets that are due first, if any is by then, `limit` of them at most, and
    /// runs them up to the queues.
    /// What of them leaves at once goes to `out`. Gives how many, or 1 where nothing is due.
    pub(crate) fn generate(
        &mut self,
        now_ns: u64,
        limit: usize,
        out: &mut Vec<crate::Output>,
        context: &mut Context<'_>,
    ) -> usize {
        let is_fast = !context.tracer.enabled() && self.is_fast();
        let Some(generators) = self.state.generators.as_mut() else {
            return 1;
        };
        if is_fast {
            let many = if generators.has_packet_triggers() {
                1
            } else {
                limit.min(VECTOR)
            };
            let made: Vec<Generated> = std::iter::from_fn(|| generators.due(now_ns)).take(many).collect();
            let count = made.len();
            self.run_made(made, out);
            return count.max(1);
        }
        let Some(packet) = generators.due(now_ns) else {
            return 1;
        };
        self.now_ns = self.now_ns.max(packet.time_ns);
        let (port, bytes) = (packet.port, packet.bytes);
        self.allow_work();
        self.stats.received(port, bytes.len());
        let tag = if context.tracer.enabled() {
            let what = format!("generated packet of {} bytes on port {port}", bytes.len());
            context.tracer.begin_packet(PacketTag::NONE, &what)
        } else {
            PacketTag::NONE
        };
        self.add_waiting(IngressPacket {
            is_generated: true,
            ..IngressPacket::received(port, bytes, tag)
        });
        self.run_ingress(context);
        1
    }
}
