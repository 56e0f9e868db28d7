#pragma once

/// @file
/// What an arena or a scratch did and holds. All sizes are bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A snapshot of one arena or scratch. Exact when no call is under way; otherwise each figure is
/// one that held while the snapshot was taken.
struct ArenaStatistics {
    static constexpr std::uint32_t current_version = 2;

    /// Where the memory comes from.
    enum class Kind : std::uint8_t {
        growing,    ///< an arena with memory of its own
        buffer,     ///< an arena over memory of its owner's
        measuring,  ///< an arena without memory, which only adds up
        scratch,    ///< a scratch
    };

    std::uint32_t version = current_version;
    char name[48] = {};
    Kind kind = Kind::growing;
    std::uint64_t id = 0;      ///< unlike that of any other pool or arena of the process, ever
    std::uint64_t thread = 0;  ///< whose scratch it is, by the system's number; 0 for an arena

    std::uint64_t used_bytes = 0;           ///< handed out since the last release below them,
                                            ///< alignment included
    std::uint64_t peak_used_bytes = 0;      ///< the most of that at once
    std::uint64_t capacity_bytes = 0;       ///< committed, or the size of the buffer
    std::uint64_t peak_capacity_bytes = 0;  ///< the most of that at once
    std::uint64_t reserved_bytes = 0;       ///< address space
    std::uint64_t limit_bytes = 0;          ///< how far the capacity may grow; 0 means no limit
    std::uint64_t growths = 0;              ///< times that memory was committed
    std::uint64_t grown_bytes = 0;          ///< total of that
    std::uint64_t give_backs = 0;           ///< times that memory was given back to the system
    std::uint64_t given_back_bytes = 0;     ///< total of that
    std::uint64_t refusals = 0;             ///< requests that could not be met
};

/// One JSON object, the names those of the fields above; the kind is a word, such as "growing".
TENSORPOOL_API std::string to_json(const ArenaStatistics& statistics);
/// A report for people: a headline, then a few lines of figures. Ends with a newline.
TENSORPOOL_API std::string to_text(const ArenaStatistics& statistics);

}  // namespace tensorpool
