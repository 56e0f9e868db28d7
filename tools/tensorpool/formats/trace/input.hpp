#pragma once

/// @file
/// Reads the bytes of a file, or bytes in memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/posix.hpp"
#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::trace {

/// A file that is not a trace, or is damaged. The message names the file, the byte offset, what was
/// found and what was expected.
class TraceError : public CommandError {
public:
    TraceError(const std::string& path, std::uint64_t offset, const std::string& what)
        : CommandError(finding,
                       printable(path) + ": at byte " + std::to_string(offset) + ": " + what) {}
};

/// Reads with `pread`, so that a file truncated by another process does not raise a signal.
class Input {
public:
    /// Throws CommandError if the file cannot be opened or is not a regular file.
    explicit Input(const std::string& path);
    /// Reads from memory, which must outlive this object. `name` appears in error messages.
    Input(std::span<const std::byte> bytes, std::string name);

    const std::string& name() const noexcept { return name_; }
    /// The size when the file was opened, or after a later truncation.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Fills `to` from `offset` on. Returns the number of bytes read. Throws CommandError.
    std::size_t read(std::uint64_t offset, std::span<std::byte> to);

private:
    std::string name_;
    Descriptor file_;
    std::span<const std::byte> memory_;
    std::uint64_t bytes_ = 0;
};

}  // namespace tensorpool::command::trace
