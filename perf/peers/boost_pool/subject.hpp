#pragma once

/// boost::pool with a mutex, which it needs if threads share it. Each boost::pool serves blocks of
/// one size, so there is one for each bucket.

#include <array>
#include <bit>
#include <cstddef>
#include <mutex>
#include <utility>

#include <boost/pool/pool.hpp>

#include "support/subject_concept.hpp"

namespace perf {

class BoostPools {
public:
    void* allocate(std::size_t bytes) {
        Guarded& pool = pool_of(bytes);
        const std::lock_guard lock(pool.mutex);
        return pool.blocks.malloc();
    }
    void deallocate(void* p, std::size_t bytes) {
        Guarded& pool = pool_of(bytes);
        const std::lock_guard lock(pool.mutex);
        pool.blocks.free(p);
    }

private:
    struct alignas(64) Guarded {
        explicit Guarded(std::size_t block_bytes) : blocks(block_bytes) {}
        std::mutex mutex;
        boost::pool<> blocks;
    };
    template <std::size_t... bucket>
    static std::array<Guarded, sizeof...(bucket)> make(std::index_sequence<bucket...>) {
        return {Guarded(std::size_t{64} << bucket)...};
    }
    Guarded& pool_of(std::size_t bytes) {
        return pools_[static_cast<std::size_t>(std::bit_width((bytes - 1) | 63U)) - 6U];
    }

    std::array<Guarded, 11> pools_ = make(std::make_index_sequence<11>());
};

struct Subject {
    static constexpr bool any_size = false;
    static void* allocate(std::size_t bytes) { return pools.allocate(bytes); }
    static void deallocate(void* p, std::size_t bytes) { pools.deallocate(p, bytes); }

private:
    static inline BoostPools pools;
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
