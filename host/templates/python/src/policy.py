"""Holds a session to a budget of memory and tokens.

It stands behind another policy in the chain, takes that one's verdict and adds to it: one check for each limit that is
set. A sum over its limit fails, costs points and makes the session degraded. What was not measured does not count as
nothing: where it might make the difference, the check says that it does not know.

Amounts are doubles all along, and whole tenths when they are shown: so this policy says the same, to the letter, in
whatever language it is written.
"""

import json
import math

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.policy import Advice, Check, Description, Health, Outcome, Problem, ProcessState

GB = 1e9
MILLION = 1e6
# Points that a failed check costs.
COST = 25
# The largest limit that can be set: beyond it a limit is a slip of the keyboard.
LARGEST = 1e6
# The settings, and how many bytes or tokens one of each is.
UNITS = {"memory_gb": GB, "tokens_millions": MILLION}

# What the settings look like, as a JSON schema.
SCHEMA = """{
  "type": "object",
  "properties": {
    "memory_gb": {
      "description": "Memory that all agents together may use, in GB (1000000000 bytes).",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000
    },
    "tokens_millions": {
      "description": "Tokens that all agents together may use, in millions: input, output and those written to a cache.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000
    }
  },
  "minProperties": 1,
  "additionalProperties": false
}"""


class Policy(exports.Policy):
    """What the host calls. Of exceptions only `Err` reaches it as text; any other ends the call as a bare trap."""

    def describe(self):
        summary = "Holds a session to a budget of memory and tokens."
        return Description(name="budget", version="0.1.0", summary=summary, settings_schema=SCHEMA)

    def validate_settings(self, json):
        return read_limits(json)[1]

    def judge(self, facts, so_far, settings):
        try:
            return judge(facts, so_far, settings)
        except Err:
            raise
        except Exception as error:
            raise Err(f"{type(error).__name__}: {error}")


def judge(facts, so_far, settings):
    limits, problems = read_limits(settings)
    if problems:
        raise Err("; ".join(f"{problem.path}: {problem.message}" for problem in problems))
    if so_far is None:
        raise Err("it needs the verdict of a policy before it")
    if "memory_gb" in limits:
        check = memory(facts.agents, limits["memory_gb"])
        add(so_far, check, "end agents that are no longer needed, or raise memory_gb")
    if "tokens_millions" in limits:
        check = tokens(facts.agents, limits["tokens_millions"])
        add(so_far, check, "end or pause agents, or raise tokens_millions")
    return so_far


def read_limits(text):
    """The limits that are set, in whole bytes and tokens, and what is wrong with the settings."""
    try:
        settings = json.loads(text) if text else {}
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        return {}, [Problem("", "must be a JSON object")]
    limits, problems = {}, []
    for name, value in settings.items():
        if name not in UNITS:
            problems.append(problem(name, "is no setting; there are memory_gb and tokens_millions"))
        elif type(value) in (int, float) and 0 < value <= LARGEST:
            limits[name] = float(math.floor(value * UNITS[name] + 0.5))
        else:
            problems.append(problem(name, "must be a number above 0 and at most 1000000"))
    if not problems and not limits:
        problems.append(Problem("", "set memory_gb, tokens_millions or both"))
    return limits, problems


def problem(setting, message):
    """A problem with a setting; its place is given as a JSON pointer."""
    return Problem("/" + setting.replace("~", "~0").replace("/", "~1"), message)


def memory(agents, limit):
    """The memory of all agents against its limit. `None`: it is within."""
    measured = [agent.metrics.memory_bytes for agent in agents if agent.metrics.memory_bytes is not None]
    used = float(sum(measured))
    # An agent that has ended, or runs on another machine, uses no memory here: there is nothing to measure.
    elsewhere = (ProcessState.GONE, ProcessState.ZOMBIE, ProcessState.NOT_LOCAL)
    unmeasured = sum(agent.metrics.memory_bytes is None and agent.process not in elsewhere for agent in agents)
    detail = f"{tenths(used, GB)} GB of memory in use (limit {tenths(limit, GB)} GB)"
    if used > limit:
        return Check("memory-budget", Outcome.FAIL, detail, used, limit)
    if unmeasured > 0:
        detail += f", but that of {unmeasured} of {len(agents)} agents was not measured"
        return Check("memory-budget", Outcome.UNKNOWN, detail, used, limit)
    return None


def tokens(agents, limit):
    """The tokens of all agents that tell theirs against the limit. `None`: they are within."""
    counts = [count for agent in agents if (count := used_tokens(agent.usage)) is not None]
    used = float(sum(counts))
    allowed = tenths(limit, MILLION)
    if used > limit:
        detail = f"{tenths(used, MILLION)} million tokens used (limit {allowed} million)"
        return Check("token-budget", Outcome.FAIL, detail, used, limit)
    if agents and not counts:
        detail = f"tokens of {len(agents)} of {len(agents)} agents were not measured (limit {allowed} million)"
        return Check("token-budget", Outcome.UNKNOWN, detail, None, limit)
    return None


def used_tokens(usage):
    """What an agent says that it has used; `None` where it says nothing of tokens. Tokens read from a cache cost next
    to nothing and are left out."""
    if usage is None:
        return None
    told = [usage.input_tokens, usage.output_tokens, usage.cache_write_tokens]
    told = [count for count in told if count is not None]
    return sum(told) if told else None


def add(verdict, check, action):
    """Adds a check to the verdict, and what follows from it. One that passed is only counted."""
    if check is None:
        verdict.checks_passed += 1
        return
    if check.outcome == Outcome.FAIL:
        verdict.advice.append(Advice(None, f"{check.name}: {check.detail}", action))
        check.detail += f", −{COST}"
        verdict.score = max(verdict.score - COST, 0)
        # Worse stays worse, and where nothing is there or nothing is known, it stays so.
        if verdict.health == Health.HEALTHY:
            verdict.health = Health.DEGRADED
    verdict.checks.append(check)


def tenths(amount, unit):
    """So many units with one decimal, rounded down."""
    whole = int(amount / (unit / 10))
    return f"{whole // 10}.{whole % 10}"
