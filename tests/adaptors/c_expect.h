#ifndef TENSORPOOL_TESTS_C_EXPECT_H
#define TENSORPOOL_TESTS_C_EXPECT_H

/* What the programs in C use to check their expectations. */

#include <stdio.h>

#include <tensorpool/tensorpool.h>

static int failures = 0;

static void expect(int condition, const char* what) {
    if (condition) return;
    fprintf(stderr, "expected: %s; last error: %s\n", what, tensorpool_last_error());
    ++failures;
}

#endif
