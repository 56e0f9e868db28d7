// Contexts for C. A tensorpool_context is a Context.

#include <tensorpool/context.hpp>

#include <utility>

#include "adaptors/c_calls.hpp"

namespace tensorpool::adaptors {
namespace {

auto& to_context(auto* context) {
    return object_of<Context>(context, "context", "one from tensorpool_context_create");
}

template <class Make>
tensorpool_context* created(Make make, const char* function = __builtin_FUNCTION()) noexcept {
    return reinterpret_cast<tensorpool_context*>(or_zero(make, function));
}

auto& to_scratch(auto* scratch) {
    return object_of<Scratch>(scratch, "scratch",
                              "one from tensorpool_scratch_local or tensorpool_context_scratch");
}

static_assert(sizeof(ScratchScope) <= sizeof(tensorpool_scratch_scope));
static_assert(alignof(ScratchScope) <= alignof(tensorpool_scratch_scope));

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::Context;
using tensorpool::Scratch;
using tensorpool::ScratchScope;

tensorpool_context* tensorpool_context_create(const tensorpool_arena_options* options) {
    return created([&] {
        return options == nullptr ? new Context() : new Context(to_arena_options(options));
    });
}

tensorpool_context* tensorpool_context_create_with_pool(const tensorpool_arena_options* options,
                                                        tensorpool_pool* pool, size_t small_bytes) {
    return created([&] {
        tensorpool::ContextOptions to;
        if (options != nullptr) to.arena = to_arena_options(options);
        to.pool = reinterpret_cast<tensorpool::MemoryPool*>(pool);
        to.small_bytes = small_bytes;
        return new Context(std::move(to));
    });
}

tensorpool_context* tensorpool_context_create_over(void* buffer, size_t bytes, size_t alignment) {
    return created([&] { return new Context(to_buffer(buffer, bytes), alignment); });
}

tensorpool_context* tensorpool_context_create_measuring(const tensorpool_arena_options* options) {
    return created([&] {
        return options == nullptr ? new Context(Context::measuring())
                                  : new Context(Context::measuring(to_arena_options(options)));
    });
}

void tensorpool_context_destroy(tensorpool_context* context) {
    delete reinterpret_cast<Context*>(context);
}

void* tensorpool_context_allocate(tensorpool_context* context, size_t bytes) {
    return or_zero([&] { return to_context(context).allocate(bytes); });
}

void tensorpool_context_deallocate(tensorpool_context* context, void* block, size_t bytes) {
    if (block == nullptr) return;
    guarded([&] { to_context(context).deallocate(block, bytes); });
}

int tensorpool_context_report_json(const tensorpool_context* context, char* buffer,
                                   size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_json(to_context(context).statistics()); });
}

void* tensorpool_context_alloc(tensorpool_context* context, size_t bytes) {
    return or_zero([&] { return to_context(context).alloc(bytes); });
}

void* tensorpool_context_scratch_alloc(tensorpool_context* context, size_t bytes) {
    return or_zero([&] { return to_context(context).scratch_alloc(bytes); });
}

void* tensorpool_context_scratch_alloc_matrix_pack(tensorpool_context* context, size_t rows,
                                                   size_t columns, size_t element_bytes) {
    return or_zero([&] {
        return to_context(context).scratch_alloc_matrix_pack(rows, columns, element_bytes);
    });
}

tensorpool_status tensorpool_context_scratch_reset(tensorpool_context* context) {
    return guarded([&] { to_context(context).scratch_reset(); });
}

size_t tensorpool_context_mark(const tensorpool_context* context) {
    return or_zero([&] { return to_context(context).mark(); });
}

tensorpool_status tensorpool_context_release_to(tensorpool_context* context, size_t mark) {
    return guarded([&] { to_context(context).release_to(mark); });
}

tensorpool_status tensorpool_context_reset(tensorpool_context* context) {
    return guarded([&] { to_context(context).reset(); });
}

tensorpool_status tensorpool_context_save_scratch(tensorpool_context* context) {
    return guarded([&] { to_context(context).save_scratch(); });
}

tensorpool_status tensorpool_context_restore_scratch(tensorpool_context* context) {
    return guarded([&] { to_context(context).restore_scratch(); });
}

tensorpool_status tensorpool_context_use_scratch(tensorpool_context* context, void* buffer,
                                                 size_t bytes) {
    return guarded([&] { to_context(context).use_scratch(to_buffer(buffer, bytes)); });
}

tensorpool_arena* tensorpool_context_arena(tensorpool_context* context) {
    return to_handle(or_zero([&] { return &to_context(context).arena(); }));
}

tensorpool_scratch* tensorpool_context_scratch(tensorpool_context* context) {
    return to_handle(or_zero([&] { return &to_context(context).scratch(); }));
}

tensorpool_scratch* tensorpool_scratch_local() {
    return to_handle(or_zero([] { return &Scratch::local(); }));
}

tensorpool_scratch* tensorpool_scratch_create_over(void* buffer, size_t bytes) {
    return to_handle(or_zero([&] { return new Scratch(Scratch::over(to_buffer(buffer, bytes))); }));
}

void tensorpool_scratch_destroy(tensorpool_scratch* scratch) {
    delete reinterpret_cast<Scratch*>(scratch);
}

void* tensorpool_scratch_allocate(tensorpool_scratch* scratch, size_t bytes) {
    return or_zero([&] { return to_scratch(scratch).allocate(bytes); });
}

void* tensorpool_scratch_allocate_aligned(tensorpool_scratch* scratch, size_t bytes,
                                          size_t alignment) {
    return or_zero([&] { return to_scratch(scratch).allocate(bytes, alignment); });
}

void* tensorpool_scratch_allocate_matrix_pack(tensorpool_scratch* scratch, size_t rows,
                                              size_t columns, size_t element_bytes) {
    return or_zero(
        [&] { return to_scratch(scratch).allocate_matrix_pack(rows, columns, element_bytes); });
}

void* tensorpool_scratch_allocate_padded_matrix(tensorpool_scratch* scratch, size_t rows,
                                                size_t columns, size_t element_bytes,
                                                size_t* row_bytes) {
    return or_zero([&] {
        std::size_t& distance = required(row_bytes, "row_bytes", "a size_t");
        const tensorpool::PaddedMatrix matrix =
            to_scratch(scratch).allocate_padded_matrix(rows, columns, element_bytes);
        distance = matrix.row_bytes;
        return matrix.data;
    });
}

tensorpool_status tensorpool_scratch_begin(tensorpool_scratch* scratch,
                                           tensorpool_scratch_scope* scope, const char* name) {
    return guarded([&] {
        required(scope, "scope", "a struct");
        Scratch& of = to_scratch(scratch);
        if (name == nullptr) {
            ::new (static_cast<void*>(scope)) ScratchScope(of);
        } else {
            ::new (static_cast<void*>(scope)) ScratchScope(of, name);
        }
    });
}

void tensorpool_scratch_end(tensorpool_scratch_scope* scope) {
    if (scope == nullptr) return;
    std::destroy_at(std::launder(reinterpret_cast<ScratchScope*>(scope)));
}

tensorpool_status tensorpool_scratch_reset(tensorpool_scratch* scratch) {
    return guarded([&] { to_scratch(scratch).reset(); });
}

tensorpool_status tensorpool_scratch_reserve(tensorpool_scratch* scratch, size_t bytes) {
    return guarded([&] { to_scratch(scratch).reserve(bytes); });
}

size_t tensorpool_scratch_trim(tensorpool_scratch* scratch) {
    return or_zero([&] { return to_scratch(scratch).trim(); });
}

size_t tensorpool_scratch_used(const tensorpool_scratch* scratch) {
    return or_zero([&] { return to_scratch(scratch).used(); });
}

size_t tensorpool_scratch_peak(const tensorpool_scratch* scratch) {
    return or_zero([&] { return to_scratch(scratch).peak(); });
}

tensorpool_status tensorpool_scratch_read_statistics(const tensorpool_scratch* scratch,
                                                     tensorpool_arena_statistics* statistics) {
    return guarded([&] { fill_in(statistics, [&] { return to_scratch(scratch).statistics(); }); });
}
