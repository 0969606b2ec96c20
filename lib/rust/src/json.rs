//! JSON values: as much as the arguments of events need, named as in serde_json.
use std::collections::BTreeMap;
use std::fmt;

/// The members of an object, sorted by key, as in serde_json without `preserve_order`.
#[derive(Debug, Clone, PartialEq)]
pub struct Map<K, V> {
    members: BTreeMap<K, V>,
}

impl Map<String, Value> {
    /// An empty one
    pub fn new() -> Self {
        Map {
            members: BTreeMap::new(),
        }
    }

    /// Returns the value that the key had before.
    pub fn insert(&mut self, key: String, value: Value) -> Option<Value> {
        self.members.insert(key, value)
    }

    /// The value of a key
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.members.remove(key)
    }

    /// Is the key there?
    pub fn contains_key(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// How many members there are
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The keys, sorted
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.members.keys()
    }

    /// The members, sorted by key
    pub fn iter(&self) -> std::collections::btree_map::Iter<'_, String, Value> {
        self.members.iter()
    }
}

impl Default for Map<String, Value> {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<(String, Value)> for Map<String, Value> {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Map {
            members: members.into_iter().collect(),
        }
    }
}

impl IntoIterator for Map<String, Value> {
    type Item = (String, Value);
    type IntoIter = std::collections::btree_map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map<String, Value> {
    type Item = (&'a String, &'a Value);
    type IntoIter = std::collections::btree_map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.iter()
    }
}

/// A JSON value. Its `Display` is JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number without a sign
    Unsigned(u64),
    /// A number below 0
    Negative(i64),
    /// A number with a fraction or an exponent; always finite
    Float(f64),
    /// A text
    String(String),
    /// An array
    Array(Vec<Value>),
    /// An object
    Object(Map<String, Value>),
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Value::Bool(v)
    }
}

macro_rules! from_integers {
    ($($t:ty)*) => {$(
        impl From<$t> for Value {
            fn from(v: $t) -> Self {
                match u64::try_from(v) {
                    Ok(v) => Value::Unsigned(v),
                    Err(_) => Value::Negative(v as i64),
                }
            }
        }
    )*};
}
from_integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl From<f64> for Value {
    /// NaN and infinities are null, as in serde_json.
    fn from(v: f64) -> Self {
        if v.is_finite() {
            Value::Float(v)
        } else {
            Value::Null
        }
    }
}

impl From<f32> for Value {
    fn from(v: f32) -> Self {
        Value::from(f64::from(v))
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Value::String(v.to_owned())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Value::String(v)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(v: Vec<T>) -> Self {
        Value::Array(v.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}

impl From<Map<String, Value>> for Value {
    fn from(v: Map<String, Value>) -> Self {
        Value::Object(v)
    }
}

/// Appends the text with its quotes.
pub(crate) fn quote(to: &mut impl fmt::Write, text: &str) -> fmt::Result {
    to.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => to.write_str("\\\"")?,
            '\\' => to.write_str("\\\\")?,
            '\n' => to.write_str("\\n")?,
            c if (c as u32) < 0x20 => write!(to, "\\u{:04x}", c as u32)?,
            c => to.write_char(c)?,
        }
    }
    to.write_char('"')
}

/// Appends `{"key":value,…}`.
pub(crate) fn object<K: AsRef<str>, V: fmt::Display>(
    to: &mut impl fmt::Write,
    members: impl IntoIterator<Item = (K, V)>,
) -> fmt::Result {
    to.write_char('{')?;
    for (i, (key, value)) in members.into_iter().enumerate() {
        if i > 0 {
            to.write_char(',')?;
        }
        quote(to, key.as_ref())?;
        write!(to, ":{value}")?;
    }
    to.write_char('}')
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Unsigned(v) => write!(f, "{v}"),
            Value::Negative(v) => write!(f, "{v}"),
            Value::Float(v) if v.is_finite() => write!(f, "{v:?}"),
            Value::Float(_) => f.write_str("null"),
            Value::String(v) => quote(f, v),
            Value::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Object(members) => object(f, members),
        }
    }
}

/// Why a text is not JSON, or not what was expected, and at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    what: String,
    at: usize,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, at: usize) -> Self {
        Error {
            what: what.into(),
            at,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for Error {}

const DEPTH_MAX: usize = 128; // as in serde_json

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::new(what, self.at))
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.peek() != Some(byte) {
            return self.fail(&format!("expected {:?}", byte as char));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if depth == DEPTH_MAX {
            return self.fail("nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("expected a value"),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("expected a value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value, Error> {
        let mut members = Map::new();
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            if !members.is_empty() {
                self.expect(b',')?;
                self.peek();
            }
            let key = self.string()?;
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            if members.insert(key, value).is_some() {
                return self.fail("a key twice");
            }
        }
        self.expect(b'}')?;
        Ok(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        self.expect(b'[')?;
        while self.peek() != Some(b']') {
            if !items.is_empty() {
                self.expect(b',')?;
            }
            items.push(self.value(depth + 1)?);
        }
        self.expect(b']')?;
        Ok(Value::Array(items))
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|d| u32::from_str_radix(d, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.fail("expected four hexadecimal digits"),
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let byte = self.text.as_bytes().get(self.at).copied();
        self.at += 1;
        Ok(match byte {
            Some(c @ (b'"' | b'\\' | b'/')) => c as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut code = self.hex4()?;
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let low = self.hex4()?;
                    code = 0x10000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                }
                char::from_u32(code).ok_or_else(|| Error::new("half a character", self.at))?
            }
            _ => return self.fail("unknown escape"),
        })
    }

    fn string(&mut self) -> Result<String, Error> {
        let mut out = String::new();
        self.expect(b'"')?;
        loop {
            let rest = &self.text[self.at..];
            let c = match rest.chars().next() {
                Some(c) => c,
                None => return self.fail("a text without an end"),
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c if (c as u32) < 0x20 => return self.fail("a control character"),
                c => out.push(c),
            }
        }
    }

    fn number(&mut self) -> Result<Value, Error> {
        let rest = &self.text[self.at..];
        let len = rest
            .find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        let word = &rest[..len];
        let digits = word.strip_prefix('-').unwrap_or(word);
        let is_odd =
            (digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit())
                || !digits.starts_with(|c: char| c.is_ascii_digit())
                || digits.ends_with('.')
                || digits.contains(".e");
        if is_odd {
            return self.fail("not a number");
        }
        let whole = digits.bytes().all(|b| b.is_ascii_digit());
        let value = match (whole, word.starts_with('-')) {
            (true, false) => word.parse().ok().map(Value::Unsigned),
            (true, true) => word.parse().ok().map(Value::Negative),
            _ => None,
        };
        let value = value.or_else(|| {
            word.parse()
                .ok()
                .filter(|v: &f64| v.is_finite())
                .map(Value::Float)
        });
        match value {
            Some(value) => {
                self.at += len;
                Ok(value)
            }
            None => self.fail("not a number"),
        }
    }
}

impl std::str::FromStr for Value {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => reader.fail("more after the value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip() {
        let text = r#"{"a":[1,-2,1.5,1e300,true,false,null,"x\"\\\n\u0001ü"],"b":{},"c":[],"big":18446744073709551615}"#;
        let value: Value = text.parse().unwrap();
        assert_eq!(value.to_string().parse::<Value>().unwrap(), value);
        assert_eq!(r#""\ud83d\ude00\/""#.parse(), Ok(Value::from("😀/")));
        assert_eq!(Value::from(f64::NAN), Value::Null);
        assert_eq!(Value::from(vec![Some(1), None]).to_string(), "[1,null]");
        assert_eq!(Value::from(-7i8), Value::Negative(-7));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let deep = "[".repeat(1000);
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "[1 2]",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e999",
            "NaN",
            "\"\n\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "{\"a\":1,\"a\":2}",
            "1 1",
            "tru",
            &deep,
        ] {
            assert!(text.parse::<Value>().is_err(), "{text:.20}");
        }
    }
}
