#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tensorpool::command::trace {

/// A file that grows in pieces. If the disk is full or the file size limit is reached, writing ends
/// with a message and without a signal. The file then ends with its last complete piece.
class OutputFile {
public:
    using Piece = std::initializer_list<std::span<const std::byte>>;

    /// Creates the file with mode 0600, or empties an existing one. Throws CommandError if that
    /// fails, or if another process records into it.
    explicit OutputFile(const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Appends the parts of a piece. Does nothing after a failure.
    void append(Piece piece);

    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Why the file cannot be written further; "" if it can.
    const std::string& problem() const noexcept { return problem_; }

private:
    bool write_all(std::span<const std::byte> part);

    int file_ = -1;
    std::uint64_t bytes_ = 0;
    std::string problem_;
};

}  // namespace tensorpool::command::trace
