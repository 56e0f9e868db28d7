#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/exact_search.hpp"
#include "planner/search_order.hpp"
#include "planner/search_tables.hpp"

namespace tensorpool::planner {

/// A depth-first search for a packing within a capacity, after Moffitt, "MiniMalloc" (ASPLOS 2023).
///
/// In any packing each buffer can be let down until it lies on another or at 0, and buffers can
/// then be named in the order of their offsets. So it is enough to place buffers bottom up, each at
/// its floor: the end of the highest one placed that is alive with it. What is not placed yet will
/// lie at or above the last one placed, and that alone lets whole branches be given up:
///  - a slice cannot hold what is not placed in it above the lowest place that any of that can
///  have;
///  - a buffer that starts above room that another would fit in leaves a gap for nothing.
/// Where no buffer that is not placed crosses a moment any more, what comes before and after is
/// searched apart: neither is tried again when the other fails.
class BottomUpSearch {
public:
    /// All of these must outlive the search. Buffers whose bytes alone pass the capacity make it
    /// end as refuted.
    BottomUpSearch(const Problem& problem, const SearchTables& tables, std::uint64_t capacity);

    /// Visits at most `max_nodes`. May be called again, with another order.
    SearchEnd run(SearchOrder order, const OrderNoise& noise, std::uint64_t max_nodes, Work& work);
    /// Of all buffers, once a run has found them.
    const std::vector<std::uint64_t>& offsets() const noexcept { return offsets_; }

private:
    // Buffers that are searched apart from all others, alive in the slices [begin, end) only.
    struct Section {
        std::vector<std::uint32_t> buffers;
        std::uint32_t begin;
        std::uint32_t end;
    };
    // What was placed last: all that follows comes after it.
    struct Last {
        std::uint64_t offset = 0;
        std::uint32_t rank = 0;
    };
    struct Candidate {
        std::uint64_t offset;
        std::uint32_t rank;
        std::uint32_t buffer;
    };
    enum class Changed : std::uint8_t { floor, placed, slice_bytes, crossing };
    struct Change {
        Changed what;
        std::uint32_t where;
        std::uint64_t before;
    };

    void start_over();
    SearchEnd search(const Section& section, Last last);
    SearchEnd try_candidate(const Section& section, const Candidate& candidate);
    SearchEnd search_parts(const Section& section);
    SearchEnd search_part(const Section& section, std::uint32_t begin, std::uint32_t end);

    bool collect_candidates(const Section& section, Last last);
    bool slices_can_hold(const Section& section, Last last);
    bool slice_can_hold(std::uint32_t slice, Last last);
    bool may_lie_at(std::uint32_t buffer, std::uint64_t highest, Last last) const;
    bool comes_before(std::uint32_t buffer, Last last) const noexcept;

    bool place(std::uint32_t buffer, std::uint64_t offset);
    bool raise_neighbours(std::uint32_t buffer, std::uint64_t top);
    bool take_from_slices(std::uint32_t buffer, std::uint64_t top);
    void cut_slices(std::uint32_t buffer);
    void undo_to(std::size_t mark) noexcept;
    std::uint64_t top_of(std::uint32_t buffer, std::uint64_t offset) const noexcept {
        return offset + problem_.buffers[buffer].bytes;
    }

    const Problem& problem_;
    const SearchTables& tables_;
    const std::uint64_t capacity_;

    SearchOrder order_ = SearchOrder::crowd_time_area;
    const OrderNoise* noise_ = nullptr;
    Work* work_ = nullptr;
    std::uint64_t nodes_left_ = 0;
    SliceTrouble trouble_;

    // Of each buffer.
    std::vector<std::uint64_t> offsets_;
    std::vector<std::uint64_t> floors_;
    std::vector<std::uint32_t> ranks_;  // in the section's order
    std::vector<char> placed_;
    // Of each slice: bytes not placed, a member that can lie low enough, as far as was seen last,
    // and how many buffers that are not placed are alive in it and in the next one.
    std::vector<std::uint64_t> slice_bytes_;
    std::vector<std::uint32_t> witnesses_;
    std::vector<std::uint32_t> crossings_;

    std::vector<Change> changes_;        // undone from the end
    std::vector<Candidate> candidates_;  // of all nodes on the way down
    bool cut_ = false;  // whether the last placing left a moment that nothing crosses
};

}  // namespace tensorpool::planner
