#pragma once

#include <cstdint>
#include <memory>

#include "planner/problem.hpp"
#include "planner/work.hpp"

namespace tensorpool::planner {

enum class SearchEnd {
    found,    ///< a packing within the capacity
    refuted,  ///< there is none: proven
    stopped,  ///< no more work was allowed, or the problem is too large for a search
};

/// Asks whether a problem fits into `capacity` bytes, and goes on from where it was stopped.
class PackingSearch {
public:
    /// The problem must outlive it.
    PackingSearch(const Problem& problem, std::uint64_t capacity);
    ~PackingSearch();
    PackingSearch(const PackingSearch&) = delete;
    PackingSearch& operator=(const PackingSearch&) = delete;

    SearchEnd go_on(Work& work);
    /// Once it is found.
    Packing packing() const;
    std::uint64_t capacity() const noexcept;

private:
    class Turns;
    std::unique_ptr<Turns> turns_;
};

/// The same in one go; `packing` is written only when there is one.
SearchEnd search_packing(const Problem& problem, std::uint64_t capacity, Work& work,
                         Packing& packing);

}  // namespace tensorpool::planner
