// Contexts for C. A tensorpool_context is a Context.

#include <tensorpool/context.hpp>

#include <cstddef>
#include <utility>

#include <tensorpool/tensorpool_arena.h>

#include "adaptors/c_calls.hpp"

namespace tensorpool::adaptors {
namespace {

constexpr const char* a_context = "one from tensorpool_context_create";

Context& to_context(tensorpool_context* context) {
    return required(reinterpret_cast<Context*>(context), "context", a_context);
}
const Context& to_context(const tensorpool_context* context) {
    return required(reinterpret_cast<const Context*>(context), "context", a_context);
}

template <class Make>
tensorpool_context* created(const char* function, Make make) noexcept {
    return reinterpret_cast<tensorpool_context*>(guarded_or<Context*>(nullptr, function, make));
}

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::Context;

tensorpool_context* tensorpool_context_create(const tensorpool_arena_options* options) {
    return created("context_create", [&] {
        return options == nullptr ? new Context() : new Context(to_arena_options(options));
    });
}

tensorpool_context* tensorpool_context_create_with_pool(const tensorpool_arena_options* options,
                                                        tensorpool_pool* pool, size_t small_bytes) {
    return created("context_create_with_pool", [&] {
        tensorpool::ContextOptions to;
        if (options != nullptr) to.arena = to_arena_options(options);
        to.pool = reinterpret_cast<tensorpool::MemoryPool*>(pool);
        to.small_bytes = small_bytes;
        return new Context(std::move(to));
    });
}

tensorpool_context* tensorpool_context_create_over(void* buffer, size_t bytes, size_t alignment) {
    return created("context_create_over",
                   [&] { return new Context(to_buffer(buffer, bytes), alignment); });
}

tensorpool_context* tensorpool_context_create_measuring(const tensorpool_arena_options* options) {
    return created("context_create_measuring", [&] {
        return options == nullptr ? new Context(Context::measuring())
                                  : new Context(Context::measuring(to_arena_options(options)));
    });
}

void tensorpool_context_destroy(tensorpool_context* context) {
    delete reinterpret_cast<Context*>(context);
}

void* tensorpool_context_allocate(tensorpool_context* context, size_t bytes) {
    return guarded_or<void*>(nullptr, "context_allocate",
                             [&] { return to_context(context).allocate(bytes); });
}

void tensorpool_context_deallocate(tensorpool_context* context, void* block, size_t bytes) {
    if (block == nullptr) return;
    guarded("context_deallocate", [&] { to_context(context).deallocate(block, bytes); });
}

int tensorpool_context_report_json(const tensorpool_context* context, char* buffer,
                                   size_t buffer_bytes) {
    return guarded_or<int>(-1, "context_report_json", [&] {
        return print(to_json(to_context(context).statistics()), buffer, buffer_bytes);
    });
}

void* tensorpool_context_alloc(tensorpool_context* context, size_t bytes) {
    return guarded_or<void*>(nullptr, "context_alloc",
                             [&] { return to_context(context).alloc(bytes); });
}

void* tensorpool_context_scratch_alloc(tensorpool_context* context, size_t bytes) {
    return guarded_or<void*>(nullptr, "context_scratch_alloc",
                             [&] { return to_context(context).scratch_alloc(bytes); });
}

void* tensorpool_context_scratch_alloc_matrix_pack(tensorpool_context* context, size_t rows,
                                                   size_t columns, size_t element_bytes) {
    return guarded_or<void*>(nullptr, "context_scratch_alloc_matrix_pack", [&] {
        return to_context(context).scratch_alloc_matrix_pack(rows, columns, element_bytes);
    });
}

tensorpool_status tensorpool_context_scratch_reset(tensorpool_context* context) {
    return guarded("context_scratch_reset", [&] { to_context(context).scratch_reset(); });
}

size_t tensorpool_context_mark(const tensorpool_context* context) {
    return guarded_or<std::size_t>(0, "context_mark", [&] { return to_context(context).mark(); });
}

tensorpool_status tensorpool_context_release_to(tensorpool_context* context, size_t mark) {
    return guarded("context_release_to", [&] { to_context(context).release_to(mark); });
}

tensorpool_status tensorpool_context_reset(tensorpool_context* context) {
    return guarded("context_reset", [&] { to_context(context).reset(); });
}

tensorpool_status tensorpool_context_save_scratch(tensorpool_context* context) {
    return guarded("context_save_scratch", [&] { to_context(context).save_scratch(); });
}

tensorpool_status tensorpool_context_restore_scratch(tensorpool_context* context) {
    return guarded("context_restore_scratch", [&] { to_context(context).restore_scratch(); });
}

tensorpool_status tensorpool_context_use_scratch(tensorpool_context* context, void* buffer,
                                                 size_t bytes) {
    return guarded("context_use_scratch",
                   [&] { to_context(context).use_scratch(to_buffer(buffer, bytes)); });
}

tensorpool_arena* tensorpool_context_arena(tensorpool_context* context) {
    return to_handle(guarded_or<tensorpool::Arena*>(nullptr, "context_arena",
                                                    [&] { return &to_context(context).arena(); }));
}

tensorpool_scratch* tensorpool_context_scratch(tensorpool_context* context) {
    return to_handle(guarded_or<tensorpool::Scratch*>(
        nullptr, "context_scratch", [&] { return &to_context(context).scratch(); }));
}
