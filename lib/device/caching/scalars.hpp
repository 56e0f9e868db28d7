#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "device/caching/allocator_state.hpp"
#include "device/deferral/record_pool.hpp"

namespace tensorpool::device {

/// One small block cut into 64 places of 8 bytes.
struct ScalarPage {
    static constexpr std::size_t place_bytes = 8;
    static constexpr std::size_t places = 64;
    static_assert(places * place_bytes == small_grain);

    Block* block = nullptr;
    std::uint64_t used = 0;  // one bit a place
    // Other streams use one of its scalars: no place is used again, and when the last is freed the
    // block goes like any that other streams use.
    bool closed = false;
    ScalarPage* next = nullptr;  // of its stream's pages that are open and have a free place
    std::uint8_t bytes[places] = {};

    bool is_full() const noexcept { return ~used == 0; }
    /// REQUIRES: it is not full.
    std::size_t lowest_free() const noexcept {
        return static_cast<std::size_t>(std::countr_one(used)) % places;
    }
};

/// Constants of up to 8 bytes: 64 of them in one small block, a page. A page goes back like any
/// block when none of its scalars is in use and the allocator looks for free memory.
class Scalars {
public:
    explicit Scalars(AllocatorState& state) noexcept : state_(state) {}

    /// A record for a page to be opened. Throws std::bad_alloc.
    ScalarPage& take_record() { return records_.take(); }
    void give_record(ScalarPage& page) noexcept { records_.give(page); }
    void open(StreamCache& cache, Block& block, ScalarPage& page) noexcept;
    /// REQUIRES: the stream has a page with a free place.
    void* take(StreamCache& cache, std::size_t bytes) noexcept;
    static bool has(const Block& block, const void* address) noexcept;
    /// REQUIRES: `has(block, address)`.
    void free(Block& block, void* address) noexcept;
    /// Another stream uses one of its scalars: it is all freed at once, as one block.
    void close(Block& block) noexcept;
    /// Ends the stream's pages without a scalar in use.
    void end_empty(StreamCache& cache) noexcept;

private:
    void end(Block& block) noexcept;

    AllocatorState& state_;
    RecordPool<ScalarPage> records_;
};

}  // namespace tensorpool::device
