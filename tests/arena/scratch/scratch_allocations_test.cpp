// What a scratch allocates for itself, where a pool may serve malloc.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "arena/arena_table.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "platform/tools/memory_tools.hpp"

namespace {

/// Called by the next allocations and deallocations of this thread, while it is set.
thread_local void (*on_call)() noexcept = nullptr;
thread_local unsigned calls = 0;

void tell() noexcept {
    if (on_call == nullptr) return;
    ++calls;
    // What it allocates itself is not told.
    auto* const function = std::exchange(on_call, nullptr);
    function();
    on_call = function;
}

void* allocate(std::size_t bytes) noexcept {
    tell();
    return std::malloc(bytes == 0 ? 1 : bytes);
}

void* allocate_or_throw(std::size_t bytes) {
    if (void* const memory = allocate(bytes)) return memory;
    throw std::bad_alloc();
}

void deallocate(void* p) noexcept {
    tell();
    std::free(p);
}

}  // namespace

void* operator new(std::size_t bytes) {
    return allocate_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
    return allocate_or_throw(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void operator delete(void* p) noexcept {
    deallocate(p);
}
void operator delete[](void* p) noexcept {
    deallocate(p);
}
void operator delete(void* p, std::size_t) noexcept {
    deallocate(p);
}
void operator delete[](void* p, std::size_t) noexcept {
    deallocate(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
    deallocate(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
    deallocate(p);
}

namespace tensorpool::arena {
namespace {

// A recording takes the lock of the registry. If it were held there, this test would not end.
TEST(ScratchAllocations, ARecordingMayBeginInAnyOfThem) {
    statistics::ArenaTotals totals;
    ScratchChunks chunks(totals);
    Attempt attempt;
    on_call = []() noexcept {
        scratch_registry().show_quick_paths(false);
        scratch_registry().show_quick_paths(!platform::has_memory_tool());
    };
    std::size_t added = 0;
    for (unsigned i = 0; i != 5; ++i) {
        added += chunks.add_next(4096, 4096, 64, attempt) != 0 ? 1 : 0;
        if (i != 0) chunks.go_on(0);
    }
    chunks.drop_all();
    on_call = nullptr;
    EXPECT_EQ(added, 5U);
    EXPECT_GE(calls, 2U);
}

}  // namespace
}  // namespace tensorpool::arena
