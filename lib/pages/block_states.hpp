#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::pages {

/// For each block of a bucket's span whether it is in use: of pools with checks. Out of band, in
/// memory that lives as long as the pool and only ever holds states of one bucket, so that what
/// they say of any address may be read without a lock. The states follow this head; 0: not in use.
struct alignas(16) BlockStates {
    /// One for each block, or, where it says for how many bytes too, the wide one.
    using State = std::atomic<std::uint8_t>;
    using WideState = std::atomic<std::uint16_t>;

    /// Where the span's first block begins.
    std::atomic<const char*> first_block = nullptr;
    /// The next that no span has. Guarded by the bucket's lock.
    BlockStates* next_free = nullptr;

    State& state(std::uint64_t index) noexcept { return reinterpret_cast<State*>(this + 1)[index]; }
    WideState& wide_state(std::uint64_t index) noexcept {
        return reinterpret_cast<WideState*>(this + 1)[index];
    }
};

}  // namespace tensorpool::pages
