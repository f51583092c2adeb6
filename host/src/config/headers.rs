//! Headers that an upstream server is sent: which may stand in the configuration, and which are secrets that stand elsewhere.

use super::upstreams::Upstream;
use http::{HeaderName, HeaderValue};

/// Headers that the transport itself sees to.
const OWN_HEADERS: [&str; 7] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id", "mcp-method", "mcp-name"];

/// Headers that hold secrets, which do not belong into a file that is shown, copied and committed.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// The name of a header that may be set.
///
/// # Errors
/// In words, when it may not.
pub fn header_name(name: &str) -> Result<HeaderName, String> {
    let name: HeaderName = name.parse().map_err(|_| "is no name of a header")?;
    match OWN_HEADERS.contains(&name.as_str()) {
        true => Err("is set by the transport itself".into()),
        false => Ok(name),
    }
}

/// A header that may stand in the configuration.
///
/// # Errors
/// In words, when it may not.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name = header_name(name)?;
    if SECRET_HEADERS.contains(&name.as_str()) {
        return Err(
            "holds a secret, which is not kept in this file: name where it is by headers_env or headers_file, \
                    or a token by token_env or token_file"
                .into(),
        );
    }
    let value = value.parse().map_err(|_| "cannot be sent: it holds control characters")?;
    Ok((name, value))
}

/// What is wrong with the headers of a server: the key of the table, the header's name in it, and why.
pub(super) fn faults(upstream: &Upstream) -> Vec<(&'static str, &str, String)> {
    let plain =
        upstream.headers.iter().map(|(name, value)| ("headers", name, header(name, value).map(|(name, _)| name)));
    let in_variables = upstream.headers_env.iter().map(|(name, variable)| {
        let is_variable = !variable.is_empty() && !variable.contains(['=', '\0']);
        let named = header_name(name).and_then(|name| is_variable.then_some(name).ok_or("names no variable".into()));
        ("headers_env", name, named)
    });
    let in_files = upstream.headers_file.iter().map(|(name, file)| {
        let is_file = !file.as_os_str().is_empty();
        let named = header_name(name).and_then(|name| is_file.then_some(name).ok_or("names no file".into()));
        ("headers_file", name, named)
    });
    let has_token = upstream.token_env.is_some() || upstream.token_file.is_some();
    let mut seen: Vec<HeaderName> = if has_token { vec![http::header::AUTHORIZATION] } else { vec![] };
    let mut faults = Vec::new();
    for (key, name, checked) in plain.chain(in_variables).chain(in_files) {
        match checked {
            Ok(header) if seen.contains(&header) => faults.push((key, name.as_str(), "is set twice".to_owned())),
            Ok(header) => seen.push(header),
            Err(fault) => faults.push((key, name.as_str(), fault)),
        }
    }
    faults
}
