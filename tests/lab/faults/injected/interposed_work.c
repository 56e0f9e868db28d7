// A program that allocates, for injected_calls.py. It tolerates refused memory and refused threads,
// and nothing else: every byte must be as it was written, and `once` and `some` require that
// requests succeed again after the refusals. It prints one line without the C library's streams.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { blocks = 400, rounds = 3, threads = 3, last_tries = 200 };
static volatile int failed = 0;

static void fail(const char* text) {
    failed = 1;
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(3);
}

static size_t size_of(unsigned number) {
    static const size_t large[] = {70000, 300000, 1500000, 9000000};
    return number % 40 == 39 ? large[number / 40 % 4] : 1 + (size_t)number * 7919 % 9000;
}

// The first and the last bytes identify the block.
static void mark(unsigned char* p, size_t bytes, unsigned number) {
    const size_t marked = bytes < 64 ? bytes : 64;
    memset(p, (int)(number % 251), marked);
    memset(p + bytes - marked, (int)(number % 251), marked);
}
static void check(const unsigned char* p, size_t bytes, unsigned number) {
    const size_t marked = bytes < 64 ? bytes : 64;
    for (size_t i = 0; i < marked; ++i) {
        if (p[i] != number % 251) return fail("interposed_work: a block lost its first bytes\n");
    }
}

static void* grow(unsigned char* p, size_t* bytes, unsigned number) {
    unsigned char* const moved = realloc(p, *bytes * 2);
    if (moved == NULL) return p;  // unchanged
    check(moved, *bytes, number);
    *bytes *= 2;
    mark(moved, *bytes, number);
    return moved;
}

static void* work(void* unused) {
    static _Thread_local unsigned char* kept[blocks];
    static _Thread_local size_t sizes[blocks];
    for (unsigned round = 0; round < rounds; ++round) {
        for (unsigned i = round; i < blocks; ++i) {
            sizes[i] = size_of(i + round);
            kept[i] = i % 5 == 0 ? calloc(1, sizes[i]) : malloc(sizes[i]);
            if (kept[i] == NULL) continue;
            if (i % 5 == 0 && kept[i][sizes[i] / 2] != 0) fail("interposed_work: not zero\n");
            mark(kept[i], sizes[i], i);
            if (i % 7 == 0) kept[i] = grow(kept[i], &sizes[i], i);
        }
        for (unsigned i = round; i < blocks; ++i) {
            if (kept[i] != NULL) check(kept[i], sizes[i], i);
            free(kept[i]);
        }
    }
    return unused;
}

// Counts the requests that fail.
static unsigned try_each_size(void) {
    unsigned refused = 0;
    for (unsigned i = 0; i < last_tries; ++i) {
        void* const p = malloc(size_of(i));
        refused += p == NULL;
        free(p);
    }
    return refused;
}

int main(int count, char** arguments) {
    const int must_serve = count > 1 && strcmp(arguments[1], "always") != 0;
    pthread_t started[threads];
    int runs[threads];
    for (int i = 0; i < threads; ++i) {
        runs[i] = pthread_create(&started[i], NULL, work, NULL) == 0;
        if (!runs[i]) work(NULL);
    }
    work(NULL);
    for (int i = 0; i < threads; ++i) {
        if (runs[i]) pthread_join(started[i], NULL);
    }
    // Refusals that are still due may be met by the first of these.
    for (int i = 0; i < 20 && must_serve && try_each_size() != 0; ++i) {
    }
    if (must_serve && try_each_size() != 0) fail("interposed_work: no service afterwards\n");
    if (write(STDOUT_FILENO, "worked\n", 7) != 7) return 3;
    return failed;
}
