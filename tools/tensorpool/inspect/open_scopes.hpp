#pragma once

#include <cstdint>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::inspect {

/// Which scopes are open on each thread, followed call by call.
class OpenScopes {
public:
    static constexpr std::uint32_t none = UINT32_MAX;

    explicit OpenScopes(const trace::Recording& recording) : open_(recording.threads.size()) {}

    /// Calls must come in their order.
    void take(const trace::Call& call);
    /// A source; `none` outside of all scopes.
    std::uint32_t innermost(std::uint32_t thread) const noexcept {
        return open_[thread].empty() ? none : open_[thread].back();
    }

private:
    void close(std::vector<std::uint32_t>& open, std::uint32_t source);

    std::vector<std::vector<std::uint32_t>> open_;  // of each thread, the innermost last
};

}  // namespace tensorpool::command::inspect
