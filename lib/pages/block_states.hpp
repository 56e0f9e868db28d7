#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::pages {

/// For each block of a bucket's span whether it is in use, and for how many bytes: of pools with
/// checks. Out of band, in memory that lives as long as the pool and only ever holds states of one
/// bucket, so that what they say of any address may be read without a lock.
struct alignas(16) BlockStates {
    /// 0: not in use. Otherwise 1 and the bytes of the block that were not asked for.
    using State = std::atomic<std::uint16_t>;

    /// Where the span's first block begins.
    std::atomic<const char*> first_block = nullptr;
    /// The next that no span has. Guarded by the bucket's lock.
    BlockStates* next_free = nullptr;

    State& operator[](std::uint64_t index) noexcept {
        return reinterpret_cast<State*>(this + 1)[index];
    }
    static constexpr std::size_t bytes_for(unsigned blocks) noexcept {
        return sizeof(BlockStates) + blocks * sizeof(State);
    }
};

}  // namespace tensorpool::pages
