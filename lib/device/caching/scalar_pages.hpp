#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "device/caching/block.hpp"
#include "device/caching/record_pool.hpp"

namespace tensorpool::device {

/// One small block cut into 64 places of 8 bytes.
struct ScalarPage {
    static constexpr std::size_t place_bytes = 8;
    static constexpr std::size_t places = 64;
    static_assert(places * place_bytes == small_grain);

    Block* block = nullptr;
    std::uint64_t used = 0;  // one bit a place
    // Other streams were told of one of its scalars: no place is used again, and when the last is
    // freed the block goes as any that other streams use.
    bool closed = false;
    ScalarPage* next = nullptr;  // of its stream's pages that are open and have a free place
    std::uint8_t bytes[places] = {};

    bool is_full() const noexcept { return ~used == 0; }
    /// REQUIRES: it is not full.
    std::size_t lowest_free() const noexcept {
        return static_cast<std::size_t>(std::countr_one(used)) % places;
    }
};

/// The records. Under the allocator's lock.
using ScalarPages = RecordPool<ScalarPage>;

}  // namespace tensorpool::device
