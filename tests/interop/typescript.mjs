// The TypeScript SDKs call every tool over HTTP, with a token, or with one that they ask for and the owner consents to. Prints
// what the ledger has to say of it, see ledger.py.
// Usage: MCP_URL=… [MCP_TOKEN=…] typescript.mjs HEADCOUNT sdk|client|remote legacy|modern NAME
//   sdk: version 1 of the SDK, which knows the older era alone; client: version 2; remote: version 1 through mcp-remote
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as two from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [headcount, kind, era, name] = process.argv.slice(2);
const { MCP_URL, MCP_TOKEN } = process.env;
const TOOLS = ["get_session_status", "list_clients", "list_sessions", "register_agent", "unregister_agent", "wait_for_attention"];
const version = "1.2.3";
const scratch = mkdtempSync(join(tmpdir(), "mcp-"));

// What the SDK keeps of the flow; instead of opening a browser it has the owner consent.
const owner = {
  redirectUrl: "http://127.0.0.1:33419/callback",
  clientMetadata: { client_name: name, redirect_uris: ["http://127.0.0.1:33419/callback"], token_endpoint_auth_method: "none" },
  state: () => "a state of its own",
  clientInformation: () => owner.information,
  saveClientInformation: (information) => void (owner.information = information),
  tokens: () => owner.held,
  saveTokens: (tokens) => void (owner.held = tokens),
  codeVerifier: () => owner.verifier,
  saveCodeVerifier: (verifier) => void (owner.verifier = verifier),
  redirectToAuthorization: (url) => {
    const approve = fileURLToPath(new URL("approve.py", import.meta.url));
    const answer = execFileSync("python3", [approve, url.href, headcount], { encoding: "utf8", timeout: 30_000 });
    owner.answer = new URL(answer.trim()).searchParams;
  },
};

function remote() {
  const proxy = fileURLToPath(import.meta.resolve("mcp-remote/dist/proxy.js"));
  const args = [proxy, MCP_URL, "--protocol", era === "modern" ? "auto" : "legacy", "--transport", "http-only"];
  if (MCP_TOKEN) {
    // A token does not belong among the arguments, where others can read it.
    const file = join(scratch, "headers");
    writeFileSync(file, `Authorization: Bearer ${MCP_TOKEN}\n`, { mode: 0o600 });
    args.push("--header-file", file);
  } else {
    // It opens what BROWSER names.
    args.push("--static-oauth-client-metadata", JSON.stringify({ client_name: name }));
  }
  const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: scratch };
  return [new Client({ name, version }), new StdioClientTransport({ command: process.execPath, args, env })];
}

function connection() {
  const options = MCP_TOKEN ? { requestInit: { headers: { authorization: `Bearer ${MCP_TOKEN}` } } } : { authProvider: owner };
  const url = new URL(MCP_URL);
  if (kind === "remote") return remote();
  if (kind === "sdk") return [new Client({ name, version }), new StreamableHTTPClientTransport(url, options)];
  const negotiation = { versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } };
  return [new two.Client({ name, version }, negotiation), new two.StreamableHTTPClientTransport(url, options)];
}

async function connect() {
  let [client, transport] = connection();
  try {
    await client.connect(transport);
  } catch (refused) {
    if (!owner.answer) throw refused;
    assert.equal(owner.answer.get("state"), owner.state());
    await transport.finishAuth(kind === "client" ? owner.answer : owner.answer.get("code"));
    [client, transport] = connection();
    await client.connect(transport);
  }
  return [client, transport];
}

async function everyTool(client, pid) {
  const calls = {};
  // Whatever a tool answers is compared with its schema by the SDK itself.
  const call = async (tool, args, onprogress) => {
    calls[tool] = (calls[tool] ?? 0) + 1;
    const params = { name: tool, arguments: args };
    const options = kind === "client" ? [{ onprogress }] : [undefined, { onprogress }];
    return client.callTool(params, ...options);
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
try {
  const [client, transport] = await connect();
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
