#include "plan/predecessors.hpp"

#include <algorithm>
#include <map>

namespace tensorpool::planned {
namespace {

/// The bytes of a plan, each with the buffer that was assigned to it last.
class ByteOwners {
public:
    /// Assigns a range to a buffer. Calls `found` with each buffer that had bytes of the range
    /// before, possibly more than once for one buffer.
    template <class Found>
    void assign(std::uint64_t begin, std::uint64_t end, std::uint32_t buffer, Found found) {
        auto piece = pieces_.upper_bound(begin);
        if (piece != pieces_.begin()) --piece;
        while (piece != pieces_.end() && piece->first < end) {
            const Piece old = piece->second;
            const std::uint64_t old_begin = piece->first;
            if (old.end <= begin) {
                ++piece;
                continue;
            }
            found(old.buffer);
            if (old_begin < begin) {
                piece->second.end = begin;
                ++piece;
            } else {
                piece = pieces_.erase(piece);
            }
            if (old.end > end) pieces_.emplace_hint(piece, end, old);
        }
        pieces_[begin] = {end, buffer};
    }

private:
    struct Piece {
        std::uint64_t end;
        std::uint32_t buffer;
    };
    std::map<std::uint64_t, Piece> pieces_;  // by their beginnings, without overlap
};

void sort_and_deduplicate(std::vector<std::uint32_t>& numbers, std::size_t from) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(from);
    std::sort(begin, numbers.end());
    numbers.erase(std::unique(begin, numbers.end()), numbers.end());
}

}  // namespace

// The first loop produces the state that each later iteration of the plan finds at its beginning.
Predecessors find_predecessors(const LearnedPlan& plan) {
    ByteOwners owners;
    const auto assign = [&](std::size_t buffer, auto found) {
        const std::uint64_t begin = plan.offsets[buffer];
        if (begin == LearnedPlan::no_offset) return;
        owners.assign(begin, begin + plan.requests[buffer].bytes,
                      static_cast<std::uint32_t>(buffer), found);
    };
    const std::size_t count = plan.requests.size();
    for (std::size_t buffer = 0; buffer < count; ++buffer) assign(buffer, [](std::uint32_t) {});
    Predecessors predecessors;
    for (std::size_t buffer = 0; buffer < count; ++buffer) {
        predecessors.first.push_back(predecessors.numbers.size());
        assign(buffer, [&](std::uint32_t previous) { predecessors.numbers.push_back(previous); });
        sort_and_deduplicate(predecessors.numbers, predecessors.first.back());
    }
    predecessors.first.push_back(predecessors.numbers.size());
    return predecessors;
}

}  // namespace tensorpool::planned
