//! The tools: their names, what they say of themselves, and the schemas of what goes in and comes out.

use super::{clients, register, sessions, status, wait};
use crate::auth::Scope;
use crate::clients::Clients;
use crate::report::{Report, Sessions};
use crate::waiting::Waited;
use rmcp::model::{JsonObject, Tool as Description, ToolAnnotations};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;
use std::sync::Arc;

/// The tools that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// What a session's agents do, cost, and how they fare.
    GetSessionStatus,
    /// Which sessions there are.
    ListSessions,
    /// Which MCP clients there are.
    ListClients,
    /// Waits until an agent needs somebody.
    WaitForAttention,
    /// Declares an agent.
    RegisterAgent,
    /// Takes a declared agent off the list.
    UnregisterAgent,
}

impl Tool {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::GetSessionStatus,
        Self::ListSessions,
        Self::ListClients,
        Self::WaitForAttention,
        Self::RegisterAgent,
        Self::UnregisterAgent,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GetSessionStatus => "get_session_status",
            Self::ListSessions => "list_sessions",
            Self::ListClients => "list_clients",
            Self::WaitForAttention => "wait_for_attention",
            Self::RegisterAgent => "register_agent",
            Self::UnregisterAgent => "unregister_agent",
        }
    }

    /// The tool with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// What whoever calls it must be permitted.
    pub fn scope(self) -> Scope {
        match self {
            Self::GetSessionStatus | Self::ListSessions | Self::WaitForAttention => Scope::StatusRead,
            Self::ListClients => Scope::ClientsRead,
            Self::RegisterAgent | Self::UnregisterAgent => Scope::RosterWrite,
        }
    }

    /// The schema of its arguments.
    pub fn input_schema(self) -> JsonObject {
        match self {
            Self::GetSessionStatus => input::<status::Arguments>(),
            Self::ListSessions => input::<sessions::Arguments>(),
            Self::ListClients => input::<clients::Arguments>(),
            Self::WaitForAttention => input::<wait::Arguments>(),
            Self::RegisterAgent => input::<register::RegisterArguments>(),
            Self::UnregisterAgent => input::<register::UnregisterArguments>(),
        }
    }

    fn output_schema(self) -> JsonObject {
        match self {
            Self::GetSessionStatus => output::<Report>(),
            Self::ListSessions => output::<Sessions>(),
            Self::ListClients => output::<Clients>(),
            Self::WaitForAttention => output::<Waited>(),
            Self::RegisterAgent => output::<register::Registered>(),
            Self::UnregisterAgent => output::<register::Unregistered>(),
        }
    }

    /// All that a client is told of it.
    pub fn describe(self) -> Description {
        let (title, description, annotations) = match self {
            Self::GetSessionStatus => (
                "Session status",
                "Who is working in a session, what each agent is doing, what it costs this machine, and whether it is healthy. \
                 `attention` lists those who need somebody, most urgent first. Figures that could not be measured are null, with the \
                 reason under `unmeasured`.",
                ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
            ),
            Self::ListSessions => (
                "Sessions",
                "The sessions of AI agents on this machine: id, name, root folder, how many agents and how they fare.",
                ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
            ),
            Self::ListClients => (
                "MCP clients",
                "The MCP clients of headcount, the newest first: who is connected and since when, what each has called, and what it has \
                 registered. `client_name` is what a client calls itself.",
                ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
            ),
            Self::WaitForAttention => (
                "Wait for attention",
                "Returns as soon as an agent of a session waits for input, has failed, stalls, finishes or leaves: at once where one \
                 does so already, else when one begins to, or with `timed_out` when `timeout_s` is over. Give the answer's `mark` as \
                 `since` the next time, to hear only of what has begun after it. Keep `timeout_s` below the time after which you give up \
                 on a call.",
                ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
            ),
            Self::RegisterAgent => (
                "Register an agent",
                "Declares an agent of a session, so that it is watched under this name and role even where headcount would not find it by \
                 itself. Registering a name again replaces it.",
                ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false),
            ),
            Self::UnregisterAgent => (
                "Unregister an agent",
                "Takes a declared agent off the list. Its process is left alone.",
                ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false),
            ),
        };
        Description::new(self.name(), description, Arc::new(self.input_schema()))
            .with_title(title)
            .with_raw_output_schema(Arc::new(self.output_schema()))
            .with_annotations(annotations)
    }
}

/// The schema of what is read: what has a default need not be given.
fn input<T: JsonSchema>() -> JsonObject {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what is written: everything is there.
fn output<T: JsonSchema>() -> JsonObject {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// A schema as clients of all kinds understand it: in one piece, and without number formats, which many validators do not know.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let mut schema =
        settings.with(|s| s.inline_subschemas = true).into_generator().into_root_schema_for::<T>().to_value();
    drop_formats(&mut schema);
    match schema {
        Value::Object(object) => object,
        other => JsonObject::from_iter([("const".to_owned(), other)]),
    }
}

fn drop_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let is_number_format =
                object.get("format").and_then(Value::as_str).is_some_and(|f| f.starts_with(['u', 'i', 'd', 'f']));
            if is_number_format && object.contains_key("type") {
                object.remove("format");
            }
            object.values_mut().for_each(drop_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_formats),
        _ => {}
    }
}
