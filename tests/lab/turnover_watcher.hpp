#pragma once

#include <atomic>
#include <cstddef>

#include "kinds/watcher.hpp"

namespace tensorpool::lab {

/// What the watcher has counted since the process began.
struct Turnover {
    std::atomic<std::size_t> allocated = 0;
    std::atomic<std::size_t> freed = 0;
};
inline constinit Turnover turnover;

/// A sample of a watcher that lies in a folder of its own: counts some blocks of the pools with
/// `pool_name` when they are allocated, and again when they are freed.
class TurnoverWatcher final : public kinds::Watcher {
public:
    static constexpr const char* pool_name = "watched";
    /// The mean distance between blocks, in bytes.
    static inline constinit std::atomic<double> distance = 0;

    bool watches(const kinds::PoolParts& pool) const noexcept override;
    watch::Terms terms(const kinds::PoolParts&) const noexcept override;
    double interval(const kinds::PoolParts&) const noexcept override { return distance; }
    base::BlockMark* mark(const kinds::Request& request, const void* p, double mean,
                          base::BlockMark* covered) const noexcept override;
};

}  // namespace tensorpool::lab
