#pragma once

/// @file
/// Requests to other processes to name what refers to their largest arrays, and the answers of this
/// process. Linux only: on other systems no process can be reached.

#include <optional>

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool {

/// A request to another process of the same user to name the holders of its largest arrays, and its
/// answer.
///
/// The process sees the request when one of its threads next takes a slow path of a pool, such as
/// for a large block or after some hundred small ones, or at once if its background trimmer runs
/// (see RetentionPolicy). Its handler then answers; that of the Python package does when the main
/// thread next runs Python code, and stops the program for up to a second. One thread at a time may
/// use the object. It holds one mapping and one descriptor.
class TENSORPOOL_API HolderRequest {
public:
    /// Sends the request. It stands until it is answered, even if the object is destroyed before.
    /// Throws AttachError if the process has no control or cannot be read, and std::bad_alloc.
    static HolderRequest ask(std::uint64_t process);

    /// Takes over the request of another object, which then may only be assigned to or destroyed.
    HolderRequest(HolderRequest&&) noexcept;
    /// Gives up its own and takes over the request of another object, which then may only be
    /// assigned to or destroyed.
    HolderRequest& operator=(HolderRequest&&) noexcept;
    /// Closes the descriptor and the mapping; the request stands.
    ~HolderRequest();

    /// Returns the text of the answer, or std::nullopt before the process has answered this request
    /// or a later one. The text is empty if the process has no handler. It comes from another
    /// process, so check it. Its first MiB is returned. Throws std::bad_alloc.
    std::optional<std::string> answer() const;

private:
    struct State;
    explicit HolderRequest(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

/// Handles a request with this number, by a call of `answer_holders` at any later time. It is
/// called on the thread that sees the request, which may be in the middle of an allocation and hold
/// any lock. So it takes no lock that is held during an allocation, and calls neither a pool nor a
/// function of this header.
using HolderHandler = void (*)(std::uint64_t request) noexcept;

/// Sets the handler of this process; nullptr removes it. Waits for a call of the previous one to
/// return. The child of a fork keeps the handler, but not the requests. Any thread may call it.
TENSORPOOL_API void set_holder_handler(HolderHandler handler) noexcept;

/// Answers the request with this number and all earlier ones. If a later one is answered already,
/// or the number is that of no request to this process, nothing happens. If there is no memory for
/// the text, the answer is empty. Any thread may call it.
TENSORPOOL_API void answer_holders(std::uint64_t request, std::string_view text) noexcept;

}  // namespace tensorpool
