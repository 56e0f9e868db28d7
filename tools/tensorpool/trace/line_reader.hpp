#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/input.hpp"

namespace tensorpool::command::trace {

/// The lines of a text, without their ends.
class LineReader {
public:
    explicit LineReader(Input& input) : input_(input) {}

    /// False at the end. A line is valid until the next one is read. Throws TraceError for one that
    /// is longer than any should be.
    bool next(std::string_view& line);
    /// Where the last line begins in the file.
    std::uint64_t offset() const noexcept { return line_offset_; }

private:
    bool fill();

    Input& input_;
    std::string buffer_;
    std::size_t at_ = 0;               // of the next line in the buffer
    std::uint64_t buffer_offset_ = 0;  // in the file
    std::uint64_t line_offset_ = 0;
};

}  // namespace tensorpool::command::trace
