#pragma once

/// What a question may ask. Each subject is a header `subject.hpp` in a folder of its own that
/// defines `perf::Subject`; a question includes "subject.hpp", and the build says whose.

#include <concepts>
#include <cstddef>

namespace perf {

/// `allocate(bytes)` and `deallocate(p, bytes)` with the bytes that were asked for, from any
/// thread unless the subject says otherwise.
template <class S>
concept AnswersQuestions = requires(void* p, std::size_t bytes) {
    { S::allocate(bytes) } -> std::same_as<void*>;
    { S::deallocate(p, bytes) } -> std::same_as<void>;
    /// Blocks of one size may be followed by blocks of another.
    { S::any_size } -> std::convertible_to<bool>;
};

}  // namespace perf
