//! Tokens and the interner that holds their texts.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::source::Span;

/// An interned text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sym(pub u32);

/// White space or a comment stands before the token.
pub(crate) const SPACE: u8 = 1;
/// The name of a macro that must never be expanded again ("painted blue").
pub(crate) const NO_EXPAND: u8 = 2;

/// A token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub tok: Tok,
    pub flags: u8,
    /// The text of names, integers, strings (with quotes) and unknown characters.
    pub sym: Sym,
    pub span: Span,
}

impl Token {
    pub(crate) fn has_space(self) -> bool {
        self.flags & SPACE != 0
    }

    /// The text as it could stand in a source.
    pub(crate) fn text(self, interner: &Interner) -> &str {
        match self.tok.fixed_text() {
            Some(text) => text,
            None => interner.text(self.sym),
        }
    }
}

macro_rules! tokens {
    ($($variable:ident,)* ; $($punctuation:ident = $text:literal,)* ; $($keyword:ident = $word:literal,)*) => {
        /// Kinds of tokens.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum Tok { $($variable,)* $($punctuation,)* $($keyword,)* }

        /// Keywords; the interner numbers their texts in this order.
        pub(crate) const KEYWORDS: &[(Tok, &str)] = &[$((Tok::$keyword, $word),)*];

        impl Tok {
            /// The text of punctuation and keywords.
            pub(crate) fn fixed_text(self) -> Option<&'static str> {
                match self {
                    $(Tok::$variable => None,)*
                    $(Tok::$punctuation => Some($text),)*
                    $(Tok::$keyword => Some($word),)*
                }
            }
        }
    };
}

tokens! {
    Ident, Int, Str, Unknown, UnterminatedString, UnterminatedComment, Error, Newline, PragmaEnd, Eof,
    ;
    LParen = "(", RParen = ")", LBracket = "[", RBracket = "]", LBrace = "{", RBrace = "}",
    InvalidHeader = "{#}", Semi = ";", Colon = ":", Comma = ",", Dot = ".", DotDot = "..",
    Ellipsis = "...", At = "@", Question = "?", Hash = "#", HashHash = "##",
    Assign = "=", EqEq = "==", Bang = "!", NotEq = "!=", Tilde = "~",
    Lt = "<", Le = "<=", Gt = ">", Ge = ">=", Shl = "<<", ShlAssign = "<<=",
    Plus = "+", PlusPlus = "++", PlusAssign = "+=", PlusColon = "+:",
    Minus = "-", MinusAssign = "-=", Star = "*", StarAssign = "*=", Slash = "/", SlashAssign = "/=",
    Percent = "%", PercentAssign = "%=",
    And = "&", AndAnd = "&&", MaskOp = "&&&", AndAssign = "&=",
    Or = "|", OrOr = "||", OrAssign = "|=", AddSat = "|+|", AddSatAssign = "|+|=",
    SubSat = "|-|", SubSatAssign = "|-|=", Caret = "^", CaretAssign = "^=",
    ;
    Underscore = "_", Abstract = "abstract", Action = "action", Actions = "actions", Apply = "apply",
    Bit = "bit", Bool = "bool", Break = "break", Const = "const", Continue = "continue",
    Control = "control", Default = "default", Else = "else", Entries = "entries", Enum = "enum",
    ErrorKw = "error", Exit = "exit", Extern = "extern", False = "false", For = "for",
    Header = "header", HeaderUnion = "header_union", If = "if", In = "in", InOut = "inout",
    IntKw = "int", Key = "key", List = "list", MatchKind = "match_kind", Out = "out",
    Package = "package", Parser = "parser", Priority = "priority", Return = "return",
    Select = "select", State = "state", StringKw = "string", Struct = "struct", Switch = "switch",
    Table = "table", This = "this", Transition = "transition", True = "true", Tuple = "tuple",
    Type = "type", Typedef = "typedef", ValueSet = "value_set", Varbit = "varbit", Void = "void",
}

impl Tok {
    /// Names, and keywords that are names wherever the grammar does not want the keyword.
    pub(crate) fn is_name(self) -> bool {
        matches!(
            self,
            Tok::Ident
                | Tok::Apply
                | Tok::Key
                | Tok::Actions
                | Tok::State
                | Tok::Entries
                | Tok::Type
                | Tok::Priority
                | Tok::List
        )
    }

    /// Keywords, contextual ones included.
    pub(crate) fn is_keyword(self) -> bool {
        self as u8 >= Tok::Underscore as u8
    }
}

/// Gives each distinct text a number.
#[derive(Debug)]
pub(crate) struct Interner {
    texts: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, Sym>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        let mut interner = Interner {
            texts: Vec::new(),
            numbers: FxHashMap::default(),
        };
        for (_, word) in KEYWORDS {
            interner.intern(word);
        }
        interner
    }

    pub(crate) fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.numbers.get(text) {
            return sym;
        }
        let sym = Sym(self.texts.len() as u32);
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, sym);
        sym
    }

    /// The number of a text that was interned before.
    pub(crate) fn find(&self, text: &str) -> Option<Sym> {
        self.numbers.get(text).copied()
    }

    pub(crate) fn text(&self, sym: Sym) -> &str {
        &self.texts[sym.0 as usize]
    }

    pub(crate) fn name(&self, sym: Sym) -> Arc<str> {
        self.texts[sym.0 as usize].clone()
    }

    /// The keyword a name is, if any.
    pub(crate) fn keyword(sym: Sym) -> Option<Tok> {
        KEYWORDS.get(sym.0 as usize).map(|&(tok, _)| tok)
    }
}
