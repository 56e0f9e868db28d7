#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorpool::tamper {

/// A writable mapping of this process.
struct Mapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::string name;  // as in /proc/self/maps; empty for memory without a file
};

/// Returns the writable mappings of this process.
std::vector<Mapping> writable_mappings();

/// Pages of records: those of mappings that were added since `before`, that are not memory of
/// blocks, and that have a byte which is not zero. They include the page map, the pools, spans,
/// magazines, tables of threads, and the statistics segment.
class RecordPages {
public:
    explicit RecordPages(const std::vector<Mapping>& before);
    /// Flips one bit. Returns what the page belongs to: "page map", "statistics" or "records".
    const char* flip(std::uint64_t random) const;
    bool empty() const { return pages_.empty(); }

private:
    struct Page {
        std::uintptr_t at;
        const char* kind;
    };
    std::vector<Page> pages_;
};

}  // namespace tensorpool::tamper
