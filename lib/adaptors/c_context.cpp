// Contexts for C. A tensorpool_context is a Context.

#include <tensorpool/context.hpp>

#include <utility>

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

namespace tensorpool::adaptors {
namespace {

constexpr const char* a_scratch = "one from tensorpool_scratch_local or tensorpool_context_scratch";

Scratch& to_scratch(tensorpool_scratch* scratch) {
    return required(reinterpret_cast<Scratch*>(scratch), "scratch", a_scratch);
}
const Scratch& to_scratch(const tensorpool_scratch* scratch) {
    return required(reinterpret_cast<const Scratch*>(scratch), "scratch", a_scratch);
}

static_assert(sizeof(ScratchScope) <= sizeof(tensorpool_scratch_scope));
static_assert(alignof(ScratchScope) <= alignof(tensorpool_scratch_scope));

}  // namespace

}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::Scratch;
using tensorpool::ScratchScope;

tensorpool_scratch* tensorpool_scratch_local() {
    return to_handle(
        guarded_or<Scratch*>(nullptr, "scratch_local", [] { return &Scratch::local(); }));
}

tensorpool_scratch* tensorpool_scratch_create_over(void* buffer, size_t bytes) {
    return to_handle(guarded_or<Scratch*>(nullptr, "scratch_create_over", [&] {
        return new Scratch(Scratch::over(to_buffer(buffer, bytes)));
    }));
}

void tensorpool_scratch_destroy(tensorpool_scratch* scratch) {
    delete reinterpret_cast<Scratch*>(scratch);
}

void* tensorpool_scratch_allocate(tensorpool_scratch* scratch, size_t bytes) {
    return guarded_or<void*>(nullptr, "scratch_allocate",
                             [&] { return to_scratch(scratch).allocate(bytes); });
}

void* tensorpool_scratch_allocate_aligned(tensorpool_scratch* scratch, size_t bytes,
                                          size_t alignment) {
    return guarded_or<void*>(nullptr, "scratch_allocate_aligned",
                             [&] { return to_scratch(scratch).allocate(bytes, alignment); });
}

void* tensorpool_scratch_allocate_matrix_pack(tensorpool_scratch* scratch, size_t rows,
                                              size_t columns, size_t element_bytes) {
    return guarded_or<void*>(nullptr, "scratch_allocate_matrix_pack", [&] {
        return to_scratch(scratch).allocate_matrix_pack(rows, columns, element_bytes);
    });
}

void* tensorpool_scratch_allocate_padded_matrix(tensorpool_scratch* scratch, size_t rows,
                                                size_t columns, size_t element_bytes,
                                                size_t* row_bytes) {
    return guarded_or<void*>(nullptr, "scratch_allocate_padded_matrix", [&] {
        std::size_t& distance = required(row_bytes, "row_bytes", "a size_t");
        const tensorpool::PaddedMatrix matrix =
            to_scratch(scratch).allocate_padded_matrix(rows, columns, element_bytes);
        distance = matrix.row_bytes;
        return matrix.data;
    });
}

tensorpool_status tensorpool_scratch_begin(tensorpool_scratch* scratch,
                                           tensorpool_scratch_scope* scope, const char* name) {
    return guarded("scratch_begin", [&] {
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
    return guarded("scratch_reset", [&] { to_scratch(scratch).reset(); });
}

tensorpool_status tensorpool_scratch_reserve(tensorpool_scratch* scratch, size_t bytes) {
    return guarded("scratch_reserve", [&] { to_scratch(scratch).reserve(bytes); });
}

size_t tensorpool_scratch_trim(tensorpool_scratch* scratch) {
    return guarded_or<std::size_t>(0, "scratch_trim", [&] { return to_scratch(scratch).trim(); });
}

size_t tensorpool_scratch_used(const tensorpool_scratch* scratch) {
    return guarded_or<std::size_t>(0, "scratch_used", [&] { return to_scratch(scratch).used(); });
}

size_t tensorpool_scratch_peak(const tensorpool_scratch* scratch) {
    return guarded_or<std::size_t>(0, "scratch_peak", [&] { return to_scratch(scratch).peak(); });
}

tensorpool_status tensorpool_scratch_read_statistics(const tensorpool_scratch* scratch,
                                                     tensorpool_arena_statistics* statistics) {
    return guarded("scratch_read_statistics",
                   [&] { fill_in(statistics, [&] { return to_scratch(scratch).statistics(); }); });
}
