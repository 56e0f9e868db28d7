#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/block_sizes.hpp"
#include "pages/page_map.hpp"

namespace tensorpool::statistics {
struct ProfiledBlock;
}  // namespace tensorpool::statistics

namespace tensorpool::pages {

/// Pages with small blocks of one pool and one size that the heap profile sampled. A set bit of
/// `in_use` belongs to a block that a caller holds. The entries of all these pages in the page map
/// refer to the record, also while no block is in use. Records are never unmapped.
struct alignas(64) SampledPages {
    static constexpr unsigned max_blocks = 64;

    PageRun pages;
    /// Written under the area's lock, as is `in_use`. Relaxed: look-ups of any address read them.
    std::atomic<base::BlockSize> size = base::BlockSize();
    // Guarded by the area's lock:
    unsigned pool_number = 0;
    unsigned taken = 0;
    bool is_committed = false;
    SampledPages* next = nullptr;
    SampledPages* before = nullptr;
    std::atomic<std::uint64_t> in_use = 0;
    statistics::ProfiledBlock* profiled[max_blocks] = {};

    std::size_t bytes() const noexcept { return std::size_t{pages.count} << page_shift; }
    std::size_t block_bytes() const noexcept {
        const base::BlockSize one = size.load(std::memory_order_relaxed);
        return base::block_bytes(one.series, one.bucket);
    }
    unsigned blocks() const noexcept {
        return static_cast<unsigned>(std::min<std::size_t>(bytes() / block_bytes(), max_blocks));
    }
};

/// One block of such pages.
struct SampledBlock {
    SampledPages* pages = nullptr;  // nullptr: none
    unsigned number = 0;

    char* address() const noexcept;
    statistics::ProfiledBlock*& profiled() const noexcept { return pages->profiled[number]; }
    bool is_in_use() const noexcept {
        return (pages->in_use.load(std::memory_order_relaxed) >> number & 1) != 0;
    }
};

/// Small blocks that the heap profile samples lie in a part of the window below the memory of all
/// pools, so that a free recognizes them by their address. Pages without blocks keep no memory.
/// Thread-safe.
class SampledArea {
public:
    constexpr SampledArea() noexcept = default;
    SampledArea(const SampledArea&) = delete;
    SampledArea& operator=(const SampledArea&) = delete;

    /// Returns the bytes of the pages that are opened for blocks of this size.
    static std::size_t bytes_for(base::BlockSize size) noexcept;
    /// Returns the block, in use or free, that contains `p`. Takes no lock.
    static SampledBlock find(const void* p) noexcept;

    /// Returns a block in use of open pages; none if there are no such pages with room.
    SampledBlock take(unsigned pool_number, base::BlockSize size) noexcept;
    /// Opens pages for blocks of this size and returns their first one, in use. Returns none if no
    /// room is left or the system refuses.
    SampledBlock open(unsigned pool_number, base::BlockSize size) noexcept;
    /// What the free of a block did.
    struct Freed {
        bool was_in_use = false;  // if not, nothing was done
        statistics::ProfiledBlock* profiled = nullptr;
        std::size_t closed_bytes = 0;  // of its pages, if none of their blocks is in use any more
    };
    Freed free(SampledBlock block) noexcept;
    /// Closes all pages of a pool that is destroyed. Returns their bytes.
    std::size_t forget_pool(unsigned pool_number) noexcept;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    static constexpr unsigned max_pages = 16;  // of a block of 64 KiB
    static constexpr unsigned list_count = 64;

    // REQUIRES, for all that follow: the lock is held.
    SampledPages*& open_list(unsigned pool_number, base::BlockSize size) noexcept;
    SampledBlock take_from(SampledPages& pages) noexcept;
    SampledPages*& list_of(const SampledPages& pages) noexcept {
        return open_list(pages.pool_number, pages.size.load(std::memory_order_relaxed));
    }
    void link(SampledPages*& list, SampledPages& pages) noexcept;
    void unlink(SampledPages*& list, SampledPages& pages) noexcept;
    SampledPages* take_closed(PageCount pages) noexcept;
    SampledPages* make(PageCount pages) noexcept;
    SampledPages* make_record() noexcept;
    bool commit_up_to(PageNumber end) noexcept;
    void close(SampledPages& pages) noexcept;

    std::mutex mutex_;
    bool is_reserved_ = false;
    PageNumber begin_ = 0;      // of the area, as are the next two
    PageNumber used_end_ = 0;   // of the pages that were ever open
    PageNumber committed_ = 0;  // the end of the pages that may be accessed
    PageNumber end_ = 0;
    SampledPages* closed_[max_pages + 1] = {};  // by the number of pages
    SampledPages* open_[list_count] = {};       // with room, by a hash of pool and size
    SampledPages* records_ = nullptr;           // not used yet
    SampledPages* records_end_ = nullptr;
};

SampledArea& sampled_area() noexcept;

}  // namespace tensorpool::pages
