#pragma once

/// @file
/// Answers requests for what refers to the largest arrays of a process. They are only answered with
/// a token, and only by POST, because the search stops the process.

#include <functional>
#include <mutex>
#include <string>

#include "serve/http/messages.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// All functions may be called from any thread. A call waits for the process; only the connection
/// that asked waits with it.
class HolderAnswers {
public:
    /// Asks a process and returns its answer as JSON. Throws CommandError and AttachError.
    using Ask = std::function<std::string(std::uint64_t process)>;
    static std::string ask_process(std::uint64_t process);

    /// `watcher` must outlive this object.
    explicit HolderAnswers(const Watcher& watcher, Ask ask = ask_process)
        : watcher_(watcher), ask_(std::move(ask)) {}

    /// Answers a request to /api/holders. Throws Refusal.
    Response answer(const Request& request, bool has_token);

private:
    const Watcher& watcher_;
    Ask ask_;
    std::mutex asking_;  ///< one at a time, so that clients cannot keep a process stopped
};

}  // namespace tensorpool::command::serve
