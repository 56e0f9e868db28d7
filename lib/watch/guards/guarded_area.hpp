#pragma once

#include <memory>

#include "pages/address_space.hpp"
#include "platform/stacks/program_stack.hpp"

namespace tensorpool::watch {

using pages::bytes_of;
using pages::guard_pages;
using pages::page_bytes;
using pages::PageCount;
using pages::PageEntry;
using pages::PageNumber;

/// Where a guarded block was allocated or freed.
struct GuardedStack {
    static constexpr std::size_t max_frames = 24;

    std::uint64_t thread = 0;
    std::uint32_t count = 0;
    std::array<std::uintptr_t, max_frames> frames = {};

    /// Stores the stack of the calling thread.
    void capture() noexcept {
        thread = platform::current_thread_id();
        count = static_cast<std::uint32_t>(platform::capture_stack(frames.data(), frames.size()));
    }
    std::span<const std::uintptr_t> view() const noexcept { return {frames.data(), count}; }
};

// The bytes before the block that are checked. Writes further down reach the inaccessible page or
// stay unnoticed.
inline constexpr std::size_t max_front = 64;

inline constexpr unsigned char fill = 0xA5;

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
    std::span<unsigned char> front(char* first_page) const noexcept {
        const std::size_t bytes = std::min(static_cast<std::size_t>(begin - first_page), max_front);
        return {reinterpret_cast<unsigned char*>(begin) - bytes, bytes};
    }
    std::span<unsigned char> slack(char* first_page) const noexcept {
        char* const end = first_page + page_bytes_in_use();
        return {reinterpret_cast<unsigned char*>(begin + requested),
                static_cast<std::size_t>(end - begin) - requested};
    }
    void fill_slack(char* first_page) const noexcept {
        std::ranges::fill(front(first_page), fill);
        std::ranges::fill(slack(first_page), fill);
    }
    /// Returns the address of a damaged byte, or nullptr if there is none.
    const void* find_damage(char* first_page) const noexcept {
        for (const std::span<unsigned char> bytes : {front(first_page), slack(first_page)}) {
            const auto damaged =
                std::ranges::find_if(bytes, [](unsigned char byte) { return byte != fill; });
            if (damaged != bytes.end()) return &*damaged;
        }
        return nullptr;
    }
};

/// Returns the record of the guarded block that the page with this entry belongs to; nullptr if it
/// belongs to none.
inline GuardedBlock* guarded_block(PageEntry entry) noexcept {
    return static_cast<GuardedBlock*>(entry.placed());
}

// Gives the memory of pages back, which become inaccessible. If the system refuses that, accesses
// go unnoticed.
inline void drop(pages::PageRun run) noexcept {
    if (run.count == 0) return;
    char* const begin = pages::address_space().address_of(run.first);
    if (platform::reserve_again(begin, bytes_of(run.count))) return;
    (void)platform::decommit(begin, bytes_of(run.count));
}

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
    static std::size_t bytes_for(std::size_t bytes, std::size_t alignment) noexcept {
        return base::align_up(base::align_up(bytes, alignment), bytes_of(guard_pages()));
    }
    /// Returns the most bytes of a block, so that addresses are not reused soon; 0 before `set_up`.
    std::size_t max_block_bytes() const noexcept { return pages_ / 32 * page_bytes; }
    /// Makes a block in use of `bytes` bytes, more than 0, whose content is zero, and captures the
    /// caller's stack. Returns nullptr if too many blocks are in use, if it is too large, or if the
    /// system refuses. REQUIRES: `alignment` is a power of two of at most `max_alignment`.
    GuardedBlock* take(unsigned pool_number, const char* pool_name, std::size_t bytes,
                       std::size_t alignment) noexcept {
        GuardedStack stack;
        stack.capture();
        std::unique_lock lock(mutex_);
        if (state_ != State::ready || in_use_ == max_blocks || bytes > max_block_bytes()) {
            return nullptr;
        }
        const auto pages = static_cast<PageCount>(bytes_for(bytes, alignment) / page_bytes);
        PageNumber first = 0;
        if (!find_room(pages, first)) return nullptr;
        GuardedBlock* const block = take_record();
        if (block == nullptr) return nullptr;
        block->state.store(GuardedBlock::State::changing, std::memory_order_relaxed);
        block->pool_number = static_cast<std::uint16_t>(pool_number);
        block->pages = {first, pages};
        block->requested = bytes;
        block->mark = nullptr;
        block->watcher = 0;
        pages::address_space().map().set_all(block->pages, PageEntry(block, pool_number));
        cursor_ = first + pages + guard_pages();
        ++in_use_;
        lock.unlock();

        char* const first_page = address_of(*block);
        std::snprintf(block->pool_name.data(), block->pool_name.size(), "%s", pool_name);
        block->begin = first_page + bytes_of(pages) - base::align_up(bytes, alignment);
        block->allocated = stack;
        block->freed.count = 0;
        if (platform::commit(first_page, bytes_of(pages))) {
            block->fill_slack(first_page);
            block->state.store(GuardedBlock::State::in_use, std::memory_order_release);
            return block;
        }
        lock.lock();
        evict(*block);
        --in_use_;
        return nullptr;
    }
    /// Ends the use of a block and captures the caller's stack. Returns false, and does nothing, if
    /// another thread did so first. The block stays accessible until `close`.
    static bool end_use(GuardedBlock& block) noexcept {
        GuardedStack stack;
        stack.capture();
        GuardedBlock::State expected = GuardedBlock::State::in_use;
        if (!block.state.compare_exchange_strong(expected, GuardedBlock::State::changing,
                                                 std::memory_order_acq_rel)) {
            return false;
        }
        block.freed = stack;
        return true;
    }
    /// Makes a block whose use has ended inaccessible. Its memory is given back later.
    void close(GuardedBlock& block) noexcept {
        const bool is_closed =
            platform::make_inaccessible(address_of(block), block.page_bytes_in_use());
        {
            const std::lock_guard guard(mutex_);
            keep(block);
            --in_use_;
            if (is_closed && kept_bytes_ <= max_kept_bytes) return;
        }
        const std::lock_guard guard(drop_mutex_);
        drop_kept();
    }
    /// Releases all blocks of a pool that is destroyed, and ends their marks. Returns the bytes of
    /// pages of those that were in use.
    std::size_t forget_pool(unsigned pool_number) noexcept {
        std::size_t bytes = 0;
        const auto for_each = [&](auto function) {
            const std::lock_guard guard(mutex_);
            for (unsigned i = 0; i != records_used_; ++i) {
                const GuardedBlock::State state = records_[i].state.load(std::memory_order_relaxed);
                if (state == GuardedBlock::State::unused || records_[i].pool_number != pool_number)
                    continue;
                function(records_[i], state == GuardedBlock::State::in_use);
            }
        };
        const std::lock_guard guard(drop_mutex_);
        for_each([&](GuardedBlock& block, bool in_use) {
            if (!in_use) return;
            if (block.mark != nullptr) block.mark->on_free(block.requested);
            bytes += block.page_bytes_in_use();
            --in_use_;
            keep(block);
        });
        drop_kept();
        for_each([&](GuardedBlock& block, bool) { evict(block); });
        return bytes;
    }

    /// Returns the record of the block, in use or freed, whose pages contain `p`; nullptr if there
    /// is none. Takes no lock.
    static GuardedBlock* find(const void* p) noexcept {
        return guarded_block(pages::address_space().map().at(p));
    }
    /// Like `find`, and also finds the block beside an inaccessible page that contains `p`.
    static GuardedBlock* find_near(const void* p) noexcept {
        const auto guard = static_cast<std::ptrdiff_t>(bytes_of(guard_pages()));
        for (const std::ptrdiff_t distance : {std::ptrdiff_t{0}, -guard, guard}) {
            if (GuardedBlock* const found = find(static_cast<const char*>(p) + distance))
                return found;
        }
        return nullptr;
    }

    /// Returns the address of the block's first page.
    static char* address_of(const GuardedBlock& block) noexcept {
        return pages::address_space().address_of(block.pages.first);
    }

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
        // Blocks leave almost always in the order in which they came.
        void remove(const GuardedBlock& block) noexcept {
            GuardedBlock* before = nullptr;
            GuardedBlock** link = &oldest;
            for (; *link != nullptr && *link != &block; link = &before->next) before = *link;
            if (*link == nullptr) return;
            *link = block.next;
            if (newest == &block) newest = before;
        }

        GuardedBlock* oldest = nullptr;
        GuardedBlock* newest = nullptr;
    };
    // REQUIRES: `drop_mutex_` is held, and `mutex_` is not. Blocks are freed almost always in the
    // order of their addresses or against it, and lie beside each other. What is between them is
    // inaccessible.
    void drop_kept() noexcept {
        List dropped;
        {
            const std::lock_guard guard(mutex_);
            dropped = std::exchange(kept_, {});
            kept_bytes_ = 0;
        }
        pages::PageRun run;
        for (const GuardedBlock* block = dropped.oldest; block != nullptr; block = block->next) {
            const auto [first, count] = block->pages;
            if (run.count != 0 && first == run.first + run.count + guard_pages()) {
                run.count += guard_pages() + count;
            } else if (run.count != 0 && first + count + guard_pages() == run.first) {
                run = {first, run.count + guard_pages() + count};
            } else {
                drop(run);
                run = block->pages;
            }
        }
        drop(run);
        const std::lock_guard guard(mutex_);
        while (GuardedBlock* const block = dropped.oldest) {
            dropped.oldest = block->next;
            block->has_memory = false;
            freed_.add(*block);
        }
    }
    // REQUIRES, for all that follow: the lock is held.
    bool reserve() noexcept {
        pages_ = pages::address_space().reserve_guarded();
        if (pages_ == 0) return false;
        const std::size_t bytes = platform::whole_pages(record_count * sizeof(GuardedBlock));
        void* const memory = platform::map(bytes, alignof(GuardedBlock));
        if (memory == nullptr) return false;
        records_ = static_cast<GuardedBlock*>(memory);
        std::uninitialized_default_construct_n(records_, record_count);
        for (unsigned i = record_count; i != 0; --i) {
            records_[i - 1].next = free_records_;
            free_records_ = &records_[i - 1];
        }
        cursor_ = guard_pages();
        return true;
    }
    GuardedBlock* take_record() noexcept {
        if (free_records_ == nullptr && freed_.oldest != nullptr) evict(*freed_.oldest);
        GuardedBlock* const block = free_records_;
        if (block == nullptr) return nullptr;
        free_records_ = block->next;
        records_used_ = std::max(records_used_, static_cast<unsigned>(block - records_) + 1);
        return block;
    }
    // Looks from the cursor to the end of the area, and once more from its beginning.
    bool find_room(PageCount pages, PageNumber& first) noexcept {
        for (unsigned rounds = 0; rounds != 2; ++rounds) {
            while (cursor_ + pages + guard_pages() <= pages_) {
                PageNumber next = 0;
                if (clear(cursor_, pages + guard_pages(), next)) {
                    first = cursor_;
                    return true;
                }
                cursor_ = next + guard_pages();
            }
            cursor_ = guard_pages();
        }
        return false;
    }
    // Evicts freed blocks without memory from a run. Returns false, with the end of another block
    // that lies in it, if there is one.
    bool clear(PageNumber first, PageCount pages, PageNumber& next) noexcept {
        for (PageNumber page = first; page != first + pages; ++page) {
            GuardedBlock* const block = guarded_block(pages::address_space().map().at(page));
            if (block == nullptr) continue;
            if (block->state.load(std::memory_order_relaxed) != GuardedBlock::State::freed ||
                block->has_memory) {
                next = block->pages.first + block->pages.count;
                return false;
            }
            evict(*block);
        }
        return true;
    }
    void keep(GuardedBlock& block) noexcept {
        block.has_memory = true;
        block.state.store(GuardedBlock::State::freed, std::memory_order_release);
        kept_.add(block);
        kept_bytes_ += block.page_bytes_in_use();
    }
    void evict(GuardedBlock& block) noexcept {
        freed_.remove(block);
        pages::address_space().map().set_all(block.pages, PageEntry());
        block.state.store(GuardedBlock::State::unused, std::memory_order_relaxed);
        block.next = free_records_;
        free_records_ = &block;
    }

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
