#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "events/recorder_hooks.hpp"

namespace tensorpool::test {

struct RecordedCall {
    TraceAction action;
    std::uint64_t source;
    const void* address;
    std::size_t bytes;
};

inline std::vector<RecordedCall>& recorded_calls() {
    static std::vector<RecordedCall> all;
    return all;
}

/// Records calls into `recorded_calls()` during its lifetime.
class Recording {
public:
    Recording() {
        recorded_calls().clear();
        events::recorder_hooks.record.store([](TraceAction action, std::uint64_t source,
                                               const void* address, std::size_t bytes,
                                               std::size_t) noexcept {
            recorded_calls().push_back({action, source, address, bytes});
        });
    }
    ~Recording() { events::recorder_hooks.record.store(nullptr); }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    std::vector<RecordedCall> of(TraceAction action) const {
        std::vector<RecordedCall> found;
        for (const RecordedCall& one : recorded_calls()) {
            if (one.action == action) found.push_back(one);
        }
        return found;
    }
    std::string actions() const {
        std::string text;
        for (const RecordedCall& one : recorded_calls()) {
            text += std::to_string(static_cast<unsigned>(one.action)) + ' ';
        }
        return text;
    }
};

}  // namespace tensorpool::test
