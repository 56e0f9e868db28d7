#include "planned/predecessors.hpp"

#include <algorithm>
#include <map>

namespace tensorpool::planned {
namespace {

/// The bytes of a plan, each in the colour of the slot that was painted there last.
class Canvas {
public:
    /// Calls `found` with the slots that lay there; one may come more than once.
    template <class Found>
    void paint(std::uint64_t begin, std::uint64_t end, std::uint32_t slot, Found found) {
        auto piece = pieces_.upper_bound(begin);
        if (piece != pieces_.begin()) --piece;
        while (piece != pieces_.end() && piece->first < end) {
            const Piece old = piece->second;
            const std::uint64_t old_begin = piece->first;
            if (old.end <= begin) {
                ++piece;
                continue;
            }
            found(old.slot);
            if (old_begin < begin) {
                piece->second.end = begin;
                ++piece;
            } else {
                piece = pieces_.erase(piece);
            }
            if (old.end > end) pieces_.emplace_hint(piece, end, old);
        }
        pieces_[begin] = {end, slot};
    }

private:
    struct Piece {
        std::uint64_t end;
        std::uint32_t slot;
    };
    std::map<std::uint64_t, Piece> pieces_;  // by their beginnings
};

void sort_out_repeated(std::vector<std::uint32_t>& numbers, std::size_t from) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(from);
    std::sort(begin, numbers.end());
    numbers.erase(std::unique(begin, numbers.end()), numbers.end());
}

}  // namespace

// The first round leaves the canvas as each later one finds it.
Befores find_predecessors(const LearnedPlan& plan) {
    Canvas canvas;
    const auto paint = [&](std::size_t slot, auto found) {
        const std::uint64_t begin = plan.offsets[slot];
        if (begin == LearnedPlan::no_offset) return;
        canvas.paint(begin, begin + plan.requests[slot].bytes, static_cast<std::uint32_t>(slot),
                     found);
    };
    const std::size_t count = plan.requests.size();
    for (std::size_t slot = 0; slot < count; ++slot) paint(slot, [](std::uint32_t) {});
    Befores predecessors;
    for (std::size_t slot = 0; slot < count; ++slot) {
        predecessors.first.push_back(predecessors.numbers.size());
        paint(slot, [&](std::uint32_t before) { predecessors.numbers.push_back(before); });
        sort_out_repeated(predecessors.numbers, predecessors.first.back());
    }
    predecessors.first.push_back(predecessors.numbers.size());
    return predecessors;
}

}  // namespace tensorpool::planned
