"""The official conformance suite against headcount as an authorization server, whose owner consents.

Usage: MCP_URL=… authorization.py HEADCOUNT NODE SUITE, in the environment of the server."""
import json
import os
import re
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

from approve import approve

headcount, node, suite = sys.argv[1:]
resource = os.environ["MCP_URL"]
issuer = resource.removesuffix("/mcp")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def register(port):
    """A client that is sent back to where the suite listens."""
    client = {"client_name": "conformance", "redirect_uris": [f"http://127.0.0.1:{port}/callback"], "token_endpoint_auth_method": "none"}
    sent = urllib.request.Request(f"{issuer}/oauth/register", json.dumps(client).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(sent, timeout=30) as answer:
        return json.load(answer)["client_id"]


def run(*options):
    port = free_port()
    command = [node, suite, "authorization", "--url", issuer, "--client-id", register(port), "--port", str(port), *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in running.stdout:
            print(line, end="")
            # It waits for its owner.
            if re.match(r"http\S+\?response_type=code", line):
                urllib.request.urlopen(approve(line.strip(), headcount), timeout=30).read()
        assert running.wait(timeout=30) == 0, command
    finally:
        running.kill()


run("--resource", resource)
# What it is for need not be said.
run()
