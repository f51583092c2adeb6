//! Reads settings: a JSON object of numbers, texts and booleans. The host writes it, so what counts is to say clearly which
//! setting is wrong, and where.

use crate::bindings::exports::headcount::policy::policy::Problem;

/// What a setting is set to.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// True or false.
    Flag(bool),
    /// A list, an object or null.
    Other,
}

/// The settings and their values, in the order in which they are written. The empty string is no settings.
///
/// # Errors
/// A problem where `json` is no JSON object.
pub fn settings(json: &str) -> Result<Vec<(String, Value)>, Problem> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Reader { rest: json };
    let read = reader.object().filter(|_| reader.rest.trim_ascii_start().is_empty());
    read.ok_or_else(|| Problem { path: String::new(), message: "must be a JSON object".into() })
}

/// A problem with a setting; its place is given as a JSON pointer.
pub fn problem(setting: &str, message: &str) -> Problem {
    Problem { path: format!("/{}", setting.replace('~', "~0").replace('/', "~1")), message: message.into() }
}

/// All problems in one line.
pub fn one_line(problems: &[Problem]) -> String {
    let each: Vec<_> = problems.iter().map(|Problem { path, message }| format!("{path}: {message}")).collect();
    each.join("; ")
}

/// What of the text is not read yet. `None` of its functions: this is no JSON.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn object(&mut self) -> Option<Vec<(String, Value)>> {
        self.list('{', '}', |reader| {
            let name = reader.text()?;
            reader.next(':').then_some(())?;
            Some((name, reader.value()?))
        })
    }

    /// Items between two brackets, with commas between them.
    fn list<T>(&mut self, open: char, close: char, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.next(open).then_some(())?;
        let mut items = Vec::new();
        if self.next(close) {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.next(close) {
                return Some(items);
            }
            self.next(',').then_some(())?;
        }
    }

    fn value(&mut self) -> Option<Value> {
        match self.rest.trim_ascii_start().chars().next()? {
            '"' => self.text().map(Value::Text),
            '{' => self.object().map(|_| Value::Other),
            '[' => self.list('[', ']', Self::value).map(|_| Value::Other),
            _ => self.word(),
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<Value> {
        let rest = self.rest.trim_ascii_start();
        let end = rest.find(|char: char| !(char.is_ascii_alphanumeric() || "+-.".contains(char))).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        match word {
            "true" => Some(Value::Flag(true)),
            "false" => Some(Value::Flag(false)),
            "null" => Some(Value::Other),
            _ if word.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                word.parse().ok().map(Value::Number)
            }
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        self.next('"').then_some(())?;
        let mut text = String::new();
        loop {
            let char = self.char()?;
            match char {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                '\0'..' ' => return None,
                _ => text.push(char),
            }
        }
    }

    /// What stands behind a backslash.
    fn escaped(&mut self) -> Option<char> {
        Some(match self.char()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let mut units = vec![self.unit()?];
                // The first half of a pair that makes one character.
                if (0xd800..0xdc00).contains(&units[0]) {
                    self.rest = self.rest.strip_prefix("\\u")?;
                    units.push(self.unit()?);
                }
                return char::decode_utf16(units).next()?.ok();
            }
            char @ ('"' | '\\' | '/') => char,
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u16> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    }

    fn char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let char = chars.next()?;
        self.rest = chars.as_str();
        Some(char)
    }

    /// Whether `char` comes next; it is then read.
    fn next(&mut self, char: char) -> bool {
        let rest = self.rest.trim_ascii_start().strip_prefix(char);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}
