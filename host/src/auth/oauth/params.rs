//! The parameters of a request, as forms and query strings carry them.

use super::error::{ErrorCode, OAuthError};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use url::form_urlencoded;

/// Parameters by name. None stands twice, and one without a value is as one that is missing (RFC 6749, section 3.1).
#[derive(Clone, Default)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// Reads `application/x-www-form-urlencoded`.
    ///
    /// # Errors
    /// When a parameter stands twice: two readers could each heed another one.
    pub fn parse(encoded: &[u8]) -> Result<Self, OAuthError> {
        let mut params = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(encoded) {
            match params.entry(name.into_owned()) {
                Entry::Vacant(place) => place.insert(value.into_owned()),
                Entry::Occupied(_) => {
                    return Err(OAuthError::new(ErrorCode::InvalidRequest, "a parameter stands twice"));
                }
            };
        }
        params.retain(|_, value| !value.is_empty());
        Ok(Self(params))
    }

    /// The value of a parameter that may be missing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a parameter that may not.
    ///
    /// # Errors
    /// When it is missing.
    pub fn need(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::new(ErrorCode::InvalidRequest, format!("{name} is missing")))
    }
}

/// Values may be secrets.
impl fmt::Debug for Params {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_stands_twice_and_an_empty_one_is_missing() {
        let params = Params::parse(b"a=1&b=&c=%26+x").unwrap();
        assert_eq!((params.get("a"), params.get("b"), params.get("c")), (Some("1"), None, Some("& x")));
        assert_eq!(params.need("b").unwrap_err().code, ErrorCode::InvalidRequest);
        for twice in ["a=1&a=1", "a=&a=1", "a&a", "a=1&b=2&%61=3"] {
            assert_eq!(Params::parse(twice.as_bytes()).unwrap_err().code, ErrorCode::InvalidRequest, "{twice}");
        }
        assert!(!format!("{params:?}").contains('1'), "values may be secrets");
    }
}
