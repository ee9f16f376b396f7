// Made by `weir build --emit rust`: changes are lost when it is made again.

// Without a type, to be written by name: I.profile_table, I.selector_table, I.name_table.

/// An entry of `I.exact_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExactTable {
    /// What it matches.
    pub key: ExactTableKey,
    /// What it does.
    pub action: ExactTableAction,
}

/// The key of `I.exact_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExactTableKey {
    /// `key`: exact.
    pub key: u32,
}

impl weir_client::typed::TableKey for ExactTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <u32 as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(ExactTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.exact_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExactTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.send`
    Send {
        /// `port`
        port: weir_client::typed::Bits<9>,
    },
    /// `I.miss`
    Miss,
    /// `I.only_default`
    OnlyDefault,
}

impl weir_client::typed::TableAction for ExactTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.send", &[("port", 9)]),
        ("I.miss", &[]),
        ("I.only_default", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            ExactTableAction::Answer { .. } => 0,
            ExactTableAction::Send { .. } => 1,
            ExactTableAction::Miss => 2,
            ExactTableAction::OnlyDefault => 3,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            ExactTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            ExactTableAction::Send { port } => {
                out.extend([weir_client::typed::Number::to_number(*port)]);
            }
            ExactTableAction::Miss => {}
            ExactTableAction::OnlyDefault => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(ExactTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, [a0]) => Some(ExactTableAction::Send { port: weir_client::typed::Number::from_number(*a0)? }),
            (2, []) => Some(ExactTableAction::Miss),
            (3, []) => Some(ExactTableAction::OnlyDefault),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for ExactTable {
    const NAME: &'static str = "I.exact_table";
    const HAS_PRIORITY: bool = false;
    type Key = ExactTableKey;
    type Action = ExactTableAction;
    fn key(&self) -> &ExactTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &ExactTableAction {
        &self.action
    }
    fn new(key: ExactTableKey, _: u32, action: ExactTableAction) -> Self {
        ExactTable { key, action }
    }
}

/// An entry of `I.lpm_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LpmTable {
    /// What it matches.
    pub key: LpmTableKey,
    /// What it does.
    pub action: LpmTableAction,
}

/// The key of `I.lpm_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LpmTableKey {
    /// `key`: lpm.
    pub key: weir_client::typed::Prefix<u32>,
}

impl weir_client::typed::TableKey for LpmTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <weir_client::typed::Prefix<u32> as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(LpmTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.lpm_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LpmTableAction {
    /// `I.metered`
    Metered {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for LpmTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.metered", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            LpmTableAction::Metered { .. } => 0,
            LpmTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            LpmTableAction::Metered { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            LpmTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(LpmTableAction::Metered { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(LpmTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for LpmTable {
    const NAME: &'static str = "I.lpm_table";
    const HAS_PRIORITY: bool = false;
    type Key = LpmTableKey;
    type Action = LpmTableAction;
    fn key(&self) -> &LpmTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &LpmTableAction {
        &self.action
    }
    fn new(key: LpmTableKey, _: u32, action: LpmTableAction) -> Self {
        LpmTable { key, action }
    }
}

/// An entry of `I.ternary_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TernaryTable {
    /// What it matches.
    pub key: TernaryTableKey,
    /// Which of several entries that match wins.
    pub priority: u32,
    /// What it does.
    pub action: TernaryTableAction,
}

/// The key of `I.ternary_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TernaryTableKey {
    /// `key`: ternary.
    pub key: weir_client::typed::Masked<u32>,
    /// `hash`: exact.
    pub hash: u8,
}

impl weir_client::typed::TableKey for TernaryTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <weir_client::typed::Masked<u32> as weir_client::typed::Key>::SHAPE),
        ("hash", <u8 as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
            && weir_client::typed::Key::numbers(&self.hash, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key), weir_client::typed::Key::to_match(&self.hash)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0, k1] = keys else {
            return None;
        };
        Some(TernaryTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
            hash: weir_client::typed::Key::from_match(k1)?,
        })
    }
}

/// What an entry of `I.ternary_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TernaryTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for TernaryTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            TernaryTableAction::Answer { .. } => 0,
            TernaryTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            TernaryTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            TernaryTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(TernaryTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(TernaryTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for TernaryTable {
    const NAME: &'static str = "I.ternary_table";
    const HAS_PRIORITY: bool = true;
    type Key = TernaryTableKey;
    type Action = TernaryTableAction;
    fn key(&self) -> &TernaryTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        self.priority
    }
    fn action(&self) -> &TernaryTableAction {
        &self.action
    }
    fn new(key: TernaryTableKey, priority: u32, action: TernaryTableAction) -> Self {
        TernaryTable { key, priority, action }
    }
}

/// An entry of `I.range_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RangeTable {
    /// What it matches.
    pub key: RangeTableKey,
    /// Which of several entries that match wins.
    pub priority: u32,
    /// What it does.
    pub action: RangeTableAction,
}

/// The key of `I.range_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RangeTableKey {
    /// `key`: range.
    pub key: weir_client::typed::Range<u32>,
}

impl weir_client::typed::TableKey for RangeTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <weir_client::typed::Range<u32> as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(RangeTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.range_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RangeTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for RangeTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            RangeTableAction::Answer { .. } => 0,
            RangeTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            RangeTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            RangeTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(RangeTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(RangeTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for RangeTable {
    const NAME: &'static str = "I.range_table";
    const HAS_PRIORITY: bool = true;
    type Key = RangeTableKey;
    type Action = RangeTableAction;
    fn key(&self) -> &RangeTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        self.priority
    }
    fn action(&self) -> &RangeTableAction {
        &self.action
    }
    fn new(key: RangeTableKey, priority: u32, action: RangeTableAction) -> Self {
        RangeTable { key, priority, action }
    }
}

/// An entry of `I.optional_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OptionalTable {
    /// What it matches.
    pub key: OptionalTableKey,
    /// Which of several entries that match wins.
    pub priority: u32,
    /// What it does.
    pub action: OptionalTableAction,
}

/// The key of `I.optional_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OptionalTableKey {
    /// `key`: optional.
    pub key: Option<u32>,
    /// `hash`: optional.
    pub hash: Option<u8>,
}

impl weir_client::typed::TableKey for OptionalTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <Option<u32> as weir_client::typed::Key>::SHAPE),
        ("hash", <Option<u8> as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
            && weir_client::typed::Key::numbers(&self.hash, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key), weir_client::typed::Key::to_match(&self.hash)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0, k1] = keys else {
            return None;
        };
        Some(OptionalTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
            hash: weir_client::typed::Key::from_match(k1)?,
        })
    }
}

/// What an entry of `I.optional_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionalTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for OptionalTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            OptionalTableAction::Answer { .. } => 0,
            OptionalTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            OptionalTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            OptionalTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(OptionalTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(OptionalTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for OptionalTable {
    const NAME: &'static str = "I.optional_table";
    const HAS_PRIORITY: bool = true;
    type Key = OptionalTableKey;
    type Action = OptionalTableAction;
    fn key(&self) -> &OptionalTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        self.priority
    }
    fn action(&self) -> &OptionalTableAction {
        &self.action
    }
    fn new(key: OptionalTableKey, priority: u32, action: OptionalTableAction) -> Self {
        OptionalTable { key, priority, action }
    }
}

/// An entry of `I.idle_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdleTable {
    /// What it matches.
    pub key: IdleTableKey,
    /// What it does.
    pub action: IdleTableAction,
}

/// The key of `I.idle_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdleTableKey {
    /// `key`: exact.
    pub key: u32,
}

impl weir_client::typed::TableKey for IdleTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <u32 as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(IdleTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.idle_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdleTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for IdleTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            IdleTableAction::Answer { .. } => 0,
            IdleTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            IdleTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            IdleTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(IdleTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(IdleTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for IdleTable {
    const NAME: &'static str = "I.idle_table";
    const HAS_PRIORITY: bool = false;
    type Key = IdleTableKey;
    type Action = IdleTableAction;
    fn key(&self) -> &IdleTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &IdleTableAction {
        &self.action
    }
    fn new(key: IdleTableKey, _: u32, action: IdleTableAction) -> Self {
        IdleTable { key, action }
    }
}

/// An entry of `I.const_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConstTable {
    /// What it matches.
    pub key: ConstTableKey,
    /// What it does.
    pub action: ConstTableAction,
}

/// The key of `I.const_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConstTableKey {
    /// `key`: exact.
    pub key: u32,
}

impl weir_client::typed::TableKey for ConstTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <u32 as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(ConstTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.const_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for ConstTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            ConstTableAction::Answer { .. } => 0,
            ConstTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            ConstTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            ConstTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(ConstTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(ConstTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for ConstTable {
    const NAME: &'static str = "I.const_table";
    const HAS_PRIORITY: bool = false;
    type Key = ConstTableKey;
    type Action = ConstTableAction;
    fn key(&self) -> &ConstTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &ConstTableAction {
        &self.action
    }
    fn new(key: ConstTableKey, _: u32, action: ConstTableAction) -> Self {
        ConstTable { key, action }
    }
}

/// An entry of `I.initial_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InitialTable {
    /// What it matches.
    pub key: InitialTableKey,
    /// What it does.
    pub action: InitialTableAction,
}

/// The key of `I.initial_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InitialTableKey {
    /// `key`: exact.
    pub key: u32,
}

impl weir_client::typed::TableKey for InitialTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("key", <u32 as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.key, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.key)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(InitialTableKey {
            key: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.initial_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InitialTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for InitialTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            InitialTableAction::Answer { .. } => 0,
            InitialTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            InitialTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            InitialTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(InitialTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(InitialTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for InitialTable {
    const NAME: &'static str = "I.initial_table";
    const HAS_PRIORITY: bool = false;
    type Key = InitialTableKey;
    type Action = InitialTableAction;
    fn key(&self) -> &InitialTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &InitialTableAction {
        &self.action
    }
    fn new(key: InitialTableKey, _: u32, action: InitialTableAction) -> Self {
        InitialTable { key, action }
    }
}

/// An entry of `I.keyless_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeylessTable {
    /// What it matches.
    pub key: KeylessTableKey,
    /// What it does.
    pub action: KeylessTableAction,
}

/// The key of `I.keyless_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeylessTableKey {
}

impl weir_client::typed::TableKey for KeylessTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
    ];
    fn numbers(&self, _: &mut Vec<u128>) -> bool {
        true
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [] = keys else {
            return None;
        };
        Some(KeylessTableKey {
        })
    }
}

/// What an entry of `I.keyless_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeylessTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for KeylessTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            KeylessTableAction::Answer { .. } => 0,
            KeylessTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            KeylessTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            KeylessTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(KeylessTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(KeylessTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for KeylessTable {
    const NAME: &'static str = "I.keyless_table";
    const HAS_PRIORITY: bool = false;
    type Key = KeylessTableKey;
    type Action = KeylessTableAction;
    fn key(&self) -> &KeylessTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &KeylessTableAction {
        &self.action
    }
    fn new(key: KeylessTableKey, _: u32, action: KeylessTableAction) -> Self {
        KeylessTable { key, action }
    }
}

/// An entry of `I.wide_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WideTable {
    /// What it matches.
    pub key: WideTableKey,
    /// What it does.
    pub action: WideTableAction,
}

/// The key of `I.wide_table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WideTableKey {
    /// `wide`: exact.
    pub wide: u32,
}

impl weir_client::typed::TableKey for WideTableKey {
    const KEYS: &'static [(&'static str, (u32, &'static str))] = &[
        ("wide", <u32 as weir_client::typed::Key>::SHAPE),
    ];
    fn numbers(&self, out: &mut Vec<u128>) -> bool {
        weir_client::typed::Key::numbers(&self.wide, out)
    }
    fn to_matches(&self) -> Vec<weir_client::Match> {
        vec![weir_client::typed::Key::to_match(&self.wide)]
    }
    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {
        let [k0] = keys else {
            return None;
        };
        Some(WideTableKey {
            wide: weir_client::typed::Key::from_match(k0)?,
        })
    }
}

/// What an entry of `I.wide_table` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WideTableAction {
    /// `I.answer`
    Answer {
        /// `value`
        value: u32,
    },
    /// `I.miss`
    Miss,
}

impl weir_client::typed::TableAction for WideTableAction {
    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &[
        ("I.answer", &[("value", 32)]),
        ("I.miss", &[]),
    ];
    fn place(&self) -> usize {
        match self {
            WideTableAction::Answer { .. } => 0,
            WideTableAction::Miss => 1,
        }
    }
    fn numbers(&self, out: &mut Vec<u128>) {
        match self {
            WideTableAction::Answer { value } => {
                out.extend([weir_client::typed::Number::to_number(*value)]);
            }
            WideTableAction::Miss => {}
        }
    }
    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {
        match (place, arguments) {
            (0, [a0]) => Some(WideTableAction::Answer { value: weir_client::typed::Number::from_number(*a0)? }),
            (1, []) => Some(WideTableAction::Miss),
            _ => None,
        }
    }
}

impl weir_client::typed::TableEntry for WideTable {
    const NAME: &'static str = "I.wide_table";
    const HAS_PRIORITY: bool = false;
    type Key = WideTableKey;
    type Action = WideTableAction;
    fn key(&self) -> &WideTableKey {
        &self.key
    }
    fn priority(&self) -> u32 {
        0
    }
    fn action(&self) -> &WideTableAction {
        &self.action
    }
    fn new(key: WideTableKey, _: u32, action: WideTableAction) -> Self {
        WideTable { key, action }
    }
}

/// A value of the register `I.words`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Words {
    /// `value`
    pub value: u32,
}

impl weir_client::typed::Record for Words {
    const NAME: &'static str = "I.words";
    const FIELDS: &'static [weir_client::typed::Shape] = &[("value", 32)];
    fn from_numbers(numbers: &[u128]) -> Option<Self> {
        let [n0] = numbers else {
            return None;
        };
        Some(Words { value: weir_client::typed::Number::from_number(*n0)? })
    }
    fn numbers(&self) -> Vec<u128> {
        vec![weir_client::typed::Number::to_number(self.value)]
    }
}

/// A value of the register `I.cells`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cells {
    /// `a`
    pub a: weir_client::typed::Bits<12>,
    /// `b`
    pub b: u8,
}

impl weir_client::typed::Record for Cells {
    const NAME: &'static str = "I.cells";
    const FIELDS: &'static [weir_client::typed::Shape] = &[("a", 12), ("b", 8)];
    fn from_numbers(numbers: &[u128]) -> Option<Self> {
        let [n0, n1] = numbers else {
            return None;
        };
        Some(Cells { a: weir_client::typed::Number::from_number(*n0)?, b: weir_client::typed::Number::from_number(*n1)? })
    }
    fn numbers(&self) -> Vec<u128> {
        vec![weir_client::typed::Number::to_number(self.a), weir_client::typed::Number::to_number(self.b)]
    }
}

/// A value of the register `I.bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bits {
    /// `value`
    pub value: weir_client::typed::Bits<1>,
}

impl weir_client::typed::Record for Bits {
    const NAME: &'static str = "I.bits";
    const FIELDS: &'static [weir_client::typed::Shape] = &[("value", 1)];
    fn from_numbers(numbers: &[u128]) -> Option<Self> {
        let [n0] = numbers else {
            return None;
        };
        Some(Bits { value: weir_client::typed::Number::from_number(*n0)? })
    }
    fn numbers(&self) -> Vec<u128> {
        vec![weir_client::typed::Number::to_number(self.value)]
    }
}

/// An element of the digest `seen_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeenT {
    /// `key`
    pub key: u32,
    /// `port`
    pub port: weir_client::typed::Bits<9>,
}

impl weir_client::typed::Record for SeenT {
    const NAME: &'static str = "seen_t";
    const FIELDS: &'static [weir_client::typed::Shape] = &[("key", 32), ("port", 9)];
    fn from_numbers(numbers: &[u128]) -> Option<Self> {
        let [n0, n1] = numbers else {
            return None;
        };
        Some(SeenT { key: weir_client::typed::Number::from_number(*n0)?, port: weir_client::typed::Number::from_number(*n1)? })
    }
    fn numbers(&self) -> Vec<u128> {
        vec![weir_client::typed::Number::to_number(self.key), weir_client::typed::Number::to_number(self.port)]
    }
}

