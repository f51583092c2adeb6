// Tells headcount what OpenCode does. Written by `headcount hook install opencode`, removed by `headcount hook uninstall opencode`.
import { spawn } from "node:child_process";

const PROGRAM = {{program}};
const TOLD = /^(session\.(created|idle|status|error)|(permission|question)\.(v2\.)?(asked|updated|replied|rejected))$/;

const send = (event) =>
  new Promise((done) => {
    const child = spawn(PROGRAM, ["hook", "opencode"], { stdio: ["pipe", "ignore", "ignore"] });
    child.on("error", done);
    child.on("close", done);
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(event));
  });

export const Headcount = async () => {
  // Sessions of subagents: what they ask counts, when they end their agent goes on.
  const subagents = new Set();
  let last = Promise.resolve();

  // One after the other, so that they arrive in their order. Nothing of it ever fails or holds OpenCode up.
  const tell = (event) => {
    last = last.then(() => send(event)).catch(() => {});
  };

  return {
    event: async ({ event }) => {
      const { type, properties = {} } = event ?? {};
      const session = properties.sessionID ?? properties.info?.id;
      if (type === "session.created" && properties.info?.parentID) subagents.add(session);
      if (!TOLD.test(type) || (subagents.has(session) && type.startsWith("session."))) return;
      tell({
        hook_event_name: type,
        session_id: session,
        request_id: /\.(asked|updated)$/.test(type) ? properties.id : (properties.requestID ?? properties.permissionID),
        tool_name: properties.permission ?? properties.type,
        status: properties.status?.type,
        error: properties.error?.name,
      });
    },
    "tool.execute.before": async ({ tool, sessionID }) => {
      if (!subagents.has(sessionID)) tell({ hook_event_name: "tool.execute.before", session_id: sessionID, tool_name: tool });
    },
    "tool.execute.after": async ({ tool, sessionID }) => {
      if (!subagents.has(sessionID)) tell({ hook_event_name: "tool.execute.after", session_id: sessionID, tool_name: tool });
    },
  };
};
