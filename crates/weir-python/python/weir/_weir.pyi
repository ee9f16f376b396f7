"""The native part of the package: plain values and JSON texts. Use the classes of :mod:`weir`."""

from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

_Callback = Callable[[Any, Any], None]
_Match = Any
_Action = Tuple[str, int, List[int]]
_Rates = Tuple[int, int, int, int]
_Sent = List[Tuple[int, bytes]]

def compile(
    name: str,
    text: Optional[bytes],
    include: Sequence[str],
    define: Sequence[Tuple[str, Optional[str]]],
    architecture: Optional[str],
) -> Tuple[Optional[Program], List[Tuple[str, str]], int]:
    """Compiles a text, or the file ``name``: the program, each diagnostic as JSON and as text, and the
    number of diagnostics that were left out."""

def load(name: str) -> Program:
    """Loads a saved program."""

def connect(
    gate: Gate,
    callback: _Callback,
    protocol: str,
    address: str,
    *,
    device_id: Optional[int],
    role: str,
    election_id: int,
    client_id: int,
    program: Optional[str],
    observer: bool,
    deadline: float,
    connect_timeout: float,
    reconnect: Optional[float],
    tls: Optional[Tuple[bytes, Optional[str], Optional[Tuple[bytes, bytes]]]],
) -> Task:
    """Connects to a target; the callback gets a :class:`Client`."""

class Gate:
    """Whether calls may come back to Python."""

    def close(self) -> None:
        """Waits for those that are under way; there are none after that."""

class Task:
    """A call that is under way."""

    def cancel(self) -> None:
        """Ends it without a result."""

class Program:
    """A program that was compiled or loaded."""

    @property
    def name(self) -> str:
        """The file."""

    @property
    def architecture(self) -> str:
        """The architecture."""

    def describe(self) -> str:
        """Tables, actions, externs and headers of the controller, as JSON."""

    def p4info(self) -> str:
        """P4Info as text."""

    def p4info_bytes(self) -> bytes:
        """P4Info as a protobuf message."""

    def bfrt_json(self) -> str:
        """The description of BF Runtime."""

    def ir(self) -> str:
        """The intermediate representation."""

    def svg(self, title: str, notes: Sequence[Tuple[str, str]], footer: Sequence[str]) -> str:
        """The pipeline as SVG."""

    def dot(self) -> str:
        """The pipeline as DOT."""

class Switch:
    """A switch in process. Tables are called by their places in the program."""

    def __new__(cls, program: Program, compiled: bool) -> Switch:
        """A switch that runs a program."""

    @property
    def interpreted(self) -> List[str]:
        """Why packets are interpreted."""

    def check_port(self, port: int) -> None:
        """Raises an error unless the architecture has a port of this number."""

    def configure(self, text: str, name: str) -> None:
        """Executes a text of entries."""

    def send(self, port: int, data: Any, at: Optional[int]) -> _Sent:
        """Runs one packet."""

    def send_many(self, packets: Iterable[Tuple[int, Any]], at: Optional[int]) -> List[_Sent]:
        """Runs many packets."""

    def receive(self, port: int, data: Any, at: Optional[int]) -> None:
        """Takes a packet in, up to the queues."""

    def advance(self, to: int) -> List[Tuple[int, bytes, int]]:
        """Gives what leaves until a time."""

    def now(self) -> int:
        """The clock in ns."""

    def trace(self, port: int, data: Any, at: Optional[int]) -> Tuple[_Sent, str, str]:
        """What a packet meets: what leaves, the tree as JSON, the text."""

    def insert(self, table: int, given: Sequence[Tuple[Sequence[_Match], int, _Action, int]]) -> List[int]:
        """Inserts entries, all or none."""

    def find(self, table: int, keys: Sequence[_Match], priority: int) -> Optional[int]:
        """The handle of an entry."""

    def modify(self, table: int, handle: int, action: _Action) -> None:
        """Gives an entry another action."""

    def delete(self, table: int, handle: int) -> None:
        """Deletes an entry."""

    def clear(self, table: int) -> None:
        """Deletes all entries that are not const."""

    def set_default(self, table: int, action: Optional[Tuple[int, List[int]]]) -> None:
        """Sets the default action."""

    def default_action(self, table: int) -> _Action:
        """The default action."""

    def entries(self, table: int) -> List[Tuple[int, List[_Match], int, _Action, bool, int]]:
        """Entries: handle, keys, priority, action, whether const, idle time-out."""

    def table_counts(self, table: int) -> Tuple[int, int, int]:
        """Entries, hits and misses."""

    def idle_entries(self) -> List[Tuple[int, int]]:
        """Tables and handles of idle entries."""

    def counter(self, name: str, index: int) -> Tuple[int, int]:
        """Packets and bytes."""

    def set_counter(self, name: str, index: Optional[int], packets: int, bytes: int) -> None:
        """Sets a counter."""

    def meter(self, name: str, index: int) -> Optional[_Rates]:
        """Rates of a meter."""

    def set_meter(self, name: str, index: Optional[int], rates: Optional[_Rates]) -> None:
        """Sets rates of a meter."""

    def register(self, name: str, index: int) -> List[int]:
        """A cell of a register."""

    def set_register(self, name: str, index: Optional[int], values: Sequence[int]) -> None:
        """Sets a cell of a register."""

    def set_group(self, group: int, replicas: Optional[Sequence[Tuple[int, int]]]) -> None:
        """Sets a multicast group."""

    def group(self, group: int) -> Optional[List[Tuple[int, int]]]:
        """A multicast group."""

    def set_session(
        self, session: int, replicas: Optional[Sequence[Tuple[int, int]]], group: Optional[int], truncate: int
    ) -> None:
        """Sets a clone session."""

    def digests(self) -> List[Tuple[str, List[Tuple[str, int]], int]]:
        """Takes digests."""

    def messages(self) -> List[Tuple[str, int]]:
        """Takes log messages."""

    def set_port(self, port: int, up: bool) -> None:
        """A port comes up or goes down."""

    def is_up(self, port: int) -> bool:
        """Whether a port is up."""

    def ports(self) -> List[Tuple[int, Tuple[int, int], Tuple[int, int], bool]]:
        """Ports with their counts."""

    def drops(self) -> List[Tuple[str, Optional[str], int]]:
        """Drops by reason and place."""

class Client:
    """A client of one target. Each call has a callback for its value or its exception."""

    def schema(self) -> str:
        """The description of the target's program, as JSON."""

    def standing(self) -> Tuple[str, str]:
        """The standing with the target."""

    def primary(self, callback: _Callback) -> Task:
        """Waits until this client controls the target."""

    def refresh(self, callback: _Callback) -> Task:
        """Reads the description again."""

    def write(self, callback: _Callback, updates: Sequence[Tuple[str, str]], atomicity: str) -> Task:
        """Writes updates in one request."""

    def load(
        self, callback: _Callback, entries: Sequence[str], operation: str, batch_size: int, in_flight: int
    ) -> Task:
        """Writes many entries."""

    def resync(self, callback: _Callback, table: str, entries: Sequence[str]) -> Task:
        """Makes a table hold these entries."""

    def read(self, callback: _Callback, table: str, like: Optional[str], default: bool) -> Task:
        """Reads a table."""

    def clear(self, callback: _Callback, table: str) -> Task:
        """Empties a table."""

    def operation(self, callback: _Callback, table: str, name: str) -> Task:
        """An operation on a table."""

    def set_p4runtime_program(
        self, callback: _Callback, p4info: bytes, device_config: bytes, cookie: Optional[int], action: str
    ) -> Task:
        """Loads a program by P4Runtime."""

    def set_bfrt_program(
        self,
        callback: _Callback,
        program: str,
        bfrt_json: bytes,
        profiles: Sequence[Tuple[str, bytes, bytes]],
        action: str,
    ) -> Task:
        """Loads a program by BF Runtime."""

    def packet_out(self, callback: _Callback, payload: bytes, fields: Sequence[Tuple[str, bytes]]) -> Task:
        """Sends a packet from the controller."""

    def packets(self, capacity: int, wait: bool) -> Subscription:
        """Packets for the controller."""

    def idle_entries(self, callback: _Callback, table: Optional[str], capacity: int, wait: bool) -> Task:
        """Idle entries; the callback gets a :class:`Subscription`."""

    def port_changes(self, callback: _Callback, capacity: int, wait: bool) -> Task:
        """Ports that go up or down; the callback gets a :class:`Subscription`."""

    def digests(
        self, callback: _Callback, name: str, max_delay: float, max_list: int, capacity: int, wait: bool
    ) -> Task:
        """Digests of one kind; the callback gets a :class:`Subscription`."""

    def close(self, callback: _Callback) -> Task:
        """Ends the stream."""

class Subscription:
    """Events of one kind."""

    def wait(self, callback: _Callback) -> Task:
        """Waits until there is an event."""

    def take(self) -> Any:
        """Takes the next event, if there is one."""

    def lost(self) -> int:
        """Events that were lost."""
