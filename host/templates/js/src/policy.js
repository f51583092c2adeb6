// Holds a session to a budget of memory and tokens.
//
// It stands behind another policy in the chain, takes that one's verdict and adds to it: one check for each limit that
// is set. A sum over its limit fails, costs points and makes the session degraded. What was not measured does not count
// as nothing: where it might make the difference, the check says that it does not know.
//
// Amounts are doubles all along, and whole tenths when they are shown: so this policy says the same, to the letter, in
// whatever language it is written.

const GB = 1e9;
const MILLION = 1e6;
// Points that a failed check costs.
const COST = 25;
// The largest limit that can be set: beyond it a limit is a slip of the keyboard.
const LARGEST = 1e6;
// The settings, and how many bytes or tokens one of each is.
const UNITS = new Map([["memory_gb", GB], ["tokens_millions", MILLION]]);

// What the settings look like, as a JSON schema.
const SCHEMA = `{
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
}`;

// What the host calls. Of what is thrown only a string reaches it; anything else ends the call as a bare trap.
export const policy = {
  describe() {
    const summary = "Holds a session to a budget of memory and tokens.";
    return { name: "budget", version: "0.1.0", summary, settingsSchema: SCHEMA };
  },

  validateSettings(json) {
    return readLimits(json).problems;
  },

  judge(facts, soFar, settings) {
    try {
      return judge(facts, soFar, settings);
    } catch (error) {
      throw typeof error === "string" ? error : String(error);
    }
  },
};

function judge(facts, soFar, settings) {
  const { limits, problems } = readLimits(settings);
  if (problems.length > 0) throw problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
  if (soFar === null) throw "it needs the verdict of a policy before it";
  if (limits.has("memory_gb")) {
    const check = memory(facts.agents, limits.get("memory_gb"));
    add(soFar, check, "end agents that are no longer needed, or raise memory_gb");
  }
  if (limits.has("tokens_millions")) {
    const check = tokens(facts.agents, limits.get("tokens_millions"));
    add(soFar, check, "end or pause agents, or raise tokens_millions");
  }
  return soFar;
}

// The limits that are set, in whole bytes and tokens, and what is wrong with the settings.
function readLimits(text) {
  const limits = new Map();
  const problems = [];
  const settings = parse(text);
  if (settings === null || typeof settings !== "object" || Array.isArray(settings)) {
    return { limits, problems: [{ path: "", message: "must be a JSON object" }] };
  }
  for (const [name, value] of Object.entries(settings)) {
    if (!UNITS.has(name)) {
      problems.push(problem(name, "is no setting; there are memory_gb and tokens_millions"));
    } else if (typeof value === "number" && value > 0 && value <= LARGEST) {
      limits.set(name, Math.round(value * UNITS.get(name)));
    } else {
      problems.push(problem(name, "must be a number above 0 and at most 1000000"));
    }
  }
  if (problems.length === 0 && limits.size === 0) {
    problems.push({ path: "", message: "set memory_gb, tokens_millions or both" });
  }
  return { limits, problems };
}

// The value that `text` is in JSON; the empty text is an empty object, and what is no JSON is null.
function parse(text) {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch {
    return null;
  }
}

// A problem with a setting; its place is given as a JSON pointer.
function problem(setting, message) {
  return { path: "/" + setting.replaceAll("~", "~0").replaceAll("/", "~1"), message };
}

// The memory of all agents against its limit. null: it is within.
function memory(agents, limit) {
  const measured = agents.map(({ metrics }) => metrics.memoryBytes).filter((bytes) => bytes !== null);
  const value = sum(measured);
  // An agent that has ended, or runs on another machine, uses no memory here: there is nothing to measure.
  const isHere = ({ process }) => !["gone", "zombie", "not-local"].includes(process);
  const unmeasured = agents.filter((agent) => agent.metrics.memoryBytes === null && isHere(agent)).length;
  let detail = `${tenths(value, GB)} GB of memory in use (limit ${tenths(limit, GB)} GB)`;
  if (value > limit) return { name: "memory-budget", outcome: "fail", detail, value, limit };
  if (unmeasured === 0) return null;
  detail += `, but that of ${unmeasured} of ${agents.length} agents was not measured`;
  return { name: "memory-budget", outcome: "unknown", detail, value, limit };
}

// The tokens of all agents that tell theirs against the limit. null: they are within.
function tokens(agents, limit) {
  const counts = agents.map(({ usage }) => usedTokens(usage)).filter((count) => count !== null);
  const value = sum(counts);
  const [all, allowed] = [agents.length, tenths(limit, MILLION)];
  if (value > limit) {
    const detail = `${tenths(value, MILLION)} million tokens used (limit ${allowed} million)`;
    return { name: "token-budget", outcome: "fail", detail, value, limit };
  }
  if (all === 0 || counts.length > 0) return null;
  const detail = `tokens of ${all} of ${all} agents were not measured (limit ${allowed} million)`;
  return { name: "token-budget", outcome: "unknown", detail, value: null, limit };
}

// What an agent says that it has used; null where it says nothing of tokens. Tokens read from a cache cost next to
// nothing and are left out.
function usedTokens(usage) {
  if (usage === null) return null;
  const told = [usage.inputTokens, usage.outputTokens, usage.cacheWriteTokens].filter((count) => count !== null);
  return told.length > 0 ? sum(told) : null;
}

// Adds a check to the verdict, and what follows from it. One that passed is only counted.
function add(verdict, check, action) {
  if (check === null) {
    verdict.checksPassed += 1;
    return;
  }
  if (check.outcome === "fail") {
    verdict.advice.push({ agent: null, why: `${check.name}: ${check.detail}`, action });
    check.detail += `, −${COST}`;
    verdict.score = Math.max(verdict.score - COST, 0);
    // Worse stays worse, and where nothing is there or nothing is known, it stays so.
    if (verdict.health === "healthy") verdict.health = "degraded";
  }
  verdict.checks.push(check);
}

function sum(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}

// So many units with one decimal, rounded down.
function tenths(amount, unit) {
  const whole = Math.floor(amount / (unit / 10));
  return `${Math.floor(whole / 10)}.${whole % 10}`;
}
