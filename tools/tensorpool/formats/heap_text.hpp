#pragma once

/// @file
/// The parts of gperftools' text format of heap profiles.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command {

struct HeapSum {
    std::uint64_t blocks = 0, bytes = 0;          ///< alive
    std::uint64_t all_blocks = 0, all_bytes = 0;  ///< requested so far

    HeapSum& operator+=(const HeapSum& other) noexcept {
        blocks += other.blocks;
        bytes += other.bytes;
        all_blocks += other.all_blocks;
        all_bytes += other.all_bytes;
        return *this;
    }
};

/// Returns the beginning of a line: "blocks: bytes [all blocks: all bytes] @".
std::string counts(const HeapSum& sum);

/// A heap profile with names instead of addresses: each name gets an artificial code address, and a
/// symbol for it.
class NamedHeap {
public:
    void add(const HeapSum& sum, const std::vector<std::string>& innermost_first);
    /// Returns the profile. `kind` states how readers scale it: "heapprofile" (not at all), or
    /// "heap_v2/512" for an interval of 512 bytes.
    std::string text(std::string_view kind) const;

private:
    std::uint64_t address_of(const std::string& name);

    std::map<std::string, std::uint64_t> addresses_;
    HeapSum all_;
    std::string lines_;
};

}  // namespace tensorpool::command
