#pragma once

#include <atomic>
#include <boost/intrusive/slist.hpp>
#include <boost/pool/pool.hpp>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <tensorpool/detail/counters.hpp>

#include "blocks/bucket_layout.hpp"

namespace tensorpool::blocks {

/// An array of free blocks of one bucket that moves as one. Its holder is a thread's cache, a
/// depot, or nobody; only the holder touches it. A thread counts the blocks of its loaded magazine
/// elsewhere (detail::LoadedMagazine), and `count` is then out of date.
struct Magazine : boost::intrusive::slist_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    unsigned count = 0;
    std::uint32_t number = 0;  // its place in its depot's lists (MagazinePlaces)
    void* blocks[magazine_room];
};

using MagazineList = boost::intrusive::slist<Magazine, boost::intrusive::constant_time_size<false>>;

/// For boost::pool: memory from the system, which a later unmap can give back.
struct SystemChunks {
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    static char* malloc(size_type bytes) noexcept;
    static void free(char* chunk) noexcept;
};

/// One pool's magazines. Thread-safe.
class MagazineStore {
public:
    MagazineStore() noexcept;

    /// An empty magazine, or nullptr when the system has no memory.
    Magazine* make() noexcept;
    /// Ends these magazines and gives chunks without magazines back to the system.
    void destroy(MagazineList& magazines) noexcept;

    std::size_t bytes_in_use() const noexcept {
        return made_.load(std::memory_order_relaxed) * sizeof(Magazine);
    }

    /// From now on adds what is in use to this figure too, which others may share.
    void count_in(detail::Counter& bytes) noexcept { counted_in_ = &bytes; }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    std::mutex mutex_;
    boost::pool<SystemChunks> pool_;
    std::atomic<std::size_t> made_ = 0;  // written under mutex_; relaxed: a figure to readers
    detail::Counter* counted_in_ = nullptr;
};

}  // namespace tensorpool::blocks
