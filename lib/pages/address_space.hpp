#pragma once

#include "base/lockable.hpp"
#include "pages/heap/shards.hpp"
#include "pages/lent_memory.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

/// A zero-initialized array at a fixed address that grows on demand. It reserves nothing ahead. Not
/// thread-safe.
class GrowingTable {
public:
    void set_up(std::byte* begin) noexcept { begin_ = begin; }
    std::byte* begin() const noexcept { return begin_; }

    /// Grows the table to at least `bytes` bytes. Returns false, and changes nothing, if the system
    /// refuses or if other code has mapped something there.
    bool grow(std::size_t bytes) noexcept {
        if (bytes <= bytes_) return true;
        const std::size_t whole = base::align_up(bytes, unit);
        std::byte* const from = begin_ + bytes_;
        const std::size_t more = whole - bytes_;
        if (platform::reserve_at(from, more) != platform::ReservedAt::done) return false;
        if (!platform::commit(from, more)) {
            platform::release(from, more);
            return false;
        }
        bytes_ = whole;
        return true;
    }

    /// Unmaps the table, which is empty afterwards.
    void release() noexcept {
        if (bytes_ != 0) platform::release(begin_, bytes_);
        bytes_ = 0;
    }

private:
    // No system has larger pages.
    static constexpr std::size_t unit = std::size_t{64} << 10;

    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

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

/// The address space that the process's pools share. It lends runs of granules of its window to
/// pools, which it identifies by number, from the lowest free address up, and skips ranges where
/// others have mapped something. The lowest addresses of the window are kept for guarded blocks
/// and, behind these, for marked small blocks, so that a free recognizes both by their address.
/// Thread-safe.
class AddressSpace : public base::Lockable {
public:
    constexpr AddressSpace() noexcept = default;

    /// Lends a run of `wanted` pages to a shard of a pool, or of `needed` pages if no free run is
    /// that long, each rounded up to whole granules. The run begins at a multiple of `alignment`
    /// pages, a power of two. Its pages are not committed; its part of the page map is. Returns an
    /// empty run on failure. The shard `marked_shard` gets low addresses, and no others.
    PageRun lend(unsigned pool_number, PageCount needed, PageCount wanted, PageCount alignment = 1,
                 unsigned shard = 0) noexcept;
    /// The shard of each pool's heap that borrows the addresses kept for marked small blocks.
    static constexpr unsigned marked_shard = max_shards;
    /// Takes back everything in these whole granules that was lent to the pool, and unmaps it.
    void take_back(unsigned pool_number, PageRun granules) noexcept;

    /// Reserves the addresses of guarded blocks, from the first page on, once. Returns their number
    /// of pages; 0 if the system refuses.
    PageCount reserve_guarded() noexcept;
    /// Returns the lowest address of all that are not kept for guarded and marked blocks; 1 if
    /// there is no window. In that case these addresses are never lent, because callers keep the
    /// result.
    std::uintptr_t first_unguarded() noexcept;

    /// Returns whether `p` lies in a run that is lent to this pool. Takes no lock. The result is
    /// exact unless the run is lent or taken back at the same time.
    bool is_lent_to(unsigned pool_number, const void* p) const noexcept {
        return pool_of(lender_at(p)) == pool_number + 1;
    }
    /// Returns the shard that a page was lent to. Takes no lock. REQUIRES: the page is lent, and
    /// stays so during the call.
    unsigned shard_of(PageNumber page) const noexcept {
        return window_.lenders()[page / granule_pages].load(std::memory_order_relaxed) >> pool_bits;
    }
    /// Returns whether a page lies in a run that is lent to this shard of a pool. Takes no lock.
    /// The result is exact for a caller that holds the shard's lock, because only that shard
    /// borrows and returns its runs.
    bool is_lent_to(unsigned pool_number, unsigned shard, PageNumber page) const noexcept {
        const std::uint32_t lender = (pool_number + 1) | shard << pool_bits;
        return window_.lenders()[page / granule_pages].load(std::memory_order_relaxed) == lender;
    }
    /// Returns the number of the pool that the page of `p` is lent to; `max_pools` if there is
    /// none. Takes no lock. The result is exact unless the run is lent or taken back at the same
    /// time.
    unsigned lender_of(const void* p) const noexcept {
        const std::uint32_t pool = pool_of(lender_at(p));
        return pool == 0 || pool > max_pools ? max_pools : pool - 1;
    }
    /// Returns whether `p` lies in a run that is lent to any pool. Takes no lock. The result is
    /// exact unless the run is lent or taken back at the same time.
    bool is_lent(const void* p) const noexcept {
        const std::uint32_t lender = lender_at(p);
        return lender != 0 && lender != foreign;
    }

    /// Returns the number of pages that a pool should request if it has `lent_bytes` already: as
    /// many as it has, at least 64 MiB and at most 1 GiB, and at most a sixteenth of the addresses
    /// that the process may still reserve.
    PageCount usual_loan(std::size_t lent_bytes) const noexcept;

    /// The largest alignment in pages for which a page whose number is a multiple of it also has an
    /// address that is.
    PageCount max_alignment() noexcept {
        const std::lock_guard guard(mutex_);
        return set_up() ? window_.alignment() : granule_pages;
    }
    /// The number of pages of the window.
    PageCount max_pages() noexcept {
        const std::lock_guard guard(mutex_);
        return window_.granules() * granule_pages;
    }

    /// What a pool does with the memory at addresses that it was lent.
    LentMemory& memory() noexcept { return memory_; }
    PageMap& map() noexcept { return window_.map(); }
    const PageMap& map() const noexcept { return window_.map(); }
    char* address_of(PageNumber page) const noexcept { return map().address_of(page); }

private:
    // The word of a granule: the pool that it is lent to, as its number + 1, and the shard; 0 if it
    // is free. Relaxed: see `is_lent_to`.
    static constexpr unsigned pool_bits = 16;
    static constexpr std::uint32_t for_guarded = 0xFFFD;
    static constexpr std::uint32_t foreign = 0xFFFE;  // not the heap's: others may map there
    static constexpr std::uint32_t retired = 0xFFFF;  // could not be returned to the system
    static std::uint32_t pool_of(std::uint32_t lender) noexcept {
        return lender & ((std::uint32_t{1} << pool_bits) - 1);
    }

public:
    /// Pool numbers are less than this.
    static constexpr unsigned max_pools = for_guarded - 1;

private:
    // A run of granules by number.
    struct Granules {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        std::uint32_t end() const noexcept { return first + count; }
        PageRun pages() const noexcept { return {first * granule_pages, count * granule_pages}; }
    };
    // A part of the window. No granule of it below `first_free` is free.
    struct Part {
        std::uint32_t first_free = 0;
        std::uint32_t end = 0;
    };
    bool set_up() noexcept;
    Granules find_free(const Part& part, std::uint32_t count,
                       std::uint32_t alignment) const noexcept;
    Granules reserve(const Part& part, std::uint32_t count, std::uint32_t alignment) noexcept;
    void note_free(std::uint32_t granule) noexcept {
        Part& part = granule < for_marked_.end ? for_marked_ : for_others_;
        part.first_free = std::min(part.first_free, granule);
    }
    bool go_around(Granules taken, std::uint32_t limit) noexcept;
    bool forget_foreign() noexcept;
    void set_lender(Granules run, std::uint32_t lender) noexcept {
        for (std::uint32_t granule = run.first; granule != run.end(); ++granule) {
            window_.lenders()[granule].store(lender, std::memory_order_relaxed);
        }
    }
    // Granules that the tables do not describe were never lent.
    std::uint32_t lender_of(std::uint32_t granule) const noexcept {
        return granule < window_.described()
                   ? window_.lenders()[granule].load(std::memory_order_relaxed)
                   : 0;
    }
    std::uint32_t lender_at(const void* p) const noexcept;
    bool give_back(Granules run) noexcept;

    AddressWindow window_;
    LentMemory memory_{mutex_, window_.map()};
    std::uint32_t guarded_granules_ = 0;  // the first ones
    Part for_marked_;                     // behind them
    Part for_others_;                     // behind these
    bool uses_low_ = true;                // false after `first_unguarded` found no window
    // The number of granules that were skipped at the last foreign mapping.
    std::uint32_t skipped_ = 1;
};

/// Finds the usable bytes of the block at `p`, which lies in a pool whose blocks have fewer bytes
/// than their size class.
using ExactSize = std::size_t (*)(const void* p) noexcept;
/// Sets the function that `bytes_of_block_in_use` calls for blocks of the pool with this number.
void set_exact_size(unsigned pool_number, ExactSize function) noexcept;

/// The address space of the process. It is set up by the first loan and never destroyed.
AddressSpace& address_space() noexcept;

}  // namespace tensorpool::pages
