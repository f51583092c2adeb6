// What a policy in C needs besides its facts: text, lists, its settings, and a last word before it breaks.
//
// What the host passes belongs to the policy, which may change it and hand it back. Nothing is ever freed, and nothing
// needs to be: see libc.c.
#ifndef POLICY_SUPPORT_H
#define POLICY_SUPPORT_H

#include "policy.h"
#include <stdlib.h>
#include <string.h>

typedef policy_string_t string_t;

// A string literal, or other text that ends with a zero byte, as it is.
string_t text(const char *literal);

// Text put together: `%s` is a `const char *`, `%u` a `uint64_t`, `%t` a `string_t`, and `%%` a percent sign.
string_t format(const char *format, ...);

// Whether both are the same bytes.
bool same(string_t a, string_t b);

// Makes room for one more item at the end of a list `{ptr, len}`, and is that item, all zero.
#define APPEND(list) \
  (*((list)->ptr = with_room((list)->ptr, (list)->len, sizeof *(list)->ptr), (list)->ptr + (list)->len++))
void *with_room(void *items, size_t len, size_t size);

// One member of the settings. Only what `kind` names has a value.
typedef struct {
  string_t name;
  enum { SETTING_NULL, SETTING_BOOLEAN, SETTING_NUMBER, SETTING_TEXT, SETTING_ARRAY, SETTING_OBJECT } kind;
  bool boolean;
  double number;
  string_t text;
} setting_t;

typedef struct {
  setting_t *ptr;
  size_t len;
} settings_t;

// Reads the members of a JSON object of settings; empty text is no members. False where it is no JSON object.
bool read_settings(string_t json, settings_t *settings);

// A JSON pointer to the member `name`.
string_t pointer_to(string_t name);

// Ends the call at once. The host finds what was said here and shows it.
#define POLICY_PANIC(why) panic(__FILE__, __LINE__, why)
_Noreturn void panic(const char *file, unsigned line, const char *why);

#endif
