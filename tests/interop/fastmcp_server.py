"""A FastMCP server to be a client of: one that answers and reads, and that fails in all ways that a server can.

Usage: fastmcp_server.py [--port PORT] [--fault hangs|exits|stays]. It appends its pid to the file that STAND_IN_PIDS names.
"""
import argparse
import asyncio
import json
import os
import signal
import sys
import time

from fastmcp import Context, FastMCP
from mcp_types import ToolListChangedNotification

server = FastMCP("fastmcp-stand-in", version="1.0")


@server.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> dict:
    return {"text": text}


@server.tool(annotations={"readOnlyHint": True})
def agents(file: str) -> dict:
    with open(file, encoding="utf-8") as told:
        return json.load(told)


@server.tool
def fail() -> str:
    raise ValueError("on purpose")


@server.tool
def die() -> str:
    os._exit(7)


@server.tool
async def slow(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "late"


@server.tool
async def flood(messages: int, size: int, ctx: Context) -> str:
    for _ in range(messages):
        await ctx.info("x" * 1000)
    return "x" * size


@server.tool
async def grow(ctx: Context) -> str:
    server.tool(grown)
    await ctx.send_notification(ToolListChangedNotification())
    return "one more"


def grown() -> str:
    return "grown"


@server.resource("stand-in://pid")
def pid() -> str:
    return str(os.getpid())


arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int)
arguments.add_argument("--fault", choices=["hangs", "exits", "stays"])
typed = arguments.parse_args()
if "STAND_IN_PIDS" in os.environ:
    with open(os.environ["STAND_IN_PIDS"], "a", encoding="utf-8") as pids:
        print(os.getpid(), file=pids)
if typed.fault == "exits":
    sys.exit(3)
if typed.fault == "hangs":
    time.sleep(300)
if typed.port:
    server.run(transport="http", host="127.0.0.1", port=typed.port, show_banner=False)
else:
    server.run(show_banner=False)
if typed.fault == "stays":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
