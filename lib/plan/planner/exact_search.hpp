#pragma once

#include "plan/planner/search_order.hpp"

namespace tensorpool::planner {

enum class SearchEnd {
    found,    ///< a packing within the capacity was found
    refuted,  ///< it is proven that no packing fits within the capacity
    stopped,  ///< the work is over, or the problem is too large for a search
};

/// Lists of numbers, stored one after another in one array.
class NumberLists {
public:
    void begin_list() { begins_.push_back(static_cast<std::uint32_t>(numbers_.size())); }
    void add(std::uint32_t number) { numbers_.push_back(number); }
    std::span<const std::uint32_t> operator[](std::uint32_t list) const noexcept {
        const std::uint32_t begin = begins_[list];
        const std::size_t end = list + 1 < begins_.size() ? begins_[list + 1] : numbers_.size();
        return {numbers_.data() + begin, end - begin};
    }
    std::size_t size() const noexcept { return numbers_.size(); }

private:
    std::vector<std::uint32_t> begins_;
    std::vector<std::uint32_t> numbers_;
};

/// Facts about a problem that a search looks up often.
struct SearchTables {
    /// Above these limits a search would rarely end, and its tables would take too much memory.
    static constexpr std::size_t max_buffers = 4096;
    static constexpr std::size_t max_neighbours = 8'000'000;
    static constexpr std::size_t max_members = 8'000'000;

    /// False if the problem is too large for a search; the other members are then incomplete.
    bool made = false;
    NumberLists neighbours;  ///< for each buffer: the buffers that share a slice with it
    NumberLists members;     ///< for each slice: the buffers alive in it
    std::vector<std::uint64_t> slice_bytes;  ///< for each slice: the bytes of its members
};

/// Builds the tables of a problem. Takes time proportional to buffers² + slices × buffers.
SearchTables make_search_tables(const Problem& problem);

/// A depth-first search for a packing within a capacity, after Moffitt, "MiniMalloc" (ASPLOS 2023).
///
/// In any packing, each buffer can be lowered until it lies on another buffer or at offset 0. The
/// buffers can then be listed in the order of their offsets. So it is enough to place buffers
/// bottom up, each at its floor: the end of the highest placed buffer that is alive with it. All
/// unplaced buffers will lie at or above the last placed one, which prunes a branch in two cases:
///  - The unplaced buffers of a slice do not fit above the lowest offset that any of them can have.
///  - A buffer would start above a gap that another unplaced buffer fits in.
/// Where no unplaced buffer crosses a slice boundary, the parts before and after it are searched
/// separately, so a failure of one part does not repeat the search of the other.
class BottomUpSearch {
public:
    /// The problem and the tables must outlive the search. If the bytes of one slice exceed the
    /// capacity, `run` returns `refuted`.
    BottomUpSearch(const Problem& problem, const SearchTables& tables, std::uint64_t capacity);

    /// Visits at most `max_nodes` nodes. May be called again with another order; each run starts
    /// from an empty packing.
    SearchEnd run(SearchOrder order, const OrderNoise& noise, std::uint64_t max_nodes, Work& work);
    /// Returns the offset of each buffer. Valid after a run that returned `found`.
    const std::vector<std::uint64_t>& offsets() const noexcept { return offsets_; }

private:
    // Buffers that are searched separately from all others; they are alive only within the slices
    // [begin, end).
    struct Section {
        std::vector<std::uint32_t> buffers;
        std::uint32_t begin;
        std::uint32_t end;
    };
    // The buffer placed last. All later ones follow it in the order of (offset, rank).
    struct Last {
        std::uint64_t offset = 0;
        std::uint32_t rank = 0;
    };
    struct Candidate {
        std::uint64_t offset;
        std::uint32_t rank;
        std::uint32_t buffer;
        friend auto operator<=>(const Candidate&, const Candidate&) = default;
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

    // One entry for each buffer.
    std::vector<std::uint64_t> offsets_;
    std::vector<std::uint64_t> floors_;
    std::vector<std::uint32_t> ranks_;  // in the section's order
    std::vector<char> placed_;
    // One entry for each slice: its unplaced bytes, the member that was last found to lie low
    // enough, and the number of unplaced buffers alive both in it and in the next slice.
    std::vector<std::uint64_t> slice_bytes_;
    std::vector<std::uint32_t> witnesses_;
    std::vector<std::uint32_t> crossings_;

    std::vector<Change> changes_;        // undone from the end
    std::vector<Candidate> candidates_;  // of all nodes on the current path
    bool cut_ = false;  // the last placement left a slice boundary that no unplaced buffer crosses
};

/// Decides whether a problem can be packed into `capacity` bytes. The search can be stopped and
/// resumed.
class PackingSearch {
public:
    /// The problem must outlive it.
    PackingSearch(const Problem& problem, std::uint64_t capacity);
    PackingSearch(const PackingSearch&) = delete;
    PackingSearch& operator=(const PackingSearch&) = delete;

    /// Searches until there is an answer or `work` is over. Continues where the last call stopped.
    SearchEnd resume(Work& work);
    /// Returns the packing that was found. Requires: `resume` returned `found`.
    Packing packing() const;
    std::uint64_t capacity() const noexcept { return capacity_; }

private:
    const Problem& problem_;
    const std::uint64_t capacity_;
    const SearchTables tables_;
    BottomUpSearch search_;
    OrderNoise noise_;
    SearchSchedule schedule_;
};

}  // namespace tensorpool::planner
