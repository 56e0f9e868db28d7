#pragma once

/// `malloc` and `free` of glibc, or of the library that is preloaded.

#include <cstdlib>

#include "support/subject_concept.hpp"

namespace perf {

struct Subject {
    static constexpr bool any_size = true;
    static void* allocate(std::size_t bytes) { return std::malloc(bytes); }
    static void deallocate(void* p, std::size_t) noexcept { std::free(p); }
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
