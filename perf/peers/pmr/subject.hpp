#pragma once

/// The thread-safe pool of the standard library, std::pmr::synchronized_pool_resource, with its
/// default options.

#include <memory_resource>

#include "support/subject_concept.hpp"

namespace perf {

struct Subject {
    static constexpr bool any_size = true;
    static void* allocate(std::size_t bytes) { return resource().allocate(bytes); }
    static void deallocate(void* p, std::size_t bytes) { resource().deallocate(p, bytes); }

private:
    static std::pmr::synchronized_pool_resource& resource() {
        static std::pmr::synchronized_pool_resource the_resource;
        return the_resource;
    }
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
