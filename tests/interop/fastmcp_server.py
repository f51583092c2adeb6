"""A FastMCP server to be a client of: one that answers, fails, reads, and dies. Usage: fastmcp_server.py [PORT]"""
import os
import sys

from fastmcp import FastMCP

server = FastMCP("fastmcp-stand-in", version="1.0")


@server.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> dict:
    return {"text": text}


@server.tool
def fail() -> str:
    raise ValueError("on purpose")


@server.tool
def die() -> str:
    os._exit(7)


@server.resource("stand-in://pid")
def pid() -> str:
    return str(os.getpid())


if len(sys.argv) > 1:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    server.run(show_banner=False)
