// Scratches for C. A tensorpool_scratch is a Scratch.

#include <tensorpool/scratch.hpp>

#include <cstddef>
#include <memory>
#include <new>

#include <tensorpool/tensorpool_arena.h>

#include "adaptors/c_calls.hpp"

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
