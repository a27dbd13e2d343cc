//! Expressions from tokens, with the precedence of C.

use super::super::limits::DEPTH_MAX;
use super::lexer::Token;
use super::number::Number;
use super::registers::Register;
use super::{Binary, Expression, Unary};

/// Operators with two operands, by precedence from the weakest.
const LEVELS: [&[(&str, Binary)]; 10] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("|", Binary::BitOr)],
    &[("^", Binary::BitXor)],
    &[("&", Binary::BitAnd)],
    &[("==", Binary::Equal), ("!=", Binary::Unequal)],
    &[
        ("<", Binary::Less),
        ("<=", Binary::LessOrEqual),
        (">", Binary::Greater),
        (">=", Binary::GreaterOrEqual),
    ],
    &[("<<", Binary::Left), (">>", Binary::Right)],
    &[("+", Binary::Plus), ("-", Binary::Minus)],
    &[("*", Binary::Times), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

/// Reader of tokens.
#[derive(Debug, Clone, Copy)]
pub struct Parser<'t> {
    tokens: &'t [Token],
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Returns a reader of these tokens.
    #[must_use]
    pub fn new(tokens: &'t [Token]) -> Parser<'t> {
        Parser { tokens, depth: 0 }
    }

    /// Returns the tokens that are left.
    #[must_use]
    pub fn rest(&self) -> &'t [Token] {
        self.tokens
    }

    /// Returns the next token.
    #[must_use]
    pub fn peek(&self) -> Option<&'t Token> {
        self.tokens.first()
    }

    /// Takes the next token.
    pub fn take(&mut self) -> Option<&'t Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Takes the next token if it is this sign.
    pub fn takes(&mut self, sign: &str) -> bool {
        let is_there = matches!(self.peek(), Some(Token::Sign(there)) if *there == sign);
        if is_there {
            self.take();
        }
        is_there
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(&format!("\"{sign}\""))) }
    }

    /// Returns the words for a token that cannot stand here.
    #[must_use]
    pub fn unexpected(&self, wanted: &str) -> String {
        match self.peek() {
            Some(token) => format!("{wanted} is missing before \"{token}\""),
            None => format!("{wanted} is missing at the end"),
        }
    }

    /// Reads an expression.
    ///
    /// # Errors
    /// Returns what is wrong with it, in words.
    pub fn expression(&mut self) -> Result<Expression, String> {
        self.level(0)
    }

    /// Counts a nested part. The parts around this one have been counted.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("an expression has over {DEPTH_MAX} nested parts"));
        }
        self.depth += 1;
        let part = part(self);
        self.depth -= 1;
        part
    }

    fn level(&mut self, n: usize) -> Result<Expression, String> {
        let Some(signs) = LEVELS.get(n) else { return self.deeper(Parser::prefixed) };
        let mut left = self.level(n + 1)?;
        // Evaluation goes down to the first operand of a chain, so the chain's length counts as depth.
        let mut operators = 0;
        while let Some((_, operator)) =
            signs.iter().find(|(sign, _)| matches!(self.peek(), Some(Token::Sign(there)) if there == sign))
        {
            self.take();
            operators += 1;
            if operators > DEPTH_MAX {
                return Err(format!("an expression has over {DEPTH_MAX} operators in a row"));
            }
            left = Expression::Binary(*operator, left.into(), self.level(n + 1)?.into());
        }
        Ok(left)
    }

    fn prefixed(&mut self) -> Result<Expression, String> {
        let unary = [
            ("-", Unary::Minus),
            ("~", Unary::Invert),
            ("!", Unary::Not),
            ("*", Unary::At),
            ("&", Unary::AddressOf),
        ];
        for (sign, operator) in unary {
            if self.takes(sign) {
                return Ok(Expression::Unary(operator, self.deeper(Parser::prefixed)?.into()));
            }
        }
        if let [Token::Sign("("), Token::Name(name), rest @ ..] = self.tokens
            && let Some(number) = Number::named(name)
        {
            self.tokens = rest;
            let is_pointer = self.takes("*");
            self.expect(")")?;
            let inner = self.deeper(Parser::prefixed)?.into();
            return Ok(match is_pointer {
                true => Expression::PointerCast(number, inner),
                false => Expression::Cast(number, inner),
            });
        }
        self.postfixed()
    }

    fn postfixed(&mut self) -> Result<Expression, String> {
        let mut left = self.primary()?;
        for _ in 0..DEPTH_MAX {
            if self.takes(".") || self.takes("->") {
                let Some(Token::Name(name)) = self.peek() else {
                    return Err(self.unexpected("the name of a member"));
                };
                self.take();
                left = Expression::Member(left.into(), name.clone());
            } else if self.takes("[") {
                let index = self.deeper(Parser::expression)?;
                self.expect("]")?;
                left = Expression::Index(left.into(), index.into());
            } else {
                return Ok(left);
            }
        }
        Err(format!("an expression has over {DEPTH_MAX} nested parts"))
    }

    fn primary(&mut self) -> Result<Expression, String> {
        match self.peek() {
            Some(Token::Integer(number)) => {
                self.take();
                Ok(Expression::Integer(*number))
            }
            Some(Token::Register(name)) => {
                let register =
                    Register::named(name).ok_or_else(|| format!("no register is named ${name}"))?;
                self.take();
                Ok(Expression::Register(register))
            }
            Some(Token::Name(name)) => {
                self.take();
                if name == "str" && self.takes("(") {
                    let inner = self.deeper(Parser::expression)?;
                    self.expect(")")?;
                    return Ok(Expression::Text(inner.into()));
                }
                Ok(Expression::Name(name.clone()))
            }
            Some(Token::Sign("(")) => {
                self.take();
                let inner = self.deeper(Parser::expression)?;
                self.expect(")")?;
                Ok(inner)
            }
            _ => Err(self.unexpected("a value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lexer::tokens;
    use super::*;

    fn parse(text: &str) -> Result<Expression, String> {
        let tokens = tokens(text)?;
        let mut parser = Parser::new(&tokens);
        let expression = parser.expression()?;
        parser.peek().map_or(Ok(expression), |token| Err(format!("{token} is too much")))
    }

    #[test]
    fn operators_have_the_precedence_of_c() {
        for (one, other) in [
            ("1 + 2 * 3 == 7 && x", "((1 + (2 * 3)) == 7) && x"),
            ("a & 1 == b", "a & (1 == b)"),
            ("a - b - c", "(a - b) - c"),
            ("-a->b[1].c", "-(((a->b)[1]).c)"),
            ("*(u32 *)$rdi + 4", "(*((u32 *)($rdi))) + 4"),
            ("1 << 2 < 3 | 4 ^ 5", "((1 << 2) < 3) | (4 ^ 5)"),
        ] {
            assert_eq!(parse(one), parse(other), "{one}");
            assert!(parse(one).is_ok());
        }
    }

    #[test]
    fn errors_name_what_is_missing() {
        for (text, error) in [
            ("1 +", "a value is missing at the end"),
            ("(1", "\")\" is missing at the end"),
            ("$rdx2", "no register is named $rdx2"),
            ("a.1", "the name of a member is missing before \"1\""),
            ("0xfffffffffffffffff", "0xfffffffffffffffff is not a number of up to 64 bits"),
            ("a ? b", "\"?\" has no meaning in an expression"),
            ("\"a", "a text does not end with a double quote"),
        ] {
            assert_eq!(parse(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for part in ["(", "-", "*", "(u8)", "a[", "1+(", "str("] {
            assert!(parse(&part.repeat(10_000)).is_err(), "{part}");
        }
        assert!(parse(&("1".to_owned() + &"+1".repeat(10_000))).is_err());
        assert!(parse(&("a".to_owned() + &".b".repeat(10_000))).is_err());
        assert!(parse(&format!("{}1{}", "(".repeat(30), ")".repeat(30))).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_row_of_tokens_panics(words in proptest::collection::vec("[-+*&|^~!()\\[\\].,<>=/%]|--if|\\$rax|0x1f|a|str|u8|\"x\"", 0..60)) {
            let _ = parse(&words.concat());
        }
    }
}
