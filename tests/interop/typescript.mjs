// The TypeScript SDKs call every tool over HTTP. Prints what the ledger has to say of it, see ledger.py.
// Usage: MCP_URL=… MCP_TOKEN=… typescript.mjs HEADCOUNT sdk|client|remote legacy|modern
//   sdk: version 1 of the SDK, which knows the older era alone; client: version 2; remote: version 1 through mcp-remote
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as two from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [headcount, kind, era] = process.argv.slice(2);
const { MCP_URL, MCP_TOKEN } = process.env;
const TOOLS = ["get_session_status", "list_clients", "list_sessions", "register_agent", "unregister_agent", "wait_for_attention"];
const name = `typescript-${kind}`;
const version = "1.2.3";
const authorization = `Bearer ${MCP_TOKEN}`;
const scratch = mkdtempSync(join(tmpdir(), "mcp-"));

function remote() {
  // A token does not belong among the arguments, where others can read it.
  const file = join(scratch, "headers");
  writeFileSync(file, `Authorization: ${authorization}\n`, { mode: 0o600 });
  const proxy = fileURLToPath(import.meta.resolve("mcp-remote/dist/proxy.js"));
  const protocol = era === "modern" ? "auto" : "legacy";
  const args = [proxy, MCP_URL, "--header-file", file, "--protocol", protocol, "--transport", "http-only"];
  return [new Client({ name, version }), new StdioClientTransport({ command: process.execPath, args, env: process.env })];
}

function connection() {
  const options = { requestInit: { headers: { authorization } } };
  const url = new URL(MCP_URL);
  if (kind === "remote") return remote();
  if (kind === "sdk") return [new Client({ name, version }), new StreamableHTTPClientTransport(url, options)];
  const negotiation = { versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } };
  return [new two.Client({ name, version }, negotiation), new two.StreamableHTTPClientTransport(url, options)];
}

async function everyTool(client, pid) {
  const calls = {};
  // Whatever a tool answers is compared with its schema by the SDK itself.
  const call = async (tool, args, onprogress) => {
    calls[tool] = (calls[tool] ?? 0) + 1;
    const params = { name: tool, arguments: args };
    return kind === "client" ? client.callTool(params, { onprogress }) : client.callTool(params, undefined, { onprogress });
  };
  const answer = async (...asked) => {
    const result = await call(...asked);
    assert(!result.isError && result.structuredContent, JSON.stringify(result));
    return result.structuredContent;
  };
  assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name).sort(), TOOLS);

  const session = { session_id: "interop" };
  const agent = { ...session, agent_name: "four" };
  assert.equal((await answer("register_agent", { ...agent, process_id: pid })).replaced, false);
  assert((await answer("list_sessions", {})).sessions.some((found) => found.session_id === "interop"));
  const clients = (await answer("list_clients", {})).sessions;
  assert(clients.some((found) => found.transport === "http"), JSON.stringify(clients));

  const steps = [];
  const report = await answer("get_session_status", session, (step) => steps.push(step.progress));
  assert.equal(report.agents[0].process_id, pid);
  // Over stdio, as behind mcp-remote, the SDK drops what comes in one piece with the answer.
  assert(kind === "remote" || steps.length >= 3, JSON.stringify(steps));
  assert(steps.every((step, n) => n === 0 || step > steps[n - 1]), JSON.stringify(steps));
  assert.equal((await answer("wait_for_attention", { ...session, timeout_s: 1 })).timed_out, true);

  const uri = "headcount://session/interop";
  assert((await client.listResources()).resources.some((resource) => resource.uri === uri));
  const { contents } = await client.readResource({ uri });
  assert.equal(JSON.parse(contents[0].text).agents[0].process_id, pid);

  const wrong = await call("get_session_status", { session_id: 7 });
  assert(wrong.isError && wrong.content[0].text.includes("session_id"), JSON.stringify(wrong));
  assert.equal((await answer("unregister_agent", agent)).removed, true);
  return calls;
}

const standIn = spawn(headcount, ["stand-in", "idle"], { stdio: "ignore" });
const [client, transport] = connection();
try {
  await client.connect(transport);
  const calls = await everyTool(client, standIn.pid);
  await transport.terminateSession?.();
  await client.close();
  const protocol = era === "modern" ? "2026-07-28" : "2025-11-25";
  const called = kind === "remote" ? `${name} (via mcp-remote 0.15.1)` : name;
  console.log(JSON.stringify({ name: called, version, protocol, calls, failures: 1 }));
} finally {
  standIn.kill();
  rmSync(scratch, { recursive: true });
}
