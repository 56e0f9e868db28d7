#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::pages {

/// The states of the blocks of one bucket's span, in pools with checks. They lie out of band, in
/// memory that lives as long as the pool and only ever holds states of one bucket, so the state for
/// any address may be read without a lock. The states follow this head; 0 means not in use.
struct alignas(16) BlockStates {
    /// There is one state for each block, a wide one if it also holds the requested bytes.
    using State = std::atomic<std::uint8_t>;
    using WideState = std::atomic<std::uint16_t>;

    /// The address of the span's first block.
    std::atomic<const char*> first_block = nullptr;
    /// The next in the list of unused states. Guarded by the bucket's lock.
    BlockStates* next_free = nullptr;

    State& state(std::uint64_t index) noexcept { return reinterpret_cast<State*>(this + 1)[index]; }
    WideState& wide_state(std::uint64_t index) noexcept {
        return reinterpret_cast<WideState*>(this + 1)[index];
    }
};

}  // namespace tensorpool::pages
