// Holds a session to a budget of memory and tokens.
//
// It stands behind another policy in the chain, takes that one's verdict and adds to it: one check for each limit that
// is set. A sum over its limit fails, costs points and makes the session degraded. What was not measured does not count
// as nothing: where it might make the difference, the check says that it does not know.
//
// Amounts are doubles all along, and whole tenths when they are shown: so this policy says the same, to the letter, in
// whatever language it is written.

#include "support.h"

#define GB 1e9
#define MILLION 1e6
// Points that a failed check costs.
#define COST 25
// The largest limit that can be set: beyond it a limit is a slip of the keyboard.
#define LARGEST 1e6

// What the settings look like, as a JSON schema.
static const char SCHEMA[] =
    "{\n"
    "  \"type\": \"object\",\n"
    "  \"properties\": {\n"
    "    \"memory_gb\": {\n"
    "      \"description\": \"Memory that all agents together may use, in GB (1000000000 bytes).\",\n"
    "      \"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 1000000\n"
    "    },\n"
    "    \"tokens_millions\": {\n"
    "      \"description\": \"Tokens that all agents together may use, in millions:"
    " input, output and those written to a cache.\",\n"
    "      \"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 1000000\n"
    "    }\n"
    "  },\n"
    "  \"minProperties\": 1,\n"
    "  \"additionalProperties\": false\n"
    "}";

// The limits that are set, in bytes and tokens.
typedef struct {
  policy_option_f64_t memory, tokens;
} limits_t;

static policy_option_f64_t some(double value) { return (policy_option_f64_t){true, value}; }

static limits_t read_limits(string_t json, policy_list_problem_t *problems) {
  limits_t limits = {0};
  settings_t settings;
  *problems = (policy_list_problem_t){0};
  if (!read_settings(json, &settings)) {
    APPEND(problems) = (policy_problem_t){text(""), text("must be a JSON object")};
    return limits;
  }
  for (size_t i = 0; i < settings.len; i++) {
    setting_t *setting = &settings.ptr[i];
    bool is_memory = same(setting->name, text("memory_gb")), is_tokens = same(setting->name, text("tokens_millions"));
    if (!is_memory && !is_tokens) {
      string_t message = text("is no setting; there are memory_gb and tokens_millions");
      APPEND(problems) = (policy_problem_t){pointer_to(setting->name), message};
    } else if (setting->kind != SETTING_NUMBER || setting->number <= 0 || setting->number > LARGEST) {
      string_t message = text("must be a number above 0 and at most 1000000");
      APPEND(problems) = (policy_problem_t){pointer_to(setting->name), message};
    } else {
      // Whole bytes and tokens.
      double limit = (double)(uint64_t)(setting->number * (is_memory ? GB : MILLION) + 0.5);
      *(is_memory ? &limits.memory : &limits.tokens) = some(limit);
    }
  }
  if (problems->len == 0 && !limits.memory.is_some && !limits.tokens.is_some)
    APPEND(problems) = (policy_problem_t){text(""), text("set memory_gb, tokens_millions or both")};
  return limits;
}

// So many units with one decimal, rounded down.
static string_t tenths(double amount, double unit) {
  uint64_t whole = (uint64_t)(amount / (unit / 10));
  return format("%u.%u", whole / 10, whole % 10);
}

// An agent that has ended, or runs on another machine, uses no memory here: there is nothing to measure.
static bool is_here(const policy_agent_t *agent) {
  return agent->process != POLICY_PROCESS_STATE_GONE && agent->process != POLICY_PROCESS_STATE_ZOMBIE &&
         agent->process != POLICY_PROCESS_STATE_NOT_LOCAL;
}

// The memory of all agents against its limit. An outcome of `pass`: it is within.
static policy_check_t memory(policy_list_agent_t agents, double limit) {
  double sum = 0;
  uint64_t unmeasured = 0;
  for (size_t i = 0; i < agents.len; i++) {
    policy_option_u64_t bytes = agents.ptr[i].metrics.memory_bytes;
    if (bytes.is_some) sum += (double)bytes.val;
    else unmeasured += is_here(&agents.ptr[i]);
  }
  policy_check_t check = {text("memory-budget"), POLICY_OUTCOME_PASS, {0}, some(sum), some(limit)};
  check.detail = format("%t GB of memory in use (limit %t GB)", tenths(sum, GB), tenths(limit, GB));
  if (sum > limit) {
    check.outcome = POLICY_OUTCOME_FAIL;
  } else if (unmeasured > 0) {
    check.outcome = POLICY_OUTCOME_UNKNOWN;
    uint64_t all = agents.len;
    check.detail = format("%t, but that of %u of %u agents was not measured", check.detail, unmeasured, all);
  }
  return check;
}

// Adds what an agent says that it has used to `sum`; false where it says nothing of tokens. Tokens read from a cache
// cost next to nothing and are left out.
static bool add_tokens(const policy_option_usage_t *usage, double *sum) {
  if (!usage->is_some) return false;
  policy_option_u64_t counts[] = {usage->val.input_tokens, usage->val.output_tokens, usage->val.cache_write_tokens};
  bool is_told = false;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (counts[i].is_some) *sum += (double)counts[i].val;
    is_told |= counts[i].is_some;
  }
  return is_told;
}

// The tokens of all agents that tell theirs against the limit. An outcome of `pass`: they are within.
static policy_check_t tokens(policy_list_agent_t agents, double limit) {
  double sum = 0;
  bool is_told = false;
  for (size_t i = 0; i < agents.len; i++) is_told |= add_tokens(&agents.ptr[i].usage, &sum);
  policy_check_t check = {text("token-budget"), POLICY_OUTCOME_PASS, {0}, some(sum), some(limit)};
  string_t allowed = tenths(limit, MILLION);
  if (sum > limit) {
    check.outcome = POLICY_OUTCOME_FAIL;
    check.detail = format("%t million tokens used (limit %t million)", tenths(sum, MILLION), allowed);
  } else if (agents.len > 0 && !is_told) {
    uint64_t all = agents.len;
    check.outcome = POLICY_OUTCOME_UNKNOWN;
    check.value = (policy_option_f64_t){0};
    check.detail = format("tokens of %u of %u agents were not measured (limit %t million)", all, all, allowed);
  }
  return check;
}

// Adds a check to the verdict, and what follows from it. One that passed is only counted.
static void add(policy_session_verdict_t *verdict, policy_check_t check, const char *action) {
  if (check.outcome == POLICY_OUTCOME_PASS) {
    verdict->checks_passed++;
    return;
  }
  if (check.outcome == POLICY_OUTCOME_FAIL) {
    string_t why = format("%t: %t", check.name, check.detail);
    APPEND(&verdict->advice) = (policy_advice_t){{0}, why, text(action)};
    check.detail = format("%t, −%u", check.detail, (uint64_t)COST);
    verdict->score = verdict->score > COST ? verdict->score - COST : 0;
    // Worse stays worse, and where nothing is there or nothing is known, it stays so.
    if (verdict->health == POLICY_HEALTH_HEALTHY) verdict->health = POLICY_HEALTH_DEGRADED;
  }
  APPEND(&verdict->checks) = check;
}

// ---- what the host calls

void policy_describe(policy_description_t *description) {
  description->name = text("budget");
  description->version = text("0.1.0");
  description->summary = text("Holds a session to a budget of memory and tokens.");
  description->settings_schema = text(SCHEMA);
}

void policy_validate_settings(string_t *json, policy_list_problem_t *problems) { read_limits(*json, problems); }

// False: declined, for the reason that is put into `error`. Without a policy before this one `so_far` is null.
bool policy_judge(policy_snapshot_t *facts, policy_session_verdict_t *so_far, string_t *settings,
                  policy_session_verdict_t *verdict, string_t *error) {
  policy_list_problem_t problems;
  limits_t limits = read_limits(*settings, &problems);
  for (size_t i = 0; i < problems.len; i++) {
    string_t before = i > 0 ? format("%t; ", *error) : text("");
    *error = format("%t%t: %t", before, problems.ptr[i].path, problems.ptr[i].message);
  }
  if (problems.len > 0) return false;
  if (!so_far) {
    *error = text("it needs the verdict of a policy before it");
    return false;
  }
  *verdict = *so_far;
  if (limits.memory.is_some)
    add(verdict, memory(facts->agents, limits.memory.val), "end agents that are no longer needed, or raise memory_gb");
  if (limits.tokens.is_some)
    add(verdict, tokens(facts->agents, limits.tokens.val), "end or pause agents, or raise tokens_millions");
  return true;
}
