//! The server: what the suite asks for, handed to those who know.

use crate::resources::{WATCHED, missing};
use crate::seal::Seal;
use crate::{prompts, resources, tools};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CompletionInfo,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{RoleServer, ServerHandler};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::broadcast::{self, Sender, error::RecvError};

/// What all clients share.
pub struct Shared {
    changes: Sender<Change>,
    seal: Seal,
    tasks: TaskManager,
}

/// What has become another.
#[derive(Debug, Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

/// The server for one session, or for one request of the newer era.
pub struct Fixtures {
    shared: Arc<Shared>,
    /// Whether the client wants to be told what is of no more than `info`.
    wants_info: AtomicBool,
}

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

impl Shared {
    /// Nothing has happened yet.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self { changes: broadcast::channel(16).0, seal: Seal::new()?, tasks: TaskManager::new() })
    }
}

impl Fixtures {
    /// A server for one client.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, wants_info: AtomicBool::new(true) }
    }

    /// What seals states.
    pub fn seal(&self) -> &Seal {
        &self.shared.seal
    }

    /// What is still going on.
    pub fn tasks(&self) -> &TaskManager {
        &self.shared.tasks
    }

    /// Whether what is logged is sent: in the newer era each request says so, before that the session does.
    pub fn logs(&self, context: &Context) -> bool {
        match context.meta.protocol_version() {
            Some(_) => context.meta.log_level().is_some_and(covers_info),
            None => self.wants_info.load(Ordering::Relaxed),
        }
    }

    /// Tells those who listen what the tool of this name changes.
    pub fn change(&self, tool: &str) {
        let change = if tool == "test_trigger_tool_change" { Change::Tools } else { Change::Prompts };
        // Nobody need listen.
        let _ = self.shared.changes.send(change);
    }
}

fn covers_info(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .enable_tasks();
        ServerConfig::new(can.build()).with_server_info(Implementation::new("conformance-server", "1.0.0"))
    }

    async fn list_tools(&self, _: Page, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, &context).await
    }

    async fn list_prompts(&self, _: Page, _: Context) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: Context) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn complete(&self, request: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let words = ["paris", "park", "party"].map(str::to_owned).into_iter();
        let fitting = words.filter(|word| word.starts_with(&request.argument.value)).collect();
        let found = CompletionInfo::with_all_values(fitting);
        Ok(CompleteResult::new(found.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn list_resources(&self, _: Page, _: Context) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(&self, _: Page, _: Context) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        self.tasks().get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks().update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks().cancel_task(&request.task_id)
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        self.wants_info.store(covers_info(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        if request.uri == WATCHED { Ok(()) } else { Err(missing(&request.uri)) }
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let told = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                // What was missed was said before.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return Ok(()),
            };
            if let Err(error) = told {
                // A filter that does not have it is no failure.
                tracing::debug!("nobody was told: {error}");
            }
        }
    }
}
