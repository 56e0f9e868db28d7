#pragma once

/// @file
/// The calls that each kind of allocator makes for a step. A result of nullptr means that the
/// request failed. `keeps_apart`: blocks that are alive at the same time never share bytes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

/// The process's global pool, as NumPy, PyTorch and the interposer use it. Frees without a size,
/// because `free` has none either.
struct GlobalPoolCalls {
    static constexpr bool keeps_apart = true;
    static void* allocate(const Step& step, std::uint64_t) noexcept {
        MemoryPool& pool = get_global_memory_pool();
        if (step.alignment_log2() > Step::plain_alignment_log2) {
            return pool.try_allocate(step.bytes(), std::size_t{1} << step.alignment_log2());
        }
        try {
            return pool.allocate(step.bytes());
        } catch (const AllocationError&) {
            return nullptr;
        }
    }
    static void deallocate(void* block) noexcept { get_global_memory_pool().deallocate(block); }
    static void* resize(void* block, std::uint64_t old_bytes, const Step& step,
                        std::uint64_t) noexcept {
        try {
            return get_global_memory_pool().reallocate(block, old_bytes, step.bytes());
        } catch (const AllocationError&) {
            return nullptr;
        }
    }
};

/// The allocator that serves `malloc` in this process.
struct MallocCalls {
    static constexpr bool keeps_apart = true;
    static void* allocate(const Step& step, std::uint64_t) noexcept {
        if (step.alignment_log2() <= Step::plain_alignment_log2) return std::malloc(step.bytes());
        void* block = nullptr;
        const std::size_t alignment = std::size_t{1} << step.alignment_log2();
        return posix_memalign(&block, alignment, step.bytes()) == 0 ? block : nullptr;
    }
    static void deallocate(void* block) noexcept { std::free(block); }
    static void* resize(void* block, std::uint64_t, const Step& step, std::uint64_t) noexcept {
        return std::realloc(block, step.bytes());
    }
};

/// Memory with offsets that were computed before the replay: shows the cost of the replay without
/// any allocator. If threads make their calls in another order than recorded, blocks may overlap.
struct FloorCalls {
    static constexpr bool keeps_apart = false;
    static inline std::byte* base = nullptr;

    static void* allocate(const Step&, std::uint64_t offset) noexcept { return base + offset; }
    static void deallocate(void*) noexcept {}
    static void* resize(void*, std::uint64_t, const Step&, std::uint64_t offset) noexcept {
        return base + offset;
    }
};

/// One mapping in which each block has the offset of a plan that was made before the replay.
struct PlannedCalls {
    /// With several threads, blocks may overlap, as in FloorCalls.
    static constexpr bool keeps_apart = false;
    static inline std::byte* base = nullptr;

    static void* allocate(const Step&, std::uint64_t offset) noexcept { return base + offset; }
    static void deallocate(void*) noexcept {}
    /// The old range and the new one may share bytes, so the content is moved by memmove.
    static void* resize(void* block, std::uint64_t old_bytes, const Step& step,
                        std::uint64_t offset) noexcept {
        if (block == base + offset) return block;
        const std::uint64_t kept = old_bytes < step.bytes() ? old_bytes : step.bytes();
        return std::memmove(base + offset, block, kept);
    }
};

}  // namespace tensorpool::command::replay
