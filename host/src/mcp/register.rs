//! `register_agent` and `unregister_agent`.

use super::arguments::parse;
use super::server::{Done, Server, client};
use super::tools::Tool;
use crate::monitor::{Find, Sight, Tick};
use crate::names::{AgentName, SessionId};
use crate::registering::{self, Declaration, Withdrawn};
use crate::report::clean;
use crate::store::audit::Outcome;
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
    if let Err(message) = may_declare(server, &arguments.session_id).await {
        return Done::failed(Outcome::Denied, asked, message);
    }
    let declaration = Declaration {
        session: arguments.session_id,
        agent_name: arguments.agent_name,
        specialization: arguments.specialization,
        process_id: arguments.process_id,
        session_name: arguments.session_name,
        root_path: arguments.root_path,
        registered_by: client(context),
    };
    let service = Arc::clone(&server.service);
    let done =
        tokio::task::spawn_blocking(move || registering::register(service.setup(), service.rosters(), declaration));
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
    if let Err(message) = may_declare(server, &arguments.session_id).await {
        return Done::failed(Outcome::Denied, asked, message);
    }
    let service = Arc::clone(&server.service);
    let done = tokio::task::spawn_blocking(move || {
        registering::unregister(service.setup(), service.rosters(), &arguments.session_id, &arguments.agent_name)
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

/// Whether the client may declare agents of this session. The registry is the user's whose server this is; and whoever declares
/// an agent of a session that they do not see would see all of it then.
async fn may_declare(server: &Server, session: &str) -> Result<(), String> {
    if server.connection.user != server.service.setup().user {
        return Err("agents are declared by the user of this server alone".to_owned());
    }
    if server.connection.sight == Sight::All {
        return Ok(());
    }
    let all = server.service.tick(&Sight::All).await.map_err(|error| error.to_string())?;
    let is_there = |tick: &Tick| !matches!(tick.find(session), Find::None);
    let is_hidden = is_there(&all) && !is_there(&server.connection.sight.of(&all));
    if is_hidden { Err("this session_id cannot be used; choose another".to_owned()) } else { Ok(()) }
}
