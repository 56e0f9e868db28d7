#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::statistics {

struct AddressRange {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
};

/// Shows readers in other processes the range that holds the memory of all pools, and the words of
/// its page map. Does nothing before the first pool has its record. One thread at a time may call
/// it, with the same beginnings each time.
void show_address_ranges(AddressRange pools, AddressRange page_map) noexcept;

}  // namespace tensorpool::statistics
