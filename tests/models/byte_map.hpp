#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace tensorpool::testing {

/// All bytes that a program has in use, from any source. Each block is filled with a tag of its
/// own. Thread-safe.
class ByteMap {
public:
    /// Throws std::runtime_error if the block is not aligned or overlaps another.
    void add(void* p, std::size_t bytes, std::size_t alignment) {
        auto* const begin = static_cast<unsigned char*>(p);
        if (reinterpret_cast<std::uintptr_t>(p) % alignment != 0) fail("a block is not aligned");
        const std::lock_guard guard(mutex_);
        const auto above = blocks_.lower_bound(begin);
        if (above != blocks_.end() && above->first < begin + bytes) fail("a block overlaps");
        if (above != blocks_.begin()) {
            const auto under = std::prev(above);
            if (under->first + under->second.bytes > begin) fail("a block overlaps");
        }
        const auto tag = static_cast<unsigned char>(++numbers_);
        std::memset(begin, tag, bytes);
        blocks_.emplace(begin, Block{bytes, tag});
    }
    /// Removes a block that is about to end. Throws std::runtime_error if its bytes changed.
    void remove(void* p) {
        const std::lock_guard guard(mutex_);
        const auto found = blocks_.find(static_cast<unsigned char*>(p));
        if (found == blocks_.end()) fail("a block is unknown");
        const Block block = found->second;
        for (std::size_t i = 0; i < block.bytes; ++i) {
            if (found->first[i] != block.tag) fail("a block was written over");
        }
        blocks_.erase(found);
    }

private:
    [[noreturn]] static void fail(const char* problem) { throw std::runtime_error(problem); }

    struct Block {
        std::size_t bytes;
        unsigned char tag;
    };
    std::mutex mutex_;
    std::map<unsigned char*, Block> blocks_;
    unsigned numbers_ = 0;
};

}  // namespace tensorpool::testing
