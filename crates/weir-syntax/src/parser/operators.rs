//! Operators and their precedence.

use super::Parser;
use crate::ast::{BinaryOp, UnaryOp};
use crate::token::Tok;

impl Parser<'_> {
    /// Whether the second of two tokens at the cursor follows the first without a space.
    fn adjoins(&self, second: Tok) -> bool {
        self.nth(1) == second && self.tokens.get(self.pos + 1).is_some_and(|t| !t.has_space())
    }

    /// The binary operator at the cursor: itself, its precedence, how many tokens it is.
    pub(super) fn binary_operator(&self) -> Option<(BinaryOp, u8, usize)> {
        let single = |op, precedence| Some((op, precedence, 1));
        match self.tok() {
            Tok::OrOr => single(BinaryOp::Or, 1),
            Tok::AndAnd => single(BinaryOp::And, 2),
            Tok::Assign if self.in_condition => single(BinaryOp::Eq, 3),
            Tok::EqEq => single(BinaryOp::Eq, 3),
            Tok::NotEq => single(BinaryOp::Ne, 3),
            Tok::Lt => single(BinaryOp::Lt, 4),
            Tok::Le => single(BinaryOp::Le, 4),
            Tok::Gt | Tok::Ge if self.angle_closes => None,
            Tok::Gt if self.adjoins(Tok::Gt) => Some((BinaryOp::Shr, 8, 2)),
            // `>>=` assigns.
            Tok::Gt if self.adjoins(Tok::Ge) => None,
            Tok::Gt => single(BinaryOp::Gt, 4),
            Tok::Ge => single(BinaryOp::Ge, 4),
            Tok::Or => single(BinaryOp::BitOr, 5),
            Tok::Caret => single(BinaryOp::BitXor, 6),
            Tok::And => single(BinaryOp::BitAnd, 7),
            Tok::Shl => single(BinaryOp::Shl, 8),
            Tok::Plus => single(BinaryOp::Add, 9),
            Tok::Minus => single(BinaryOp::Sub, 9),
            Tok::PlusPlus => single(BinaryOp::Concat, 9),
            Tok::AddSat => single(BinaryOp::AddSat, 9),
            Tok::SubSat => single(BinaryOp::SubSat, 9),
            Tok::Star => single(BinaryOp::Mul, 10),
            Tok::Slash => single(BinaryOp::Div, 10),
            Tok::Percent => single(BinaryOp::Mod, 10),
            _ => None,
        }
    }

    /// The prefix operator at the cursor.
    pub(super) fn unary_operator(&self) -> Option<UnaryOp> {
        match self.tok() {
            Tok::Minus => Some(UnaryOp::Negate),
            Tok::Plus => Some(UnaryOp::Plus),
            Tok::Tilde => Some(UnaryOp::Complement),
            Tok::Bang => Some(UnaryOp::Not),
            _ => None,
        }
    }

    /// The assignment at the cursor: its operator and how many tokens it is.
    pub(super) fn assignment_operator(&self) -> Option<(Option<BinaryOp>, usize)> {
        let compound = |op| Some((Some(op), 1));
        match self.tok() {
            Tok::Assign => Some((None, 1)),
            Tok::PlusAssign => compound(BinaryOp::Add),
            Tok::MinusAssign => compound(BinaryOp::Sub),
            Tok::StarAssign => compound(BinaryOp::Mul),
            Tok::SlashAssign => compound(BinaryOp::Div),
            Tok::PercentAssign => compound(BinaryOp::Mod),
            Tok::AndAssign => compound(BinaryOp::BitAnd),
            Tok::OrAssign => compound(BinaryOp::BitOr),
            Tok::CaretAssign => compound(BinaryOp::BitXor),
            Tok::ShlAssign => compound(BinaryOp::Shl),
            Tok::Gt if self.adjoins(Tok::Ge) => Some((Some(BinaryOp::Shr), 2)),
            Tok::AddSatAssign => compound(BinaryOp::AddSat),
            Tok::SubSatAssign => compound(BinaryOp::SubSat),
            _ => None,
        }
    }
}
