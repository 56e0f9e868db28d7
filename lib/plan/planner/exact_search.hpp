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

inline bool alive_at_once(const Buffer& a, const Buffer& b) noexcept {
    return a.begin < b.end && b.begin < a.end;
}

// False when there are too many.
inline bool add_neighbours(const Problem& problem, NumberLists& neighbours) {
    const auto count = static_cast<std::uint32_t>(problem.buffers.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        neighbours.begin_list();
        for (std::uint32_t j = 0; j < count; ++j) {
            if (i != j && alive_at_once(problem.buffers[i], problem.buffers[j])) neighbours.add(j);
        }
        if (neighbours.size() > SearchTables::max_neighbours) return false;
    }
    return true;
}

// False when there are too many.
inline bool add_members(const Problem& problem, SearchTables& tables) {
    tables.slice_bytes.assign(problem.slices, 0);
    for (std::uint32_t slice = 0; slice < problem.slices; ++slice) {
        tables.members.begin_list();
        for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
            const Buffer& buffer = problem.buffers[i];
            if (slice < buffer.begin || slice >= buffer.end) continue;
            tables.members.add(i);
            tables.slice_bytes[slice] += buffer.bytes;
        }
        if (tables.members.size() > SearchTables::max_members) return false;
    }
    return true;
}

/// Builds the tables of a problem. Takes time proportional to buffers² + slices × buffers.
inline SearchTables make_search_tables(const Problem& problem) {
    SearchTables tables;
    if (problem.buffers.size() > SearchTables::max_buffers) return tables;
    if (!add_neighbours(problem, tables.neighbours)) return tables;
    tables.made = add_members(problem, tables);
    return tables;
}

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
    BottomUpSearch(const Problem& problem, const SearchTables& tables, std::uint64_t capacity)
        : problem_(problem),
          tables_(tables),
          capacity_(capacity),
          trouble_(problem.slices),
          offsets_(problem.buffers.size()),
          ranks_(problem.buffers.size()),
          witnesses_(problem.slices) {}

    /// Visits at most `max_nodes` nodes. May be called again with another order; each run starts
    /// from an empty packing.
    SearchEnd run(SearchOrder order, const OrderNoise& noise, std::uint64_t max_nodes, Work& work) {
        order_ = order;
        noise_ = &noise;
        work_ = &work;
        nodes_left_ = max_nodes;
        start_over();
        for (const std::uint64_t bytes : slice_bytes_) {
            if (bytes > capacity_) return SearchEnd::refuted;
        }
        Section all{.buffers = {}, .begin = 0, .end = problem_.slices};
        all.buffers.resize(problem_.buffers.size());
        std::iota(all.buffers.begin(), all.buffers.end(), 0U);
        return search_parts(all);
    }
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

    void start_over() {
        floors_.assign(problem_.buffers.size(), 0);
        placed_.assign(problem_.buffers.size(), 0);
        slice_bytes_ = tables_.slice_bytes;
        crossings_.assign(problem_.slices, 0);
        for (const Buffer& buffer : problem_.buffers) {
            for (std::uint32_t s = buffer.begin; s + 1 < buffer.end; ++s) ++crossings_[s];
        }
        for (std::uint32_t s = 0; s < problem_.slices; ++s) {
            if (!tables_.members[s].empty()) witnesses_[s] = tables_.members[s].front();
        }
        changes_.clear();
        candidates_.clear();
    }
    SearchEnd search(const Section& section, Last last) {
        if (nodes_left_ == 0 || !work_->step()) return SearchEnd::stopped;
        --nodes_left_;
        if (!slices_can_hold(section, last)) return SearchEnd::refuted;
        const std::size_t first = candidates_.size();
        if (!collect_candidates(section, last)) return SearchEnd::found;
        SearchEnd end = SearchEnd::refuted;
        for (std::size_t i = first; i < candidates_.size() && end == SearchEnd::refuted; ++i) {
            const Candidate candidate = candidates_[i];
            const bool last_one = std::ranges::none_of(tables_.neighbours[candidate.buffer],
                                                       [&](auto other) { return !placed_[other]; });
            end = try_candidate(section, candidate);
            // No later buffer can lie on this one, so its offset does not affect the others.
            if (last_one) break;
        }
        candidates_.resize(first);
        return end;
    }
    SearchEnd try_candidate(const Section& section, const Candidate& candidate) {
        const std::size_t mark = changes_.size();
        SearchEnd end = SearchEnd::refuted;
        if (place(candidate.buffer, candidate.offset)) {
            end = cut_ ? search_parts(section)
                       : search(section, {.offset = candidate.offset, .rank = candidate.rank});
        }
        if (end != SearchEnd::found) undo_to(mark);
        return end;
    }
    // Searches each part between two slice boundaries that no unplaced buffer crosses.
    SearchEnd search_parts(const Section& section) {
        std::uint32_t begin = section.begin;
        for (std::uint32_t s = section.begin; s < section.end; ++s) {
            if (s + 1 < section.end && crossings_[s] != 0) continue;
            const SearchEnd end = search_part(section, begin, s + 1);
            if (end != SearchEnd::found) return end;
            begin = s + 1;
        }
        return SearchEnd::found;
    }
    SearchEnd search_part(const Section& section, std::uint32_t begin, std::uint32_t end) {
        Section part{.buffers = {}, .begin = begin, .end = end};
        for (const std::uint32_t i : section.buffers) {
            const Buffer& buffer = problem_.buffers[i];
            if (!placed_[i] && buffer.begin >= begin && buffer.end <= end)
                part.buffers.push_back(i);
        }
        if (part.buffers.empty()) return SearchEnd::found;
        std::vector<std::uint32_t> ranks_before;
        ranks_before.reserve(part.buffers.size());
        for (const std::uint32_t i : part.buffers) ranks_before.push_back(ranks_[i]);
        std::vector<std::uint32_t> order = part.buffers;
        sort_for_search(order, order_, {problem_, slice_bytes_, trouble_, *noise_});
        for (std::uint32_t rank = 0; rank < order.size(); ++rank) ranks_[order[rank]] = rank + 1;
        const SearchEnd found = search(part, {});
        for (std::size_t i = 0; i < part.buffers.size(); ++i)
            ranks_[part.buffers[i]] = ranks_before[i];
        return found;
    }

    // Appends the buffers that may come next, lowest first. Returns false if nothing is left to
    // place.
    bool collect_candidates(const Section& section, Last last) {
        const std::size_t first = candidates_.size();
        std::uint64_t lowest_top = std::numeric_limits<std::uint64_t>::max();
        for (const std::uint32_t i : section.buffers) {
            if (placed_[i]) continue;
            lowest_top = std::min(lowest_top, top_of(i, floors_[i]));
            if (!comes_before(i, last)) candidates_.push_back({floors_[i], ranks_[i], i});
        }
        if (lowest_top == std::numeric_limits<std::uint64_t>::max()) return false;
        const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(first);
        const auto too_high = [&](const Candidate& it) { return it.offset >= lowest_top; };
        candidates_.erase(std::remove_if(begin, candidates_.end(), too_high), candidates_.end());
        std::sort(begin, candidates_.end());
        return true;
    }
    bool slices_can_hold(const Section& section, Last last) {
        for (std::uint32_t s = section.begin; s < section.end; ++s) {
            if (slice_bytes_[s] == 0 || slice_can_hold(s, last)) continue;
            trouble_.add(s);
            return false;
        }
        return true;
    }
    // Returns whether some unplaced member can lie low enough that all unplaced members fit between
    // its offset and the capacity.
    bool slice_can_hold(std::uint32_t slice, Last last) {
        if (slice_bytes_[slice] > capacity_) return false;
        const std::uint64_t highest = capacity_ - slice_bytes_[slice];
        const std::uint32_t witness = witnesses_[slice];
        if (!placed_[witness] && may_lie_at(witness, highest, last)) return true;
        for (const std::uint32_t i : tables_.members[slice]) {
            if (placed_[i] || !may_lie_at(i, highest, last)) continue;
            witnesses_[slice] = i;
            return true;
        }
        return false;
    }
    // A buffer that precedes the last one in the search order can still be placed only if another
    // buffer is placed below it first, at or above the last one.
    bool may_lie_at(std::uint32_t buffer, std::uint64_t highest, Last last) const {
        if (floors_[buffer] > highest) return false;
        if (!comes_before(buffer, last)) return true;
        return std::ranges::any_of(tables_.neighbours[buffer], [&](std::uint32_t other) {
            return !placed_[other] &&
                   top_of(other, std::max(floors_[other], last.offset)) <= highest;
        });
    }
    bool comes_before(std::uint32_t buffer, Last last) const noexcept {
        return floors_[buffer] < last.offset ||
               (floors_[buffer] == last.offset && ranks_[buffer] < last.rank);
    }

    // Returns false if some neighbour no longer fits above the buffer. The caller undoes the
    // changes in that case too.
    bool place(std::uint32_t buffer, std::uint64_t offset) {
        changes_.push_back({Changed::placed, buffer, 0});
        placed_[buffer] = 1;
        offsets_[buffer] = offset;
        const std::uint64_t top = top_of(buffer, offset);
        if (top > capacity_ || !raise_neighbours(buffer, top) || !take_from_slices(buffer, top)) {
            return false;
        }
        cut_slices(buffer);
        return true;
    }
    bool raise_neighbours(std::uint32_t buffer, std::uint64_t top) {
        for (const std::uint32_t other : tables_.neighbours[buffer]) {
            if (placed_[other] || floors_[other] >= top) continue;
            changes_.push_back({Changed::floor, other, floors_[other]});
            floors_[other] = base::align_up(top, problem_.buffers[other].alignment);
            if (top_of(other, floors_[other]) > capacity_) return false;
        }
        return true;
    }
    bool take_from_slices(std::uint32_t buffer, std::uint64_t top) {
        const Buffer& it = problem_.buffers[buffer];
        for (std::uint32_t s = it.begin; s < it.end; ++s) {
            changes_.push_back({Changed::slice_bytes, s, slice_bytes_[s]});
            slice_bytes_[s] -= it.bytes;
            if (top + slice_bytes_[s] <= capacity_) continue;
            trouble_.add(s);
            return false;
        }
        return true;
    }
    void cut_slices(std::uint32_t buffer) {
        const Buffer& it = problem_.buffers[buffer];
        cut_ = false;
        for (std::uint32_t s = it.begin; s + 1 < it.end; ++s) {
            changes_.push_back({Changed::crossing, s, crossings_[s]});
            if (--crossings_[s] == 0) cut_ = true;
        }
    }
    void undo_to(std::size_t mark) noexcept {
        for (; changes_.size() > mark; changes_.pop_back()) {
            const Change& change = changes_.back();
            switch (change.what) {
                case Changed::floor:
                    floors_[change.where] = change.before;
                    break;
                case Changed::placed:
                    placed_[change.where] = 0;
                    break;
                case Changed::slice_bytes:
                    slice_bytes_[change.where] = change.before;
                    break;
                case Changed::crossing:
                    crossings_[change.where] = static_cast<std::uint32_t>(change.before);
                    break;
            }
        }
    }
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
    PackingSearch(const Problem& problem, std::uint64_t capacity)
        : problem_(problem),
          capacity_(capacity),
          tables_(make_search_tables(problem)),
          search_(problem, tables_, capacity),
          noise_(problem.buffers.size()),
          schedule_(problem.buffers.size()) {}
    PackingSearch(const PackingSearch&) = delete;
    PackingSearch& operator=(const PackingSearch&) = delete;

    /// Searches until there is an answer or `work` is over. Continues where the last call stopped.
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
    /// Returns the packing that was found. Requires: `resume` returned `found`.
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
    const std::uint64_t capacity_;
    const SearchTables tables_;
    BottomUpSearch search_;
    OrderNoise noise_;
    SearchSchedule schedule_;
};

}  // namespace tensorpool::planner
