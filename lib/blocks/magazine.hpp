#pragma once

#include <functional>

#include <boost/intrusive/slist.hpp>
#include <boost/pool/pool.hpp>

#include "blocks/bucket_layout.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// An array of free blocks of one bucket that moves as a unit. At most one holder at a time, a
/// thread's cache or a depot, accesses it. A thread counts the blocks of its loaded magazine
/// elsewhere (detail::LoadedMagazine); `count` is out of date then.
struct Magazine : boost::intrusive::slist_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    unsigned count = 0;
    std::uint32_t number = 0;     // its index in its depot's MagazineTable
    const void* giver = nullptr;  // the MagazinePair that put it into a depot, if it still exists
    void* blocks[magazine_room];
};

/// Returns whether blocks of this size share cache lines and more than a quarter of those in the
/// magazine are not adjacent, by a sample of pairs. A thread that took it from a depot would write
/// to the same cache lines as the thread that gave it.
// Of 128 blocks, 8 pairs: both even and odd places, because blocks may have been freed in pairs.
inline bool splits_lines(const Magazine& magazine, std::size_t block_bytes) noexcept {
    if (block_bytes % cache_line_bytes == 0) return false;
    unsigned pairs = 0;
    unsigned neighbors = 0;
    for (unsigned i = 1; i < magazine.count; i += 17) {
        const auto first = reinterpret_cast<std::uintptr_t>(magazine.blocks[i - 1]);
        const auto second = reinterpret_cast<std::uintptr_t>(magazine.blocks[i]);
        const std::uintptr_t distance = first < second ? second - first : first - second;
        neighbors += distance == block_bytes ? 1 : 0;
        ++pairs;
    }
    return 4 * neighbors < 3 * pairs;
}

using MagazineList = boost::intrusive::slist<Magazine, boost::intrusive::constant_time_size<false>>;

// The size of each chunk lies before it, in a cache line of its own so that the chunk stays
// aligned.
inline constexpr std::size_t head_bytes = cache_line_bytes;

/// An allocator for boost::pool that maps memory from the system and unmaps it again.
struct SystemChunks {
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    static char* malloc(size_type bytes) noexcept {
        const std::size_t unit = platform::page_bytes();
        const std::size_t whole = base::align_up(bytes + head_bytes, unit);
        void* const memory = platform::map(whole, unit);
        if (memory == nullptr) return nullptr;
        new (memory) std::size_t(whole);
        return static_cast<char*>(memory) + head_bytes;
    }
    static void free(char* chunk) noexcept {
        char* const memory = chunk - head_bytes;
        platform::unmap(memory, *reinterpret_cast<std::size_t*>(memory));
    }
};

inline constexpr std::size_t max_chunk_magazines = 62;

// A chunk of 15 magazines with its head fills four pages of 4 KiB. Chunks grow up to 64 KiB.
inline constexpr std::size_t first_chunk_magazines = 15;

/// The magazines of one series of a pool. Thread-safe.
class MagazineStore : public base::Lockable, public pages::HeldBytes {
public:
    MagazineStore() noexcept
        : pool_(sizeof(Magazine), first_chunk_magazines, max_chunk_magazines) {}

    /// Makes an empty magazine. Returns nullptr if the system has no memory.
    Magazine* make() noexcept {
        const std::lock_guard guard(mutex_);
        // All calls use the ordered variants: only an ordered pool can find chunks without
        // magazines.
        void* const memory = pool_.ordered_malloc();
        if (memory == nullptr) return nullptr;
        count_held(sizeof(Magazine));
        return new (memory) Magazine;
    }
    /// Destroys these magazines and returns chunks that hold no magazine to the system.
    void destroy(MagazineList& magazines) noexcept {
        // Freed from the highest address down, each magazine goes to the head of the ordered free
        // list, so no search is needed.
        magazines.sort(
            [](const Magazine& a, const Magazine& b) { return std::greater<>()(&a, &b); });
        const std::lock_guard guard(mutex_);
        while (!magazines.empty()) {
            Magazine& magazine = magazines.front();
            magazines.pop_front();
            pool_.ordered_free(&magazine);
            count_held(0 - sizeof(Magazine));
        }
        pool_.release_memory();
    }

    std::size_t bytes_in_use() const noexcept { return held(); }

private:
    boost::pool<SystemChunks> pool_;
};

}  // namespace tensorpool::blocks
