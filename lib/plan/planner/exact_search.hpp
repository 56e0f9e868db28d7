#pragma once

#include <cstdint>
#include <memory>

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

enum class SearchEnd {
    found,    ///< a packing within the capacity was found
    refuted,  ///< it is proven that no packing fits within the capacity
    stopped,  ///< the work is over, or the problem is too large for a search
};

/// Decides whether a problem can be packed into `capacity` bytes. The search can be stopped and
/// resumed.
class PackingSearch {
public:
    /// The problem must outlive it.
    PackingSearch(const Problem& problem, std::uint64_t capacity);
    ~PackingSearch();
    PackingSearch(const PackingSearch&) = delete;
    PackingSearch& operator=(const PackingSearch&) = delete;

    /// Searches until there is an answer or `work` is over. Continues where the last call stopped.
    SearchEnd resume(Work& work);
    /// Returns the packing that was found. Requires: `resume` returned `found`.
    Packing packing() const;
    std::uint64_t capacity() const noexcept;

private:
    class Turns;
    std::unique_ptr<Turns> turns_;
};

/// Decides whether a problem can be packed into `capacity` bytes, in a single search. `packing` is
/// written only if the result is `found`.
SearchEnd search_packing(const Problem& problem, std::uint64_t capacity, Work& work,
                         Packing& packing);

}  // namespace tensorpool::planner
