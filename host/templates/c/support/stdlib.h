// The little of <stdlib.h> that a policy needs: there is no C library in the sandbox. See libc.c.
#ifndef POLICY_STDLIB_H
#define POLICY_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);
_Noreturn void abort(void);

#endif
