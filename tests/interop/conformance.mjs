// The official conformance suite against a server over HTTP. The suite sends no token and is no page that may ask, so that it
// goes through a door of its own, which adds the token; everything else passes as it is.
// Usage: MCP_TOKEN=… conformance.mjs SUITE OPTION… -- SERVER ARGUMENT…   (the server is told the door's origin)
import { spawn } from "node:child_process";
import http from "node:http";

const [suite, ...rest] = process.argv.slice(2);
const split = rest.indexOf("--");
const [options, [server, ...serverArguments]] = [rest.slice(0, split), rest.slice(split + 1)];

let upstream;
const door = http.createServer((request, response) => {
  const headers = [...request.rawHeaders, "Authorization", `Bearer ${process.env.MCP_TOKEN}`];
  const { hostname, port } = upstream;
  const passed = http.request({ hostname, port, path: request.url, method: request.method, headers, setHost: false }, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  // Whoever leaves takes the call along.
  response.on("close", () => passed.destroy());
  request.pipe(passed);
});
await new Promise((listening) => door.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${door.address().port}`;

const serving = spawn(server, [...serverArguments, "--allow-origin", origin], { stdio: ["ignore", "inherit", "pipe"] });
const stopped = new Promise((ended) => serving.on("exit", ended));
let said = "";
await new Promise((opened) => {
  serving.on("exit", opened);
  serving.stderr.on("data", (text) => {
    process.stderr.write(text);
    said += text;
    const found = said.match(/http:\/\/\S+\/mcp/);
    if (found && !upstream) opened((upstream = new URL(found[0])));
  });
});

let code = 1;
if (upstream) {
  const running = spawn(process.execPath, [suite, "server", "--url", `${origin}/mcp`, ...options], { stdio: "inherit" });
  code = await new Promise((ended) => running.on("exit", (code) => ended(code ?? 1)));
}
serving.kill();
await stopped;
process.exit(code);
