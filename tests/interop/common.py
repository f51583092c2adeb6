"""What both Python clients check: every tool, every answer against the schema that the server gives for it."""
import json
import os
import subprocess
from contextlib import contextmanager

import jsonschema


@contextmanager
def stand_in(headcount):
    """An idle process to register."""
    process = subprocess.Popen([headcount, "stand-in", "idle"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def environment():
    """The whole environment: SDKs pass on only a part by default, and the home folder must be the test's own."""
    return dict(os.environ)


def over_http():
    """The address and the token of a server that runs already; None: one is started, over stdio."""
    address = os.environ.get("MCP_URL")
    return address and (address, os.environ["MCP_TOKEN"])


def check_answer(tools, name, structured):
    """The structured answer is what the tool's output schema says."""
    assert structured is not None, f"{name} gave no structured content"
    jsonschema.Draft202012Validator(tools[name]).validate(structured)
    return structured


def check_status(report, pid):
    """The registered agent is in the report, alive and measured."""
    assert report["session_id"] == "interop" and report["agent_count"] == 1, report
    agent = report["agents"][0]
    assert agent["process_id"] == pid and agent["specialization"] == "tester", agent
    assert agent["status"] == "ACTIVE" and agent["activity"]["state"] in ("idle", "working"), agent
    assert agent["metrics"]["cpu_percent"] is not None and agent["metrics"]["memory_mb"] > 0, agent
    assert report["session_health"] == "HEALTHY", report


def tell_ledger(client, version, protocol, calls, failures):
    """Prints what the ledger has to say of this client, as ledger.py takes it."""
    said = {"name": client, "version": version, "protocol": protocol, "calls": dict(calls), "failures": failures}
    print(json.dumps(said))
