#pragma once

/// `operator new` and sized `operator delete`: the faster door of tcmalloc and jemalloc, which
/// spare themselves the look-up of the pointer when they are told its size.

#include <new>

#include "support/subject_concept.hpp"

namespace perf {

struct Subject {
    static constexpr bool any_size = true;
    static void* allocate(std::size_t bytes) { return ::operator new(bytes); }
    static void deallocate(void* p, std::size_t bytes) noexcept { ::operator delete(p, bytes); }
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
