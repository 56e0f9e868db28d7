#pragma once

/// The interface of subjects. Each subject is a header `subject.hpp` in a folder of its own, which
/// defines `perf::Subject`. A question includes "subject.hpp", and the build selects the folder.

#include <concepts>
#include <cstddef>

namespace perf {

/// A subject has `allocate(bytes)`, and `deallocate(p, bytes)` with the requested bytes. Any thread
/// may call them unless the subject says otherwise.
template <class S>
concept AnswersQuestions = requires(void* p, std::size_t bytes) {
    { S::allocate(bytes) } -> std::same_as<void*>;
    { S::deallocate(p, bytes) } -> std::same_as<void>;
    /// Whether the subject serves blocks of different sizes in one process.
    { S::any_size } -> std::convertible_to<bool>;
};

}  // namespace perf
