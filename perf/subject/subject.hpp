#pragma once

/// tensorpool as a program uses it: the global pool through the inline fast path.

#include <tensorpool/memory_pool.hpp>
#include "support/subject_concept.hpp"

namespace perf {

struct Subject {
    static constexpr bool any_size = true;
    static void* allocate(std::size_t bytes) {
        return tensorpool::get_global_memory_pool().allocate(bytes);
    }
    static void deallocate(void* p, std::size_t bytes) noexcept {
        tensorpool::get_global_memory_pool().deallocate(p, bytes);
    }
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
