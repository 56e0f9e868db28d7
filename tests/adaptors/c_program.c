/* A program in C99 that uses the C interface. It exits with 0 if all expectations hold. */

#include <stdio.h>
#include <string.h>

#include <tensorpool/device/pluggable_allocator.h>
#include <tensorpool/tensorpool.h>

#include "c_expect.h"

static void count_events(const tensorpool_event* event, void* user) {
    if (event->kind == tensorpool_event_failure) ++*(int*)user;
}

static void use_pool(tensorpool_pool* pool) {
    tensorpool_statistics statistics;
    char report[8192];
    float* const weights = tensorpool_allocate(pool, 1000 * sizeof *weights);
    void* const page = tensorpool_allocate_aligned(pool, 100, 4096);
    char* text = tensorpool_allocate_zeroed(pool, 16, 1);

    statistics.struct_bytes = sizeof statistics;
    expect(weights != NULL && page != NULL && text != NULL, "three blocks");
    expect(tensorpool_usable_size(pool, weights) >= 1000 * sizeof *weights, "room for the weights");
    strcpy(text, "kept");
    text = tensorpool_reallocate(pool, text, 16, 200000);
    expect(text != NULL && strcmp(text, "kept") == 0, "content kept by reallocate");
    expect(tensorpool_owns(pool, text + 1) == 1, "the pool owns its block");

    expect(tensorpool_read_statistics(pool, &statistics) == tensorpool_ok, "statistics");
    expect(statistics.in_use_bytes >= 204000, "blocks counted");
    expect(tensorpool_report_text(pool, report, sizeof report) > 0, "a report");

    tensorpool_deallocate_sized(pool, weights, 1000 * sizeof *weights);
    tensorpool_deallocate_aligned(pool, page, 100, 4096);
    tensorpool_deallocate(pool, text);
    tensorpool_trim(pool);
    expect(tensorpool_read_statistics(pool, &statistics) == tensorpool_ok, "statistics");
    expect(statistics.in_use_bytes == 0, "nothing left in use");
}

int main(void) {
    int failed_requests = 0;
    tensorpool_pool* pool = NULL;
    tensorpool_options options;

    expect(tensorpool_torch_malloc(0, 0, NULL) == NULL, "0 bytes need no device");
    expect(tensorpool_options_init(&options, sizeof options) == tensorpool_ok, "options");
    options.name = "C";
    options.max_allocation = (size_t)1 << 20;
    options.on_event = count_events;
    options.on_event_user = &failed_requests;
    pool = tensorpool_create(&options);
    expect(pool != NULL, "a pool");
    if (pool == NULL) return 1;

    use_pool(pool);
    expect(tensorpool_reserve(pool, (size_t)1 << 20) == tensorpool_ok, "memory reserved");
    expect(tensorpool_allocate(pool, (size_t)2 << 20) == NULL, "a request beyond the limit fails");
    expect(strstr(tensorpool_last_error(), "max_allocation") != NULL, "the limit's name");
    expect(failed_requests == 1, "one failure reported");
    expect(tensorpool_destroy(pool) == tensorpool_ok, "the pool is destroyed");

    use_pool(tensorpool_global());
    printf("tensorpool %s\n", tensorpool_version());
    return failures == 0 ? 0 : 1;
}
