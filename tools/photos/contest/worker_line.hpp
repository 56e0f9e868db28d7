#pragma once

/// @file
/// Messages of a worker process to the comparing process: lines of text on its standard output.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::photos {

struct WorkerLine {
    enum class Kind {
        done,     ///< picture `number` was written; it has `pixels`
        failed,   ///< picture `number` failed; `text` is the reason
        preload,  ///< `text` is the file that provides malloc instead of the C library; empty: none
        report,   ///< `text` is a line of the pool's or the Context's report
    };
    Kind kind;
    std::size_t number = 0;
    std::uint64_t pixels = 0;
    std::string text = {};

    bool operator==(const WorkerLine&) const = default;
};

/// Formats a line without a newline; newlines within `text` become spaces.
std::string to_string(const WorkerLine& line);

/// Parses a line. Throws std::runtime_error with the line if it is none of the above.
WorkerLine parse_worker_line(std::string_view line);

}  // namespace tensorpool::photos
