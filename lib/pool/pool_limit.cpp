#include <algorithm>
#include <atomic>
#include <mutex>

#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

// The limit changes at once, so that nothing grows beyond it while room is made.
void Pool::set_max_capacity(std::size_t bytes) noexcept {
    {
        // One lock for both: what is published is what holds, whoever sets it last.
        const std::lock_guard guard(heap_);
        heap_.limit_capacity(bytes);
        record_->limit_bytes.store(bytes, std::memory_order_relaxed);
    }
    if (bytes == 0 || capacity() <= bytes) return;
    pages::Changes changes;
    gather(changes);
    heap_.give_back(capacity() - std::min(capacity(), bytes), changes);
    tell(changes);
}

// Relaxed: a figure.
std::size_t Pool::max_capacity() const noexcept {
    return record_->limit_bytes.load(std::memory_order_relaxed);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
