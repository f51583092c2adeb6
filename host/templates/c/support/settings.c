// A reader of settings: a JSON object of numbers, text and booleans. What is deeper is checked and skipped.

#include "support.h"

#define DEEPEST 64

typedef struct {
  const uint8_t *at, *end;
} json_t;

static bool read_value(json_t *json, setting_t *value, unsigned depth);

static bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static void skip_space(json_t *json) {
  while (json->at < json->end && is_space(*json->at)) json->at++;
}

// Whether `literal` comes next; if so, it is behind us.
static bool eat(json_t *json, const char *literal) {
  size_t len = strlen(literal);
  if ((size_t)(json->end - json->at) < len || memcmp(json->at, literal, len) != 0) return false;
  json->at += len;
  return true;
}

static bool is_digit(const json_t *json) { return json->at < json->end && *json->at >= '0' && *json->at <= '9'; }

// ---- text

static bool read_hex(json_t *json, uint32_t *code) {
  if (json->end - json->at < 4) return false;
  *code = 0;
  for (int digit = 0; digit < 4; digit++) {
    uint8_t c = *json->at++, lower = c | 0x20;
    if (c >= '0' && c <= '9') *code = *code * 16 + (c - '0');
    else if (lower >= 'a' && lower <= 'f') *code = *code * 16 + (lower - 'a' + 10);
    else return false;
  }
  return true;
}

static uint8_t *put_utf8(uint8_t *to, uint32_t code) {
  if (code < 0x80) {
    *to++ = (uint8_t)code;
  } else {
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (uint8_t)((0xFF00 >> (more + 1)) | (code >> (6 * more)));
    while (more--) *to++ = 0x80 | ((code >> (6 * more)) & 0x3F);
  }
  return to;
}

// What stands behind a backslash. Half of a surrogate pair is no character.
static bool read_escape(json_t *json, uint8_t **to) {
  static const char written[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (json->at == json->end) return false;
  uint8_t c = *json->at++;
  if (c != 'u') {
    for (size_t i = 0; written[i]; i++)
      if (c == written[i]) {
        *(*to)++ = (uint8_t)meant[i];
        return true;
      }
    return false;
  }
  uint32_t code, low;
  if (!read_hex(json, &code) || (code >= 0xDC00 && code < 0xE000)) return false;
  if (code >= 0xD800 && code < 0xDC00) {
    if (!eat(json, "\\u") || !read_hex(json, &low) || low < 0xDC00 || low >= 0xE000) return false;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  *to = put_utf8(*to, code);
  return true;
}

static bool read_text(json_t *json, string_t *text) {
  if (!eat(json, "\"")) return false;
  // Text is never longer than it is written.
  const uint8_t *close = json->at;
  while (close < json->end && *close != '"') close += *close == '\\' ? 2 : 1;
  uint8_t *start = malloc((size_t)(close - json->at)), *to = start;
  if (!start) POLICY_PANIC("out of memory");
  while (json->at < json->end && *json->at >= ' ') {
    uint8_t c = *json->at++;
    if (c == '"') {
      *text = (string_t){start, (size_t)(to - start)};
      return true;
    }
    if (c != '\\') *to++ = c;
    else if (!read_escape(json, &to)) return false;
  }
  return false;
}

// ---- numbers

// Exact up to 15 digits, and near enough beyond.
static bool read_number(json_t *json, double *number) {
  bool is_negative = eat(json, "-");
  if (!is_digit(json) || (eat(json, "0") && is_digit(json))) return false;
  double digits = 0, scale = 1;
  int exponent = 0;
  for (; is_digit(json); json->at++) digits = digits * 10 + (*json->at - '0');
  if (eat(json, ".")) {
    if (!is_digit(json)) return false;
    for (; is_digit(json); json->at++, exponent--) digits = digits * 10 + (*json->at - '0');
  }
  if (eat(json, "e") || eat(json, "E")) {
    bool is_below = eat(json, "-");
    if (!is_below) eat(json, "+");
    if (!is_digit(json)) return false;
    int written = 0;
    for (; is_digit(json); json->at++)
      if (written < 10000) written = written * 10 + (*json->at - '0');
    exponent += is_below ? -written : written;
  }
  for (int left = exponent < 0 ? -exponent : exponent; left > 0; left--) scale *= 10;
  double size = digits == 0 ? 0 : exponent < 0 ? digits / scale : digits * scale;
  *number = is_negative ? -size : size;
  return size - size == 0; // neither infinite nor undefined
}

// ---- values

static bool read_list(json_t *json, unsigned depth) {
  setting_t item;
  if (!eat(json, "[")) return false;
  skip_space(json);
  if (eat(json, "]")) return true;
  do
    if (!read_value(json, &item, depth)) return false;
  while (eat(json, ","));
  return eat(json, "]");
}

// Of a name that stands there twice the last value counts.
static bool read_members(json_t *json, settings_t *members, unsigned depth) {
  if (!eat(json, "{")) return false;
  skip_space(json);
  if (eat(json, "}")) return true;
  do {
    setting_t member = {0};
    skip_space(json);
    if (!read_text(json, &member.name)) return false;
    skip_space(json);
    if (!eat(json, ":") || !read_value(json, &member, depth)) return false;
    size_t i = 0;
    while (i < members->len && !same(members->ptr[i].name, member.name)) i++;
    if (i == members->len) (void)APPEND(members);
    members->ptr[i] = member;
  } while (eat(json, ","));
  return eat(json, "}");
}

static bool read_bare(json_t *json, setting_t *value, unsigned depth) {
  settings_t skipped = {0};
  switch (json->at < json->end ? *json->at : 0) {
  case 'n': value->kind = SETTING_NULL; return eat(json, "null");
  case 't': value->kind = SETTING_BOOLEAN; value->boolean = true; return eat(json, "true");
  case 'f': value->kind = SETTING_BOOLEAN; value->boolean = false; return eat(json, "false");
  case '"': value->kind = SETTING_TEXT; return read_text(json, &value->text);
  case '[': value->kind = SETTING_ARRAY; return read_list(json, depth);
  case '{': value->kind = SETTING_OBJECT; return read_members(json, &skipped, depth);
  default: value->kind = SETTING_NUMBER; return read_number(json, &value->number);
  }
}

// Fills in all of `value` but its name. Space may stand on both sides.
static bool read_value(json_t *json, setting_t *value, unsigned depth) {
  skip_space(json);
  bool is_read = depth < DEEPEST && read_bare(json, value, depth + 1);
  skip_space(json);
  return is_read;
}

bool read_settings(string_t text, settings_t *settings) {
  *settings = (settings_t){0};
  if (text.len == 0) return true;
  json_t json = {text.ptr, text.ptr + text.len};
  skip_space(&json);
  bool is_read = read_members(&json, settings, 0);
  skip_space(&json);
  return is_read && json.at == json.end;
}

string_t pointer_to(string_t name) {
  string_t path = text("/");
  for (size_t i = 0; i < name.len; i++) {
    uint8_t c = name.ptr[i];
    string_t part = c == '~' ? text("~0") : c == '/' ? text("~1") : (string_t){&name.ptr[i], 1};
    path = format("%t%t", path, part);
  }
  return path;
}
