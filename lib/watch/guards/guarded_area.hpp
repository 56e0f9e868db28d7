#pragma once

#include <array>
#include <mutex>
#include <span>

#include "base/never_destroyed.hpp"
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

using pages::PageCount;
using pages::PageNumber;

/// Places blocks between pages that may not be accessed, in the part of the window that the address
/// space keeps for them, below the memory of all pools. Addresses are used in turn, so that a freed
/// block stays inaccessible for as long as possible. After Electric Fence and GWP-ASan (Serebryany
/// et al., "GWP-ASan: Sampling-Based Detection of Memory-Safety Bugs in Production", ICSE-SEIP
/// 2024). Thread-safe.
///
/// The memory of closed blocks is kept, up to `max_kept_bytes` in the process, which no capacity
/// contains. Then all of it is dropped, with few system calls. No system call for memory is made
/// under the lock.
class GuardedArea {
public:
    static constexpr unsigned max_blocks = 1024;
    static constexpr std::size_t max_kept_bytes = std::size_t{256} << 10;
    /// The largest alignment of a block.
    static constexpr std::size_t max_alignment = page_bytes;

    constexpr GuardedArea() noexcept = default;

    /// Reserves the addresses and the records, on the first call. Returns false if the system
    /// refuses; no block can then be guarded.
    bool set_up() noexcept {
        const std::lock_guard guard(mutex_);
        if (state_ == State::unknown) state_ = reserve() ? State::ready : State::unavailable;
        return state_ == State::ready;
    }

    /// Returns the bytes of the pages that such a block takes.
    static std::size_t bytes_for(std::size_t bytes, std::size_t alignment) noexcept;
    /// Returns the most bytes of a block, so that addresses are not reused soon; 0 before `set_up`.
    std::size_t max_block_bytes() const noexcept { return pages_ / 32 * page_bytes; }
    /// Makes a block in use of `bytes` bytes, more than 0, whose content is zero, and captures the
    /// caller's stack. Returns nullptr if too many blocks are in use, if it is too large, or if the
    /// system refuses. REQUIRES: `alignment` is a power of two of at most `max_alignment`.
    GuardedBlock* take(unsigned pool_number, const char* pool_name, std::size_t bytes,
                       std::size_t alignment) noexcept;
    /// Ends the use of a block and captures the caller's stack. Returns false, and does nothing, if
    /// another thread did so first. The block stays accessible until `close`.
    static bool end_use(GuardedBlock& block) noexcept;
    /// Makes a block whose use has ended inaccessible. Its memory is given back later.
    void close(GuardedBlock& block) noexcept;
    /// Releases all blocks of a pool that is destroyed, and ends their marks. Returns the bytes of
    /// pages of those that were in use.
    std::size_t forget_pool(unsigned pool_number) noexcept;

    /// Returns the record of the block, in use or freed, whose pages contain `p`; nullptr if there
    /// is none. Takes no lock.
    static GuardedBlock* find(const void* p) noexcept;
    /// Like `find`, and also finds the block beside an inaccessible page that contains `p`.
    static GuardedBlock* find_near(const void* p) noexcept;

    /// Returns the address of the block's first page.
    static char* address_of(const GuardedBlock& block) noexcept;

    /// Called around a fork.
    void lock() noexcept {
        drop_mutex_.lock();
        mutex_.lock();
    }
    void unlock() noexcept {
        mutex_.unlock();
        drop_mutex_.unlock();
    }

private:
    static constexpr unsigned record_count = 2 * max_blocks;
    /// Blocks, linked by `next`, oldest first.
    struct List {
        void add(GuardedBlock& block) noexcept {
            block.next = nullptr;
            (newest == nullptr ? oldest : newest->next) = &block;
            newest = &block;
        }
        void remove(const GuardedBlock& block) noexcept;

        GuardedBlock* oldest = nullptr;
        GuardedBlock* newest = nullptr;
    };
    // REQUIRES: `drop_mutex_` is held, and `mutex_` is not.
    void drop_kept() noexcept;
    // REQUIRES, for all that follow: the lock is held.
    bool reserve() noexcept;
    GuardedBlock* take_record() noexcept;
    bool find_room(PageCount pages, PageNumber& first) noexcept;
    bool clear(PageNumber first, PageCount pages, PageNumber& next) noexcept;
    void keep(GuardedBlock& block) noexcept {
        block.has_memory = true;
        block.state.store(GuardedBlock::State::freed, std::memory_order_release);
        kept_.add(block);
        kept_bytes_ += block.page_bytes_in_use();
    }
    void evict(GuardedBlock& block) noexcept;

    std::mutex drop_mutex_;  // held while memory is dropped
    std::mutex mutex_;       // guards all that follows; taken after the other
    enum class State : std::uint8_t { unknown, unavailable, ready };
    State state_ = State::unknown;
    PageCount pages_ = 0;    // of the area
    PageNumber cursor_ = 0;  // where the next block may begin; the page before is inaccessible
    unsigned in_use_ = 0;    // blocks
    GuardedBlock* records_ = nullptr;
    GuardedBlock* free_records_ = nullptr;
    unsigned records_used_ = 0;  // the first ones; no other was ever used
    List kept_;                  // closed blocks that have memory
    List freed_;                 // those that have none; they make room for others
    std::size_t kept_bytes_ = 0;
};

inline GuardedArea& guarded_area() noexcept {
    return base::the_only<GuardedArea>.get();
}

}  // namespace tensorpool::watch
