/* A program in C99 that uses arenas, scratches and contexts. It exits with 0 if all expectations
   hold. */

#include <string.h>

#include <tensorpool/tensorpool_arena.h>

#include "c_expect.h"

static void count_growth(const tensorpool_arena_event* event, void* user) {
    if (event->kind == tensorpool_arena_event_growth) ++*(int*)user;
}

static void use_arena(void) {
    int growths = 0;
    int i;
    size_t shape[2] = {64, 64};
    tensorpool_arena_options options;
    tensorpool_arena_statistics statistics;
    tensorpool_arena_mark mark;
    tensorpool_object object = {sizeof object, "weight", "tensor", "f32", shape, 2, 16384};
    char report[4096];
    tensorpool_arena* arena;
    float* weights;
    uint64_t id;

    expect(tensorpool_arena_options_init(&options, sizeof options) == tensorpool_ok, "options");
    options.name = "graph";
    options.initial_capacity = 1 << 16;
    options.max_capacity = (size_t)256 << 20;
    options.objects = 1;
    options.on_event = count_growth;
    options.on_event_user = &growths;
    arena = tensorpool_arena_create(&options);
    expect(arena != NULL, "an arena");
    if (arena == NULL) return;

    weights = tensorpool_arena_allocate(arena, 16384);
    expect(weights != NULL, "a block");
    memset(weights, 0, 16384);
    id = tensorpool_arena_record(arena, weights, &object);
    expect(id != 0, "a recorded object");
    object.name = "row";
    object.bytes = 256;
    expect(tensorpool_arena_record_view(arena, id, 256, &object) != 0, "a recorded view");
    expect(tensorpool_arena_analyze_json(arena, report, sizeof report) > 0, "an analysis");
    expect(strstr(report, "\"tensor\"") != NULL, "the kind in the analysis");

    expect(tensorpool_arena_set_mark(arena, &mark) == tensorpool_ok, "a mark");
    for (i = 0; i < 3; ++i) {
        expect(tensorpool_arena_allocate_aligned(arena, 1 << 20, 4096) != NULL, "a large block");
        expect(tensorpool_arena_release_to(arena, &mark) == tensorpool_ok, "a release");
    }
    expect(growths == 1, "one growth");
    expect(tensorpool_arena_used(arena) == 16384, "the weights stay");
    statistics.struct_bytes = sizeof statistics;
    expect(tensorpool_arena_read_statistics(arena, &statistics) == tensorpool_ok, "statistics");
    expect(statistics.used_bytes == 16384 && statistics.growths > 0, "figures");
    expect(tensorpool_arena_peak(arena) >= 1 << 20, "a peak");
    expect(tensorpool_arena_reset(arena) == tensorpool_ok, "a reset");
    expect(tensorpool_arena_release_to(arena, &mark) == tensorpool_invalid_argument,
           "a stale mark is refused");
    expect(tensorpool_arena_trim(arena) > 0, "memory given back");
    tensorpool_arena_destroy(arena);
}

static void use_scratch(void) {
    tensorpool_scratch* const scratch = tensorpool_scratch_local();
    tensorpool_scratch_scope outer;
    tensorpool_scratch_scope inner;
    size_t row_bytes = 0;
    expect(tensorpool_scratch_begin(scratch, &outer, "matmul") == tensorpool_ok, "a scope");
    expect(tensorpool_scratch_allocate(scratch, 100) != NULL, "scratch");
    expect(tensorpool_scratch_begin(scratch, &inner, NULL) == tensorpool_ok, "a scope inside it");
    expect(tensorpool_scratch_allocate_padded_matrix(scratch, 4, 1024, 4, &row_bytes) != NULL,
           "a padded matrix");
    expect(row_bytes == 4096 + 64, "padded rows");
    expect(tensorpool_scratch_reset(scratch) == tensorpool_other_failure, "no reset in a scope");
    tensorpool_scratch_end(&inner);
    expect(tensorpool_scratch_used(scratch) == 128, "the inner scope's memory is released");
    tensorpool_scratch_end(&outer);
    expect(tensorpool_scratch_used(scratch) == 0, "all is released");
}

static void use_context(void) {
    tensorpool_context* const context = tensorpool_context_create(NULL);
    const size_t mark = tensorpool_context_mark(context);
    char* const hidden = tensorpool_context_alloc(context, 1000);
    expect(context != NULL && hidden != NULL, "a context and a block");
    hidden[999] = 1;
    expect(tensorpool_context_scratch_alloc_matrix_pack(context, 8, 8, 4) != NULL, "a pack");
    expect(tensorpool_context_scratch_reset(context) == tensorpool_ok, "scratch released");
    expect(tensorpool_arena_used(tensorpool_context_arena(context)) == 1024, "the arena's bytes");
    expect(tensorpool_context_release_to(context, 4096) == tensorpool_invalid_argument,
           "a mark ahead is refused");
    expect(tensorpool_context_release_to(context, mark) == tensorpool_ok, "a release");
    tensorpool_context_destroy(context);
}

int main(void) {
    use_arena();
    use_scratch();
    use_context();
    return failures == 0 ? 0 : 1;
}
