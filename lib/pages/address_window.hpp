#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pages/growing_table.hpp"
#include "pages/page_map.hpp"

namespace tensorpool::pages {

/// The position of the process's address space, a window of up to 8 TiB in which nothing is
/// reserved ahead, and the tables that describe its granules: the page map and a word for the
/// lender of each. The tables lie below the window and grow with what is lent. Guarded by the lock
/// of the address space; look-ups in the tables take no lock.
class AddressWindow {
public:
    constexpr AddressWindow() noexcept = default;

    /// Chooses the position, once. Returns false, and may be called again, if the system has no
    /// addresses or no memory for the tables.
    bool set_up() noexcept;
    /// Makes the tables describe the first `granules` granules. Returns false if the system
    /// refuses addresses or memory for them.
    bool describe(std::uint32_t granules) noexcept;

    /// The number of granules of the window; 0 before it is set up.
    std::uint32_t granules() const noexcept { return granules_; }
    /// The number of granules that the tables describe.
    std::uint32_t described() const noexcept { return described_; }
    /// The largest alignment in pages for which a page whose number is a multiple of it also has an
    /// address that is.
    PageCount alignment() const noexcept { return alignment_; }

    constexpr PageMap& map() noexcept { return map_; }
    const PageMap& map() const noexcept { return map_; }
    /// A word for each granule that the tables describe, which is 0 at first.
    std::atomic<std::uint32_t>* lenders() const noexcept { return lenders_; }

private:
    bool place_anywhere() noexcept;
    bool place_below(std::uintptr_t end, std::size_t bytes) noexcept;

    PageMap map_;
    // The map uses the first two.
    GrowingTable entries_;
    GrowingTable granule_words_;
    GrowingTable lenders_table_;
    std::atomic<std::uint32_t>* lenders_ = nullptr;
    std::uint32_t granules_ = 0;
    std::uint32_t described_ = 0;
    PageCount alignment_ = granule_pages;
};

}  // namespace tensorpool::pages
