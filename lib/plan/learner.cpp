#include "plan/learner.hpp"

#include <algorithm>
#include <utility>

#include "base/alignment.hpp"

namespace tensorpool::planned {
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
