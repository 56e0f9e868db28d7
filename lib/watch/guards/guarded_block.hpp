#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pages/page_map.hpp"

namespace tensorpool::watch {

using pages::page_bytes;
using pages::PageEntry;

/// Where a guarded block was allocated or freed.
struct GuardedStack {
    static constexpr std::size_t max_frames = 24;

    std::uint64_t thread = 0;
    std::uint32_t count = 0;
    std::array<std::uintptr_t, max_frames> frames = {};

    /// Stores the stack of the calling thread.
    void capture() noexcept;
    std::span<const std::uintptr_t> view() const noexcept { return {frames.data(), count}; }
};

/// The record of a guarded block, which lies out of band. The block ends at an inaccessible page,
/// except for `slack()` bytes that its alignment needs, and another inaccessible page lies before
/// its first page. After its free the pages of the block are inaccessible too, and the record stays
/// until other blocks need the addresses or the record.
///
/// The entries of all pages of the block in the page map refer to the record. Records are never
/// unmapped, so a signal handler may read one at any time; what it reads is exact unless the record
/// is being reused.
struct alignas(64) GuardedBlock : pages::PlacedBlock {
    /// `changing`: its use begins, or has ended, and it is accessible.
    enum class State : std::uint8_t { unused, in_use, changing, freed };

    std::atomic<State> state = State::unused;
    std::uint16_t pool_number = 0;
    std::array<char, 48> pool_name = {};
    pages::PageRun pages = {};  // without those that are never accessible
    char* begin = nullptr;
    GuardedStack allocated;
    GuardedStack freed;
    bool has_memory = false;       // guarded by the lock of the area
    GuardedBlock* next = nullptr;  // in one of the lists of the area

    std::size_t page_bytes_in_use() const noexcept { return pages.count * page_bytes; }
    /// Returns the bytes before the block in its pages, and those behind it. `check_slack` finds
    /// writes into the latter and into the last of the former.
    std::span<unsigned char> front(char* first_page) const noexcept;
    std::span<unsigned char> slack(char* first_page) const noexcept;
    void fill_slack(char* first_page) const noexcept;
    /// Returns the address of a damaged byte, or nullptr if there is none.
    const void* find_damage(char* first_page) const noexcept;
};

/// Returns the record of the guarded block that the page with this entry belongs to; nullptr if it
/// belongs to none.
inline GuardedBlock* guarded_block(PageEntry entry) noexcept {
    return static_cast<GuardedBlock*>(entry.placed());
}

}  // namespace tensorpool::watch
