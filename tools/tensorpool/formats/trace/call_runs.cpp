#include "formats/trace/call_runs.hpp"

#include <functional>
#include <queue>
#include <utility>

namespace tensorpool::command::trace {
namespace {

/// A ring and the time of its next call.
using Next = std::pair<std::uint64_t, std::size_t>;
using Queue = std::priority_queue<Next, std::vector<Next>, std::greater<>>;

class Merge {
public:
    explicit Merge(std::vector<CallRuns> rings)
        : rings_(std::move(rings)), positions_(rings_.size()) {
        std::size_t count = 0;
        for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
            for (const auto& run : rings_[ring]) count += run.size();
            enter(ring);
        }
        calls_.reserve(count);
    }

    std::vector<Call> run() {
        while (!queue_.empty()) {
            const std::size_t ring = queue_.top().second;
            queue_.pop();
            take_until_next(ring);
            enter(ring);
        }
        return std::move(calls_);
    }

private:
    bool has_more(std::size_t ring) const { return !rings_[ring].empty(); }
    const Call& next_of(std::size_t ring) const { return rings_[ring].front()[positions_[ring]]; }
    void enter(std::size_t ring) {
        if (has_more(ring)) queue_.emplace(next_of(ring).time_ns, ring);
    }
    // Takes the calls of a ring that precede the next call of every other ring.
    void take_until_next(std::size_t ring) {
        do {
            calls_.push_back(next_of(ring));
            if (++positions_[ring] == rings_[ring].front().size()) {
                rings_[ring].pop_front();
                positions_[ring] = 0;
            }
        } while (has_more(ring) &&
                 (queue_.empty() || Next{next_of(ring).time_ns, ring} < queue_.top()));
    }

    std::vector<CallRuns> rings_;
    std::vector<std::size_t> positions_;  // in the first run of each ring
    Queue queue_;
    std::vector<Call> calls_;
};

}  // namespace

std::vector<Call> merge(std::vector<CallRuns> rings) {
    return Merge(std::move(rings)).run();
}

}  // namespace tensorpool::command::trace
