//! Tools that go on after they have answered, as the extension for tasks has it.

use crate::input::{Given, ask};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult,
    ErrorData,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

/// What is long enough to be seen at work.
const WORK: Duration = Duration::from_millis(200);

type Done = Result<CallToolResult, TaskExit>;

/// Calls a tool that may become a task; `None`: it is another one.
pub async fn call(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
    client: &ClientCapabilities,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let argument = |name: &str| request.arguments.as_ref().and_then(|arguments| arguments.get(name));
    let word = |name: &str| argument(name).and_then(Value::as_str).unwrap_or("nobody").to_owned();
    let seconds = Duration::from_secs(argument("seconds").and_then(Value::as_u64).unwrap_or_default());
    Some(Ok(match &*request.name {
        "greet" => text(format!("Hello, {}!", word("name"))).into(),
        "slow_compute" if !client.supports_tasks() => {
            sleep(seconds).await;
            text("It was computed while you waited").into()
        }
        "slow_compute" => start(tasks, move |task| compute(task, seconds)),
        "failing_job" | "protocol_error_job" | "confirm_delete" | "multi_input" | "test_tool_with_task"
            if !client.supports_tasks() =>
        {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Some(Err(ErrorData::missing_required_client_capability(needed)));
        }
        "failing_job" => start(tasks, async |_| {
            sleep(WORK).await;
            Ok(CallToolResult::error(vec![ContentBlock::text("It failed on purpose")]))
        }),
        "protocol_error_job" => start(tasks, async |_| {
            sleep(WORK).await;
            Err(ErrorData::internal_error("it broke on purpose", None).into())
        }),
        "confirm_delete" => {
            let file = word("filename");
            start(tasks, move |task| confirm(task, file))
        }
        "multi_input" => start(tasks, ask_twice),
        "test_tool_with_task" => {
            let given = Given(request.input_responses.as_ref());
            let Some(name) = given.entered("user_name", "name").cloned() else {
                let question = ask::form("What is your name?", "name", "string");
                return Some(ask::all([("user_name", question)], None).map(Into::into));
            };
            start(tasks, async move |_| {
                sleep(WORK).await;
                Ok(text(format!("It was done for {name}")))
            })
        }
        _ => return None,
    }))
}

/// Begins a task.
fn start<W: Future<Output = Done> + Send + 'static>(
    tasks: &TaskManager,
    work: impl FnOnce(TaskContext) -> W,
) -> CallToolResponse {
    CreateTaskResult::new(tasks.spawn(TaskOptions::new(), |task| Box::pin(work(task)))).into()
}

async fn compute(task: TaskContext, seconds: Duration) -> Done {
    tokio::select! {
        () = sleep(seconds) => Ok(text("It is computed")),
        () = task.cancelled() => Err(TaskExit::Cancelled),
    }
}

async fn confirm(task: TaskContext, file: String) -> Done {
    let question = ask::request(ask::form(&format!("Delete {file}?"), "confirm", "boolean"))?;
    let answer = task.request_input("confirm", question).await?;
    Ok(text(format!("To delete {file} was answered by {}", answer["action"])))
}

/// Has two questions open at a time.
async fn ask_twice(task: TaskContext) -> Done {
    let question = |what: &str| ask::request(ask::form(&format!("What is the {what}?"), what, "string"));
    let (name, age) = (question("name")?, question("age")?);
    let (name, age) = tokio::try_join!(task.request_input("name", name), task.request_input("age", age))?;
    Ok(text(format!("The answers are {} and {}", name["content"], age["content"])))
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.into())])
}
