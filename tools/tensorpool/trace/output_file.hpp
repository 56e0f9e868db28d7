#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tensorpool::command::trace {

/// A file that grows piece by piece. A full disk, or a limit on the size of files, ends that with a
/// word of why, and without a signal; the file then ends with its last whole piece.
class OutputFile {
public:
    using Piece = std::initializer_list<std::span<const std::byte>>;

    /// Makes the file with mode 0600, or empties the one that stands there. Throws CommandError
    /// where that cannot be, or where another process records into it.
    explicit OutputFile(const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Appends the parts of a piece. After one that failed it does nothing.
    void append(Piece piece);

    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Why it takes no more; "" while it does.
    const std::string& problem() const noexcept { return problem_; }

private:
    bool write_all(std::span<const std::byte> part);

    int file_ = -1;
    std::uint64_t bytes_ = 0;
    std::string problem_;
};

}  // namespace tensorpool::command::trace
