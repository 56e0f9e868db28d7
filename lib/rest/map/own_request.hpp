#pragma once

#include <utility>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::stashing {

/// While it exists, the thread requests memory of a pool for a map that uses it. What the map then
/// gives need not leave the pool.
class OwnRequest {
public:
    explicit OwnRequest(const MemoryPool& pool) noexcept : outer_(std::exchange(current_, &pool)) {}
    ~OwnRequest() { current_ = outer_; }
    OwnRequest(const OwnRequest&) = delete;
    OwnRequest& operator=(const OwnRequest&) = delete;

    static bool is_for(const MemoryPool& pool) noexcept { return current_ == &pool; }

private:
    static constinit inline thread_local const MemoryPool* current_ TENSORPOOL_INITIAL_EXEC =
        nullptr;
    const MemoryPool* outer_;
};

}  // namespace tensorpool::stashing
