#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace tensorpool::testing {

/// Memory of so many words that one thread, the owner, stores to through its processor's store
/// buffer. All other threads see `visible`.
template <std::size_t words>
struct BufferedMemory {
    std::array<int, words> visible = {};
    /// Stores of the owner that are not visible yet, as word and value.
    std::deque<std::pair<std::size_t, int>> buffer;

    /// What the owner reads: its own last store, even if no other thread sees it yet.
    int read(std::size_t word) const {
        for (auto store = buffer.rbegin(); store != buffer.rend(); ++store) {
            if (store->first == word) return store->second;
        }
        return visible[word];
    }
    void store(std::size_t word, int value) { buffer.emplace_back(word, value); }
    /// Makes the oldest store visible.
    void flush_one() {
        visible[buffer.front().first] = buffer.front().second;
        buffer.pop_front();
    }
    /// A fence on the processor of the owner, by whichever thread.
    void fence() {
        while (!buffer.empty()) flush_one();
    }
    void add_to(std::vector<int>& key) const {
        key.insert(key.end(), visible.begin(), visible.end());
        key.push_back(static_cast<int>(buffer.size()));
        for (const auto& [word, value] : buffer) {
            key.insert(key.end(), {static_cast<int>(word), value});
        }
    }
};

}  // namespace tensorpool::testing
