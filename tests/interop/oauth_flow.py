"""The MCP Python SDK asks for access, is given it by the owner, uses, widens, refreshes and loses it.

Usage: MCP_URL=… oauth_flow.py HEADCOUNT, in the environment of the server.
"""
import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.parse

import httpx2
import mcp
from approve import approve
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

headcount, url = sys.argv[1], os.environ["MCP_URL"]


class Memory:
    """Keeps what the client is given."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Owner:
    """Consents wherever the client would open a browser; the first time not to all of it."""

    asked = 0

    async def open(self, address):
        self.asked += 1
        unticked = ["clients:read"] if self.asked == 1 else []
        self.answer = await asyncio.to_thread(approve, address, headcount, unticked=unticked)

    async def callback(self):
        answer = urllib.parse.parse_qs(urllib.parse.urlsplit(self.answer).query)
        return AuthorizationCodeResult(code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0])


def grants():
    told = subprocess.run([headcount, "grants", "list", "--json"], check=True, capture_output=True, text=True)
    return [grant for grant in json.loads(told.stdout)["grants"] if grant["name"] == "interop"]


async def main():
    memory, owner = Memory(), Owner()
    metadata = OAuthClientMetadata(client_name="interop", redirect_uris=["http://127.0.0.1:33418/callback"])
    auth = OAuthClientProvider(url, metadata, memory, owner.open, owner.callback)
    async with httpx2.AsyncClient(auth=auth, timeout=30) as client:
        async with mcp.Client(streamable_http_client(url, http_client=client)) as session:
            assert not (await session.call_tool("list_sessions", {})).is_error
            assert owner.asked == 1, owner.asked
            (grant,) = grants()
            assert grant["scopes"] == ["status:read", "roster:write"] and grant["client_id"] == memory.client.client_id, grant

            before = memory.tokens
            auth.context.token_expiry_time = time.time() - 1
            assert not (await session.call_tool("list_sessions", {})).is_error
            after = memory.tokens
            assert before.refresh_token != after.refresh_token and before.access_token != after.access_token
            assert owner.asked == 1 and [g["id"] for g in grants()] == [grant["id"]], "refreshing keeps the grant"

            # What it was not given it asks for, and is asked about.
            assert not (await session.call_tool("list_clients", {})).is_error
            assert owner.asked == 2, owner.asked
            assert "clients:read" in memory.tokens.scope, memory.tokens.scope

    async with httpx2.AsyncClient(timeout=30) as client:
        origin = urllib.parse.urljoin(url, "/")
        gone = {"token": memory.tokens.refresh_token, "client_id": memory.client.client_id}
        assert (await client.post(origin + "oauth/revoke", data=gone)).status_code == 200
        held = {"Authorization": f"Bearer {memory.tokens.access_token}"}
        assert (await client.get(origin + "v1/sessions", headers=held)).status_code == 401


asyncio.run(main())
