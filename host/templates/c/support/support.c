// Text, lists, and the last word of a policy that breaks.

#include "support.h"
#include <stdarg.h>

string_t text(const char *literal) { return (string_t){(uint8_t *)literal, strlen(literal)}; }

bool same(string_t a, string_t b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

// An empty list that comes from the host has a pointer that is not memory.
void *with_room(void *items, size_t len, size_t size) {
  uint8_t *moved = realloc(len ? items : NULL, (len + 1) * size);
  if (!moved) POLICY_PANIC("out of memory");
  memset(moved + size * len, 0, size);
  return moved;
}

static void add(string_t *to, const void *bytes, size_t len) {
  uint8_t *moved = realloc(to->ptr, to->len + len);
  if (!moved) POLICY_PANIC("out of memory");
  memcpy(moved + to->len, bytes, len);
  *to = (string_t){moved, to->len + len};
}

static void add_number(string_t *to, uint64_t number) {
  char digits[20];
  size_t first = sizeof digits;
  do digits[--first] = (char)('0' + number % 10);
  while (number /= 10);
  add(to, digits + first, sizeof digits - first);
}

string_t format(const char *format, ...) {
  string_t made = {0};
  va_list values;
  va_start(values, format);
  for (const char *at = format; *at; at++) {
    if (*at != '%') {
      add(&made, at, 1);
      continue;
    }
    switch (*++at) {
    case 's': {
      const char *value = va_arg(values, const char *);
      add(&made, value, strlen(value));
      break;
    }
    case 't': {
      string_t value = va_arg(values, string_t);
      add(&made, value.ptr, value.len);
      break;
    }
    case 'u': add_number(&made, va_arg(values, uint64_t)); break;
    case '%': add(&made, "%", 1); break;
    default: POLICY_PANIC("format knows %s, %t, %u and %% only");
    }
  }
  va_end(values);
  return made;
}

// The host looks for this in the memory of a policy that broke: the magic, the length of the text in bytes, the text.
// It is volatile, so that what is written just before the end is written at all.
static volatile struct {
  char magic[16];
  uint32_t len;
  char text[1024];
} last_word = {.magic = "headcount-panic"};

_Noreturn void panic(const char *file, unsigned line, const char *why) {
  // Not with `format`, which needs memory: there may be none left.
  char digits[12];
  size_t first = sizeof digits - 1;
  digits[first] = 0;
  do digits[--first] = (char)('0' + line % 10);
  while (line /= 10);
  const char *parts[] = {why, ", at ", file, ":", digits + first};
  size_t len = 0;
  for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
    for (const char *at = parts[part]; *at && len < sizeof last_word.text; at++) last_word.text[len++] = *at;
  last_word.len = (uint32_t)len;
  __builtin_trap();
}
