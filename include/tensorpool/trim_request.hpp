#pragma once

/// @file
/// Asks another process to give back what its pools do not need. Linux only: elsewhere none can be
/// asked.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <tensorpool/export.hpp>
#include <tensorpool/statistics_reader.hpp>

namespace tensorpool {

/// A request to another process of the same user to trim all its pools, and its answer. The process
/// sees the request when one of its threads next takes a slow path of a pool, such as for a large
/// block or after some hundred small ones, or at once where its background trimmer runs (see
/// RetentionPolicy). One thread's at a time. It holds one mapping and one descriptor.
class TENSORPOOL_API TrimRequest {
public:
    /// Asks. The request stands until it is answered, whatever becomes of the object. Throws
    /// AttachError where the process has no control or cannot be looked into; and std::bad_alloc.
    static TrimRequest ask(std::uint64_t process);

    TrimRequest(TrimRequest&&) noexcept;
    TrimRequest& operator=(TrimRequest&&) noexcept;
    ~TrimRequest();

    /// The bytes by which the capacities of its pools fell; nothing before the process has answered
    /// this request or a later one.
    std::optional<std::uint64_t> trimmed_bytes() const noexcept;

private:
    struct State;
    explicit TrimRequest(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
