#pragma once

/// @file
/// Requests to other processes to give back the memory that their pools do not need. Linux only: on
/// other systems no process can be reached.

#include <optional>

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool {

/// A request to another process of the same user to trim all its pools, and its answer.
///
/// The process sees the request when one of its threads next takes a slow path of a pool, such as
/// for a large block or after some hundred small ones, or at once if its background trimmer runs
/// (see RetentionPolicy). One thread at a time may use the object. It holds one mapping and one
/// descriptor.
class TENSORPOOL_API TrimRequest {
public:
    /// Sends the request. It stands until it is answered, even if the object is destroyed before.
    /// Throws AttachError if the process has no control or cannot be read, and std::bad_alloc.
    static TrimRequest ask(std::uint64_t process);

    /// Takes over the request of another object, which then may only be assigned to or destroyed.
    TrimRequest(TrimRequest&&) noexcept;
    /// Gives up its own and takes over the request of another object, which then may only be
    /// assigned to or destroyed.
    TrimRequest& operator=(TrimRequest&&) noexcept;
    /// Closes the descriptor and the mapping; the request stands.
    ~TrimRequest();

    /// Returns the bytes by which the capacities of the process's pools fell, or std::nullopt
    /// before it has answered this request or a later one.
    std::optional<std::uint64_t> trimmed_bytes() const noexcept;

private:
    struct State;
    explicit TrimRequest(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
