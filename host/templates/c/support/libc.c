// The C library of a policy: memory and strings, and nothing that would have to be asked of a system.
//
// The host makes a new instance for every call and drops it afterwards. So memory is only ever handed out: a position
// moves on, and `free` has nothing to do. That is as fast as it can be, and text that stands in the program may be
// given to the host as it is.

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef __wasm_bulk_memory__
#error "compile with -mbulk-memory: memcpy and memset are single instructions then"
#endif

#define PAGE 65536

// Set by the linker: the first byte behind the program's own data.
extern unsigned char __heap_base;

static uintptr_t next; // where the next block begins; 0 = nothing was handed out yet
static uintptr_t end;  // how far the memory reaches

static uintptr_t aligned(uintptr_t position) { return (position + 7) & ~(uintptr_t)7; }

// Every block begins at a multiple of 8 and is preceded by its size, which `realloc` needs.
static size_t *size_of(void *memory) { return (size_t *)((uintptr_t)memory - 8); }

// Moves `next` on to `wanted`; false where there is not as much memory.
static bool reach(uintptr_t wanted) {
  if (wanted > end) {
    size_t pages = (wanted - end + PAGE - 1) / PAGE;
    if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return false;
    end += pages * PAGE;
  }
  next = wanted;
  return true;
}

void *malloc(size_t size) {
  if (next == 0) {
    next = aligned((uintptr_t)&__heap_base);
    end = __builtin_wasm_memory_size(0) * PAGE;
  }
  uintptr_t block = next + 8;
  if (size > SIZE_MAX / 4 || !reach(aligned(block + size))) return NULL;
  *size_of((void *)block) = size;
  return (void *)block;
}

// What was never handed out is zero.
void *calloc(size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);
}

void *realloc(void *memory, size_t size) {
  if (!memory) return malloc(size);
  size_t old = *size_of(memory);
  if (size <= old) return memory;
  bool is_last = aligned((uintptr_t)memory + old) == next;
  if (is_last && size <= SIZE_MAX / 4 && reach(aligned((uintptr_t)memory + size))) {
    *size_of(memory) = size;
    return memory;
  }
  void *moved = malloc(size);
  return moved ? memcpy(moved, memory, old) : NULL;
}

void free(void *memory) { (void)memory; }

_Noreturn void abort(void) { __builtin_trap(); }

void *memcpy(void *restrict to, const void *restrict from, size_t size) { return __builtin_memcpy(to, from, size); }

void *memmove(void *to, const void *from, size_t size) { return __builtin_memmove(to, from, size); }

void *memset(void *to, int byte, size_t size) { return __builtin_memset(to, byte, size); }

int memcmp(const void *a, const void *b, size_t size) {
  const unsigned char *x = a, *y = b;
  for (; size--; x++, y++)
    if (*x != *y) return *x < *y ? -1 : 1;
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}
