#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::trace {

/// Each stack once, however often it was sampled.
class StackTable {
public:
    /// The number of a stack: 0 for an empty one.
    std::uint32_t number_of(const std::vector<RecordedFrame>& frames) {
        if (frames.empty()) return 0;
        const auto [at, added] =
            numbers_.try_emplace(frames, static_cast<std::uint32_t>(numbers_.size() + 1));
        return at->second;
    }
    /// All of them by their numbers, the empty one first. The table is empty then.
    std::vector<std::vector<RecordedFrame>> take() {
        std::vector<std::vector<RecordedFrame>> stacks(numbers_.size() + 1);
        while (!numbers_.empty()) {
            auto node = numbers_.extract(numbers_.begin());
            stacks[node.mapped()] = std::move(node.key());
        }
        return stacks;
    }

private:
    struct Hash {
        std::size_t operator()(const std::vector<RecordedFrame>& frames) const noexcept {
            std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
            for (const RecordedFrame& frame : frames) {
                hash = (hash ^ frame.module) * 0x100000001b3;
                hash = (hash ^ frame.offset) * 0x100000001b3;
            }
            return hash ^ hash >> 32;
        }
    };
    std::unordered_map<std::vector<RecordedFrame>, std::uint32_t, Hash> numbers_;
};

}  // namespace tensorpool::command::trace
