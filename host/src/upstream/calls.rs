//! What a server can be asked, and what comes of it.

use super::error::Failure;
use super::http::{Meaning, meaning};
use crate::text::clean;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorCode, JsonObject, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, Tool,
};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use std::sync::Arc;

/// A list may have so many pages, and so many items.
const PAGES_MAX: usize = 100;
const ITEMS_MAX: usize = 10_000;

/// What is asked.
#[derive(Debug, Clone)]
pub enum Request {
    /// To call a tool.
    CallTool {
        /// Its name.
        name: String,
        /// What it is given.
        arguments: Option<JsonObject>,
    },
    /// To list the tools.
    ListTools {
        /// Anew, though the server has not said that they have changed.
        anew: bool,
    },
    /// To list the resources.
    ListResources,
    /// To read one.
    ReadResource {
        /// Its URI.
        uri: String,
    },
}

/// What was answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// What a tool has returned.
    Called(CallToolResult),
    /// All tools.
    Tools(Arc<[Tool]>),
    /// All resources.
    Resources(Vec<Resource>),
    /// What a resource holds.
    Read(ReadResourceResult),
}

impl Request {
    /// In words, without what was given.
    pub fn in_words(&self) -> String {
        match self {
            Self::CallTool { name, .. } => format!("call of {}", clean(name)),
            Self::ListTools { .. } => "list of tools".into(),
            Self::ListResources => "list of resources".into(),
            Self::ReadResource { .. } => "read of a resource".into(),
        }
    }

    /// Asks it. What is dropped before the answer has come is cancelled at the server.
    pub async fn ask(self, peer: &Peer<RoleClient>) -> Result<Answer, Unanswered> {
        match self {
            Self::CallTool { name, arguments } => {
                let mut call = CallToolRequestParams::new(name);
                call.arguments = arguments;
                match peer.call_tool_once(call).await? {
                    CallToolResponse::Complete(result) => Ok(Answer::Called(result)),
                    CallToolResponse::InputRequired(_) => Err(Unanswered::Failed(Failure::Unsupported(
                        "the tool asks for input, which nobody here can give",
                    ))),
                    _ => Err(Unanswered::Failed(Failure::Unsupported("the tool goes on as a task, out of reach"))),
                }
            }
            Self::ListTools { .. } => Ok(Answer::Tools(list_tools(peer).await?.into())),
            Self::ListResources => Ok(Answer::Resources(list_resources(peer).await?)),
            Self::ReadResource { uri } => match peer.read_resource_once(ReadResourceRequestParams::new(uri)).await? {
                ReadResourceResponse::Complete(result) => Ok(Answer::Read(result)),
                _ => Err(Unanswered::Failed(Failure::Unsupported(
                    "the resource asks for input, which nobody here can give",
                ))),
            },
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The server has not got the request, and the connection is over.
    NotDelivered(String),
    /// It may have got it.
    Lost(String),
    /// It may have got it, and the transport has ended before the answer.
    Cut,
    /// It has answered with an error of the protocol.
    Refused(Failure),
    /// It has answered with what is of no use.
    Failed(Failure),
}

impl Unanswered {
    /// In words.
    pub fn why(&self) -> String {
        match self {
            Self::NotDelivered(why) | Self::Lost(why) => why.clone(),
            Self::Cut => "the connection was cut before the answer".into(),
            Self::Refused(failure) | Self::Failed(failure) => failure.to_string(),
        }
    }

    /// Whether what was asked for may not be there any more, as a list that is kept has it.
    pub fn hints_at_change(&self) -> bool {
        let codes = [ErrorCode::METHOD_NOT_FOUND.0, ErrorCode::INVALID_PARAMS.0];
        matches!(self, Self::Refused(Failure::Refused { code, .. }) if codes.contains(code))
    }
}

impl From<ServiceError> for Unanswered {
    fn from(error: ServiceError) -> Self {
        match &error {
            ServiceError::McpError(error) => {
                Self::Refused(Failure::Refused { code: error.code.0, message: clean(&error.message) })
            }
            ServiceError::UnexpectedResponse => {
                Self::Failed(Failure::Unsupported("the answer is none to this request"))
            }
            ServiceError::TransportSend(error) => match meaning(error) {
                Meaning::NotDelivered(why) => Self::NotDelivered(why),
                Meaning::Unknown(why) => Self::Lost(why),
                Meaning::Refused { code, message } => Self::Refused(Failure::Refused { code, message }),
            },
            _ => Self::Cut,
        }
    }
}

/// All tools of a server.
pub async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, Unanswered> {
    all(|page| async move { peer.list_tools(page).await.map(|list| (list.tools, list.next_cursor)) }).await
}

async fn list_resources(peer: &Peer<RoleClient>) -> Result<Vec<Resource>, Unanswered> {
    all(|page| async move { peer.list_resources(page).await.map(|list| (list.resources, list.next_cursor)) }).await
}

/// All items of a list that comes in pages, as far as it ends.
async fn all<I, F>(mut page: impl FnMut(Option<PaginatedRequestParams>) -> F) -> Result<Vec<I>, Unanswered>
where
    F: Future<Output = Result<(Vec<I>, Option<String>), ServiceError>>,
{
    let mut items = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let (more, next) = page(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        items.extend(more);
        if items.len() > ITEMS_MAX {
            break;
        }
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(items),
        }
    }
    Err(Unanswered::Failed(Failure::Unsupported("the list has no end")))
}
