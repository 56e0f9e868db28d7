#include "plan/pool_requests.hpp"

#include <exception>

#include "kinds/kinds.hpp"
#include "kinds/reports.hpp"

namespace tensorpool::planned {

void PoolRequests::begin_iteration() noexcept {
    const std::lock_guard guard(mutex_);
    learner_.begin_iteration();
}

bool PoolRequests::end_iteration() {
    const std::lock_guard guard(mutex_);
    if (!learner_.is_noting()) return false;
    const bool is_learned = learner_.end_iteration();
    totals_.buffers.store(learner_.learned().size(), std::memory_order_relaxed);
    return is_learned;
}

void PoolRequests::forget_learned() noexcept {
    const std::lock_guard guard(mutex_);
    learner_.forget();
}

void PoolRequests::add(void* block, std::size_t bytes, std::size_t alignment,
                       std::size_t pool_bytes, Answer answer) {
    remember(block, bytes, alignment, pool_bytes, false);
    count(answer, pool_bytes);
}

void PoolRequests::add_noted(detail::Pool& pool, void* block, std::size_t bytes,
                             std::size_t alignment, Answer answer) noexcept {
    const std::size_t pool_bytes = detail::bytes_of_block_in_use(block);
    try {
        remember(block, bytes, alignment, pool_bytes, true);
    } catch (const std::exception&) {
        return;
    }
    count(answer, pool_bytes);
    if (!kinds::note_free_of(pool.parts(), block)) kinds::report_free(pool.parts(), block, {});
}

void PoolRequests::remember(void* block, std::size_t bytes, std::size_t alignment,
                            std::size_t pool_bytes, bool is_noted) {
    const std::lock_guard guard(mutex_);
    try {
        Learner::Ticket ticket;
        if (learner_.is_noting()) ticket = learner_.note(bytes, alignment, pool_bytes);
        blocks_.insert_or_assign(block, Block{pool_bytes, ticket, is_noted});
    } catch (...) {
        learner_.forget();  // this iteration is no longer recorded completely
        throw;
    }
}

void PoolRequests::count(Answer answer, std::size_t pool_bytes) noexcept {
    switch (answer) {
        case Answer::too_large:
            return totals_.count_missed(totals_.too_large, pool_bytes);
        case Answer::out_of_order:
            return totals_.count_missed(totals_.out_of_order, pool_bytes);
        case Answer::unknown:
            return totals_.count_missed(totals_.unknown, pool_bytes);
        case Answer::still_in_use:
            return totals_.count_missed(totals_.still_in_use, pool_bytes);
        case Answer::served:
        case Answer::left_to_pool:
            return totals_.count_from_pool(pool_bytes);
    }
}

bool PoolRequests::note_free(void* p) noexcept {
    std::uint64_t bytes = 0;
    {
        const std::lock_guard guard(mutex_);
        const auto found = blocks_.find(p);
        if (found == blocks_.end()) return false;
        bytes = found->second.bytes;
        learner_.note_end(found->second.ticket);
        blocks_.erase(found);
    }
    count_freed(bytes);
    return true;
}

void PoolRequests::forget_noted(detail::Pool& pool) noexcept {
    const std::lock_guard guard(mutex_);
    std::erase_if(blocks_, [&](const auto& entry) {
        const auto& [p, block] = entry;
        if (!block.is_noted) return false;
        kinds::forget_free_of(pool.parts(), p);
        count_freed(block.bytes);
        return true;
    });
}

void PoolRequests::return_all(MemoryPool& pool) noexcept {
    for (const auto& [p, block] : blocks_) pool.deallocate(p);
}

void PoolRequests::count_freed(std::uint64_t bytes) noexcept {
    if (first_owner_.load(std::memory_order_relaxed) == &detail::thread_table) {
        totals_.count_pool_freed(bytes);
    } else {
        totals_.count_pool_freed_elsewhere(bytes);
    }
}

namespace {

Request request_of(std::size_t bytes, std::size_t alignment, std::size_t pool_bytes) noexcept {
    const std::uint64_t limited = std::min<std::uint64_t>(bytes, max_request_bytes);
    return {.bytes = base::align_up(limited, plan_granule_bytes),
            .pool_bytes = pool_bytes,
            .alignment = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(alignment, plan_granule_bytes, max_request_alignment)),
            .end = Request::outlives};
}

}  // namespace

void Learner::begin_iteration() noexcept {
    noted_.clear();
    noting_ = true;
    iteration_ = std::max(iteration_ + 1, 1u);
}

// One request above the limit is recorded to mark the iteration as too long. Recording more would
// only take memory.
Learner::Ticket Learner::note(std::size_t bytes, std::size_t alignment, std::size_t pool_bytes) {
    if (noted_.size() > max_count_) return {};
    noted_.push_back(request_of(bytes, alignment, pool_bytes));
    if (bytes > max_request_bytes || alignment > max_request_alignment) return {};
    return {iteration_, static_cast<std::uint32_t>(noted_.size() - 1)};
}

void Learner::note_end(Ticket ticket) noexcept {
    if (!noting_ || ticket.iteration != iteration_) return;
    noted_[ticket.request].end = static_cast<std::uint32_t>(noted_.size());
}

bool Learner::end_iteration() {
    noting_ = false;
    if (noted_.empty() || noted_.size() > max_count_) return false;
    if (identical_ != 0 && same_requests(learned_, noted_)) {
        merge();
    } else {
        std::swap(learned_, noted_);
        identical_ = 0;
    }
    return ++identical_ >= wanted_;
}

// A buffer that outlived one of the iterations counts as outliving: `outlives` is the largest end.
void Learner::merge() noexcept {
    for (std::size_t i = 0; i < learned_.size(); ++i) {
        learned_[i].end = std::max(learned_[i].end, noted_[i].end);
        learned_[i].pool_bytes = std::max(learned_[i].pool_bytes, noted_[i].pool_bytes);
    }
}

void Learner::forget() noexcept {
    noting_ = false;
    identical_ = 0;
    learned_.clear();
    noted_.clear();
}

}  // namespace tensorpool::planned
