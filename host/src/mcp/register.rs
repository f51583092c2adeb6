//! `register_agent` and `unregister_agent`.

use super::arguments::parse;
use super::server::{Done, Server, client};
use super::tools::Tool;
use crate::names::{AgentName, SessionId};
use crate::registering::{self, Declaration, Declarer, Withdrawn};
use crate::report::clean;
use crate::store::audit::{Outcome, Transport};
use rmcp::model::JsonObject;
use rmcp::{RoleServer, service::RequestContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What `register_agent` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterArguments {
    /// The session it belongs to: its id, or its name where that is unique; it is made if there is none.
    session_id: String,
    /// The agent's name, its own within the session.
    agent_name: AgentName,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    specialization: Option<String>,
    /// The root of its process tree on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process_id: Option<u32>,
    /// What to call the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    /// The session's top folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root_path: Option<String>,
}

/// What `register_agent` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Registered {
    /// It is registered.
    success: bool,
    /// Its session.
    session_id: SessionId,
    /// The id under which it is reported.
    agent_id: String,
    /// Whether it took the place of an earlier registration of this name.
    replaced: bool,
}

/// What `unregister_agent` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnregisterArguments {
    /// The session it belongs to: its id, or its name where that is unique.
    session_id: String,
    /// The agent's name.
    agent_name: AgentName,
}

/// What `unregister_agent` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unregistered {
    /// It is registered no more.
    success: bool,
    /// Its session.
    session_id: SessionId,
    /// Whether it was registered before.
    removed: bool,
    /// Where it was not: which agents are; else null.
    note: Option<String>,
}

pub(super) async fn register(
    server: &Server,
    arguments: Option<JsonObject>,
    context: &RequestContext<RoleServer>,
) -> Done {
    let arguments: RegisterArguments = match parse(Tool::RegisterAgent, arguments) {
        Ok(arguments) => arguments,
        Err(message) => return Done::failed(Outcome::Invalid, None, message),
    };
    let asked = Some(clean(&arguments.session_id));
    let declaration = Declaration {
        session: arguments.session_id,
        agent_name: arguments.agent_name,
        specialization: arguments.specialization,
        process_id: arguments.process_id,
        session_name: arguments.session_name,
        root_path: arguments.root_path,
        registered_by: client(context),
    };
    let (service, who) = (Arc::clone(&server.service), declarer(server));
    let done = tokio::task::spawn_blocking(move || {
        registering::register(service.setup(), service.rosters(), &who, declaration)
    });
    let done = done.await;
    server.service.renew();
    match done {
        Ok(Ok(done)) => Done::structured(
            Some(done.session_id.to_string()),
            &Registered {
                success: true,
                session_id: done.session_id,
                agent_id: done.registered.agent_id,
                replaced: done.registered.replaced,
            },
        ),
        Ok(Err(error)) => Done::failed(error.outcome(), asked, error.to_string()),
        Err(error) => Done::failed(Outcome::Failed, asked, error.to_string()),
    }
}

pub(super) async fn unregister(server: &Server, arguments: Option<JsonObject>) -> Done {
    let arguments: UnregisterArguments = match parse(Tool::UnregisterAgent, arguments) {
        Ok(arguments) => arguments,
        Err(message) => return Done::failed(Outcome::Invalid, None, message),
    };
    let asked = Some(clean(&arguments.session_id));
    let (service, who) = (Arc::clone(&server.service), declarer(server));
    let done = tokio::task::spawn_blocking(move || {
        let (session, agent) = (&arguments.session_id, &arguments.agent_name);
        registering::unregister(service.setup(), service.rosters(), &who, session, agent)
    });
    let done = done.await;
    server.service.renew();
    match done {
        Ok(Ok(Withdrawn { session_id, missing: note })) => Done::structured(
            Some(session_id.to_string()),
            &Unregistered { success: true, session_id, removed: note.is_none(), note },
        ),
        Ok(Err(error)) => Done::failed(error.outcome(), asked, error.to_string()),
        Err(error) => Done::failed(Outcome::Failed, asked, error.to_string()),
    }
}

/// Who declares on this connection.
fn declarer(server: &Server) -> Declarer {
    let connection = &server.connection;
    Declarer { user: connection.user.clone(), is_remote: connection.transport == Transport::Http }
}
