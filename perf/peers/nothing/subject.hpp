#pragma once

/// No allocator: shows the cost of the loop around the calls.

#include "support/subject_concept.hpp"

namespace perf {

struct Subject {
    static constexpr bool any_size = true;
    static void* allocate(std::size_t) noexcept { return kept; }
    static void deallocate(void*, std::size_t) noexcept {}

private:
    alignas(64) static inline char kept[64];
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
