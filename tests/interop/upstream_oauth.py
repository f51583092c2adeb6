"""headcount logs in to a FastMCP server that grants access by OAuth: consent, use, renewal, logging out.

Usage: upstream_oauth.py HEADCOUNT
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

headcount = sys.argv[1]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
base = f"http://127.0.0.1:{port}"

provider = InMemoryOAuthProvider(
    base_url=base,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["echo"], default_scopes=["echo"]),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["echo"],
)
server = FastMCP("fastmcp-oauth", version="1.0", auth=provider)


@server.tool
def echo(text: str) -> dict:
    return {"text": text}


def serve():
    server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="error")


threading.Thread(target=serve, daemon=True).start()
for _ in range(500):
    try:
        urllib.request.urlopen(f"{base}/.well-known/oauth-authorization-server")
        break
    except (urllib.error.URLError, ConnectionError):
        time.sleep(0.05)

with tempfile.TemporaryDirectory() as home:
    config = pathlib.Path(home, "config.toml")
    config.write_text(f'[[upstream]]\nname = "f"\nurl = "{base}/mcp"\noauth = true\n')
    environment = {"HOME": home, "PATH": os.environ["PATH"]}

    def start(*args):
        command = [headcount, "--config", config, "upstream", *args]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(*args, code=0):
        process = start(*args)
        out, told = process.communicate(timeout=60)
        assert process.returncode == code, (args, process.returncode, out, told)
        return out + told

    called = ("call", "f", "echo", '{"text": "hi"}', "--json")
    assert "not logged in: headcount upstream login f" in run(*called, code=2)
    login = start("login", "f")
    address = next(line.strip() for line in login.stdout if line.startswith("http"))
    # This server consents by itself; the browser follows it back.
    assert b"headcount has the answer" in urllib.request.urlopen(address).read()
    out, told = login.communicate(timeout=60)
    assert login.returncode == 0 and "Logged in to f" in out, (out, told)
    assert json.loads(run(*called))["result"]["structuredContent"] == {"text": "hi"}

    kept = pathlib.Path(home, ".local/state/headcount/upstream-logins/f.json")
    before = json.loads(kept.read_text())
    before["credentials"]["token_received_at"] = 1_700_000_000
    kept.write_text(json.dumps(before))
    run(*called)
    after = json.loads(kept.read_text())
    tokens = [login["credentials"]["token_response"]["access_token"] for login in (before, after)]
    assert tokens[0] != tokens[1], "it is not renewed"
    provider.access_tokens.clear()
    run(*called)
    assert "Logged out of f." in run("logout", "f")
    assert not provider.refresh_tokens, "it is not revoked"
    assert "not logged in" in run(*called, code=2)
print("logged in, renewed, logged out")
