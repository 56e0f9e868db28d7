#include "planned/plan_server.hpp"

#include <algorithm>

#include <tensorpool/detail/buckets.hpp>

#include "planned/planned_state.hpp"

namespace tensorpool::detail {

void PlanServer::begin_iteration() {
    const std::lock_guard guard(mutex_);
    state_.begin_iteration();
}

void PlanServer::end_iteration() noexcept {
    const std::lock_guard guard(mutex_);
    state_.end_iteration();
}

void* PlanServer::serve(Pool& pool, std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                        Pool::FirstTouch first_touch) noexcept {
    // Requests for finer sizes come with smaller alignments.
    alignment = std::max(alignment, smallest_block_bytes);
    const std::lock_guard guard(mutex_);
    pool_ = &pool;
    return state_.serve_for(pool, bytes, alignment,
                            [&] { return pool.allocate(bytes, alignment, path, first_touch); });
}

bool PlanServer::note_free(void* p) noexcept {
    return state_.note_free(p);
}

void PlanServer::forget_noted() noexcept {
    const std::lock_guard guard(block_servers());
    if (pool_ != nullptr) state_.forget_noted(*pool_);
}

}  // namespace tensorpool::detail
