#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "statistics/recorder_hooks.hpp"

namespace tensorpool::test {

struct Told {
    TraceAction action;
    std::uint64_t source;
    const void* address;
    std::size_t bytes;
};

inline std::vector<Told>& told() {
    static std::vector<Told> all;
    return all;
}

/// While it lives, calls are recorded into `told()`.
class Recording {
public:
    Recording() {
        told().clear();
        statistics::recorder_hooks.record.store([](TraceAction action, std::uint64_t source,
                                                   const void* address, std::size_t bytes,
                                                   std::size_t) noexcept {
            told().push_back({action, source, address, bytes});
        });
    }
    ~Recording() { statistics::recorder_hooks.record.store(nullptr); }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    std::vector<Told> of(TraceAction action) const {
        std::vector<Told> found;
        for (const Told& one : told()) {
            if (one.action == action) found.push_back(one);
        }
        return found;
    }
    std::string actions() const {
        std::string text;
        for (const Told& one : told()) {
            text += std::to_string(static_cast<unsigned>(one.action)) + ' ';
        }
        return text;
    }
};

}  // namespace tensorpool::test
