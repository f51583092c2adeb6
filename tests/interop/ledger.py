"""Whether the ledger says of a client what the client says of itself. Usage: CLIENT | ledger.py HEADCOUNT [GRANT]

CLIENT prints, as its last line, a JSON object with its name, version and protocol, the calls that it has made by tool, and how
many of them have failed. Over HTTP it is the only one of the grant of this name that calls anything."""
import json
import subprocess
import sys
import time
from collections import Counter

headcount, *grant_name = sys.argv[1:]
said = json.loads(sys.stdin.read().splitlines()[-1])


def told(*command):
    return json.loads(subprocess.run([headcount, *command, "--json"], check=True, capture_output=True, timeout=30).stdout)


grant = None
if grant_name:
    (grant,) = [grant["id"] for grant in told("grants", "list")["grants"] if grant["name"] in grant_name]
expected = {(said["version"], "http" if grant else "stdio")}, said["calls"], said["failures"]


def read():
    """What the ledger has of the client; whoever is started for each call has several rows."""
    rows = [row for row in told("clients", "--all")["sessions"] if row["grant_id"] == grant]
    ours = [row for row in rows if (row["client_name"], row["protocol"]) == (said["name"], said["protocol"])]
    # mcp-remote looks at the server first, as a client of another name.
    assert not grant or all(row in ours or row["tool_calls"] == 0 for row in rows), rows
    calls = Counter()
    for row in ours:
        assert row["tool_calls"] == sum(row["calls_by_tool"].values()), row
        calls.update(row["calls_by_tool"])
    who = {(row["client_version"], row["transport"]) for row in ours}
    return who, dict(calls), sum(row["tool_failures"] for row in ours)


# What clients do is on disk within a second.
deadline = time.monotonic() + 20
while (found := read()) != expected and time.monotonic() < deadline:
    time.sleep(0.1)
assert found == expected, f"the ledger has {found}, and not {expected}"
