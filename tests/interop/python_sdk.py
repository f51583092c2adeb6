"""The MCP Python SDK calls every tool. Usage: [MCP_URL=… MCP_TOKEN=…] python_sdk.py HEADCOUNT legacy|auto"""
import asyncio
import json
import sys
from collections import Counter

import mcp
import httpx2
from common import check_answer, check_status, environment, over_http, stand_in, tell_ledger
from mcp import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

headcount, mode = sys.argv[1], sys.argv[2]


def server():
    if not over_http():
        return StdioServerParameters(command=headcount, args=["serve"], env=environment())
    url, token = over_http()
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
    return streamable_http_client(url, http_client=client)


async def main(pid):
    async with mcp.Client(server(), mode=mode) as client:
        listed = (await client.list_tools()).tools
        tools = {tool.name: tool.output_schema for tool in listed}
        names = {"get_session_status", "list_sessions", "list_clients", "wait_for_attention", "register_agent", "unregister_agent"}
        assert set(tools) == names, tools
        assert all(tool.annotations is not None and tool.title for tool in listed)

        calls = Counter()

        async def call(name, arguments, **more):
            calls[name] += 1
            result = await client.call_tool(name, arguments, **more)
            assert not result.is_error, result
            return check_answer(tools, name, result.structured_content)

        agent = {"session_id": "interop", "agent_name": "one", "specialization": "tester", "process_id": pid}
        assert (await call("register_agent", agent))["replaced"] is False
        steps = []

        async def progress(done, total, message):
            steps.append((done, total, message))

        sessions = (await call("list_sessions", {}))["sessions"]
        assert any(s["session_id"] == "interop" for s in sessions), sessions
        clients = (await call("list_clients", {}))["sessions"]
        assert clients[0]["transport"] == ("http" if over_http() else "stdio"), clients
        report = await call("get_session_status", {"session_id": "interop"}, progress_callback=progress)
        check_status(report, pid)
        assert [s[0] for s in steps] == sorted({s[0] for s in steps}) and len(steps) >= 3, steps
        bare = await call("get_session_status", {"session_id": "interop", "include_metrics": False, "include_health": False})
        assert "metrics" not in bare["agents"][0] and "health" not in bare["agents"][0], bare

        waited = await call("wait_for_attention", {"session_id": "interop", "timeout_s": 1}, progress_callback=progress)
        assert waited["timed_out"] is True and waited["needs"] == [] and steps[-1][2].endswith("of 1 agents working"), (waited, steps)
        uri = "headcount://session/interop"
        assert uri in [str(resource.uri) for resource in (await client.list_resources()).resources]
        (content,) = (await client.read_resource(uri)).contents
        check_status(json.loads(content.text), pid)

        refused = [
            ({}, "session_id"),
            ({"session_id": 7}, "session_id"),
            ({"session_id": "no-such-session"}, "no-such-session"),
            ({"session_id": "interop", "limit": 0}, "limit"),
            ({"session_id": "interop", "only": ["broken"]}, "broken"),
        ]
        for arguments, word in refused:
            calls["get_session_status"] += 1
            result = await client.call_tool("get_session_status", arguments)
            assert result.is_error and word in result.content[0].text, (arguments, result)

        assert (await call("unregister_agent", {"session_id": "interop", "agent_name": "one"}))["removed"] is True
        assert (await call("unregister_agent", {"session_id": "interop", "agent_name": "one"}))["removed"] is False
    # What the SDK calls itself.
    tell_ledger("mcp", "0.1.0", "2025-11-25" if mode == "legacy" else "2026-07-28", calls, len(refused))


with stand_in(headcount) as pid:
    asyncio.run(main(pid))
