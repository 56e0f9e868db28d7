#include "plan/planner/exact_search.hpp"

#include <algorithm>

#include "plan/planner/bottom_up_search.hpp"
#include "plan/planner/search_order.hpp"

namespace tensorpool::planner {

class PackingSearch::Turns {
public:
    Turns(const Problem& problem, std::uint64_t capacity)
        : problem_(problem),
          capacity_(capacity),
          tables_(make_search_tables(problem)),
          search_(problem, tables_, capacity),
          noise_(problem.buffers.size()),
          schedule_(problem.buffers.size()) {}

    SearchEnd resume(Work& work) {
        if (!tables_.made) return SearchEnd::stopped;
        while (!work.over()) {
            const SearchTurn turn = schedule_.turn();
            if (turn.first_with_noise) noise_.draw();
            if (!turn.noisy) noise_.clear();
            const SearchEnd end = search_.run(turn.order, noise_, turn.nodes, work);
            if (end != SearchEnd::stopped) return end;
            // A run that ended because the work is over is repeated by the next call.
            if (!work.over()) schedule_.advance();
        }
        return SearchEnd::stopped;
    }

    Packing packing() const {
        Packing packing{.offsets = search_.offsets(), .peak_bytes = 0};
        for (std::size_t i = 0; i < packing.offsets.size(); ++i) {
            const std::uint64_t end = packing.offsets[i] + problem_.buffers[i].bytes;
            packing.peak_bytes = std::max(packing.peak_bytes, end);
        }
        return packing;
    }
    std::uint64_t capacity() const noexcept { return capacity_; }

private:
    const Problem& problem_;
    std::uint64_t capacity_;
    SearchTables tables_;
    BottomUpSearch search_;
    OrderNoise noise_;
    SearchSchedule schedule_;
};

PackingSearch::PackingSearch(const Problem& problem, std::uint64_t capacity)
    : turns_(std::make_unique<Turns>(problem, capacity)) {}

PackingSearch::~PackingSearch() = default;

SearchEnd PackingSearch::resume(Work& work) {
    return turns_->resume(work);
}

Packing PackingSearch::packing() const {
    return turns_->packing();
}

std::uint64_t PackingSearch::capacity() const noexcept {
    return turns_->capacity();
}

SearchEnd search_packing(const Problem& problem, std::uint64_t capacity, Work& work,
                         Packing& packing) {
    PackingSearch search(problem, capacity);
    const SearchEnd end = search.resume(work);
    if (end == SearchEnd::found) packing = search.packing();
    return end;
}

}  // namespace tensorpool::planner
