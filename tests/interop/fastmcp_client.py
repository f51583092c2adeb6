"""fastmcp's client calls every tool. Usage: [MCP_URL=… MCP_TOKEN=…] fastmcp_client.py HEADCOUNT"""
import asyncio
import sys
from collections import Counter

import fastmcp
from common import check_answer, check_status, environment, over_http, stand_in, tell_ledger
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError

headcount = sys.argv[1]


def transport():
    if not over_http():
        return StdioTransport(command=headcount, args=["serve"], env=environment())
    url, token = over_http()
    return StreamableHttpTransport(url, auth=token)


async def main(pid):
    async with Client(transport()) as client:
        tools = {tool.name: tool.output_schema for tool in await client.list_tools()}

        calls = Counter()

        async def call(name, arguments):
            calls[name] += 1
            return check_answer(tools, name, (await client.call_tool(name, arguments)).structured_content)

        await call("register_agent", {"session_id": "interop", "agent_name": "two", "specialization": "tester", "process_id": pid})
        sessions = (await call("list_sessions", {}))["sessions"]
        assert any(s["session_id"] == "interop" for s in sessions), sessions
        check_status(await call("get_session_status", {"session_id": "interop"}), pid)
        calls["get_session_status"] += 1
        try:
            await client.call_tool("get_session_status", {"session_id": "../etc"})
            raise SystemExit("a session id that is none was taken")
        except ToolError as error:
            assert "etc" in str(error), error
        assert (await call("unregister_agent", {"session_id": "interop", "agent_name": "two"}))["removed"] is True
    tell_ledger("fastmcp", fastmcp.__version__, "2026-07-28", calls, 1)


with stand_in(headcount) as pid:
    asyncio.run(main(pid))
