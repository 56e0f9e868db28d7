#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "pages/page_map.hpp"

namespace tensorpool::statistics {
struct ProfiledBlock;
}  // namespace tensorpool::statistics

namespace tensorpool::pages {

/// The record of a small block that the heap profile sampled. It lies at the beginning of pages of
/// its own. The record stays with its pages when the block is freed.
struct alignas(64) SampledBlock {
    PageRun pages;
    std::uint32_t block_bytes = 0;  // of its size class
    std::uint32_t requested = 0;
    std::uint16_t pool_number = 0;
    std::uint8_t bucket = 0;
    std::uint8_t series = 0;
    bool is_committed = false;
    /// Relaxed: look-ups of any address read it; the one who frees the block exchanges it.
    std::atomic<bool> in_use = false;
    statistics::ProfiledBlock* profiled = nullptr;
    SampledBlock* next = nullptr;  // of free records with as many pages
};

/// Small blocks that the heap profile samples lie in a part of the window below the memory of all
/// pools, so that a free recognizes them by their address. Each has pages of its own. Pages of
/// freed blocks are used again; few of them keep their memory. Thread-safe.
class SampledArea {
public:
    constexpr SampledArea() noexcept = default;
    SampledArea(const SampledArea&) = delete;
    SampledArea& operator=(const SampledArea&) = delete;

    /// The largest alignment of a block.
    static constexpr std::size_t max_alignment = page_bytes;

    /// Returns the bytes of the pages that a block takes.
    static std::size_t bytes_for(std::size_t block_bytes) noexcept;
    /// Returns a block in use; the caller fills in what it is for. Returns nullptr if no room is
    /// left or the system refuses memory.
    SampledBlock* take(unsigned pool_number, std::size_t block_bytes) noexcept;
    /// Ends the use of a block. Returns false, and does nothing, if it was freed before.
    static bool end_use(SampledBlock& block) noexcept {
        return block.in_use.exchange(false, std::memory_order_acq_rel);
    }
    /// Takes back the pages of a block whose use has ended.
    void give_back(SampledBlock& block) noexcept;
    /// Takes back all blocks of a pool that is destroyed. Returns the bytes of the pages of those
    /// that were in use.
    std::size_t forget_pool(unsigned pool_number) noexcept;

    static char* address_of(const SampledBlock& block) noexcept;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    static constexpr unsigned max_pages = 16;  // of a block of 64 KiB

    // REQUIRES, for all that follow: the lock is held.
    bool reserve() noexcept;
    SampledBlock* make(PageCount pages) noexcept;
    SampledBlock* make_record() noexcept;
    bool commit_up_to(PageNumber end) noexcept;
    void put_back(SampledBlock& block) noexcept;

    std::mutex mutex_;
    enum class State : std::uint8_t { unknown, unavailable, ready };
    State state_ = State::unknown;
    PageNumber begin_ = 0;      // of the area, as are the next two
    PageNumber used_end_ = 0;   // of the pages that were ever given out
    PageNumber committed_ = 0;  // the end of the pages that may be accessed
    PageNumber end_ = 0;
    PageCount kept_ = 0;  // of freed blocks, with memory
    SampledBlock* free_[max_pages + 1] = {};  // by pages
    SampledBlock* records_ = nullptr;         // not used yet
    SampledBlock* records_end_ = nullptr;
};

SampledArea& sampled_area() noexcept;

}  // namespace tensorpool::pages
