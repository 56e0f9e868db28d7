#pragma once

/// `operator new` and sized `operator delete`. In tcmalloc and jemalloc they are faster than
/// `malloc` and `free`: with the size given, the pointer is not looked up.

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
