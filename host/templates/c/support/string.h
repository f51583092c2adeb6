// The little of <string.h> that a policy needs: there is no C library in the sandbox. See libc.c.
#ifndef POLICY_STRING_H
#define POLICY_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strlen(const char *text);

#endif
