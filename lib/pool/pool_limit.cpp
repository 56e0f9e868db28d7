#include <algorithm>
#include <atomic>
#include <mutex>

#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

// The limit takes effect first, so that the pool does not grow beyond it while memory is returned.
void Pool::set_max_capacity(std::size_t bytes) noexcept {
    {
        // Both are set under one lock, so that the published limit is the one in effect when
        // several threads set it.
        const std::lock_guard guard(heap_);
        heap_.limit_capacity(bytes);
        record_->limit_bytes.store(bytes, std::memory_order_relaxed);
    }
    if (bytes == 0 || capacity() <= bytes) return;
    pages::Changes changes;
    gather(changes);
    heap_.give_back(capacity() - std::min(capacity(), bytes), changes);
    report(changes);
}

// Relaxed: the value orders nothing.
std::size_t Pool::max_capacity() const noexcept {
    return record_->limit_bytes.load(std::memory_order_relaxed);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
