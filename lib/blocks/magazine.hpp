#pragma once

#include <boost/intrusive/slist.hpp>
#include <boost/pool/pool.hpp>

#include <tensorpool/detail/counters.hpp>

#include "base/lockable.hpp"
#include "blocks/bucket_layout.hpp"

namespace tensorpool::blocks {

/// An array of free blocks of one bucket that moves as a unit. At most one holder at a time, a
/// thread's cache or a depot, accesses it. A thread counts the blocks of its loaded magazine
/// elsewhere (detail::LoadedMagazine); `count` is out of date then.
struct Magazine : boost::intrusive::slist_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    unsigned count = 0;
    std::uint32_t number = 0;  // its index in its depot's MagazineTable
    void* blocks[magazine_room];
};

using MagazineList = boost::intrusive::slist<Magazine, boost::intrusive::constant_time_size<false>>;

/// An allocator for boost::pool that maps memory from the system and unmaps it again.
struct SystemChunks {
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    static char* malloc(size_type bytes) noexcept;
    static void free(char* chunk) noexcept;
};

/// The magazines of one series of a pool. Thread-safe.
class MagazineStore : public base::Lockable {
public:
    MagazineStore() noexcept;

    /// Makes an empty magazine. Returns nullptr if the system has no memory.
    Magazine* make() noexcept;
    /// Destroys these magazines and returns chunks that hold no magazine to the system.
    void destroy(MagazineList& magazines) noexcept;

    std::size_t bytes_in_use() const noexcept {
        return made_.load(std::memory_order_relaxed) * sizeof(Magazine);
    }

    /// From now on, also adds the bytes in use to this counter, which other objects may share.
    void count_in(detail::Counter& bytes) noexcept { counted_in_ = &bytes; }

private:
    boost::pool<SystemChunks> pool_;
    std::atomic<std::size_t> made_ = 0;  // written under mutex_; relaxed: readers need no order
    detail::Counter* counted_in_ = nullptr;
};

}  // namespace tensorpool::blocks
