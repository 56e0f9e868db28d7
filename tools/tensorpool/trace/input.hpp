#pragma once

/// @file
/// The bytes of a file, or some in memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tensorpool::command::trace {

/// Read with `pread`, so that a file which somebody cuts short meanwhile brings no signal.
class Input {
public:
    /// Throws CommandError where it cannot be opened or is no file.
    explicit Input(const std::string& path);
    /// Over bytes that outlive it; `name` stands in errors.
    Input(std::span<const std::byte> bytes, std::string name);
    Input(Input&& other) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    const std::string& name() const noexcept { return name_; }
    /// As it was when it was opened, or as it was cut since.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Fills `to` from `offset` on; returns how much there was. Throws CommandError.
    std::size_t read(std::uint64_t offset, std::span<std::byte> to);

private:
    std::string name_;
    int file_ = -1;
    std::span<const std::byte> memory_;
    std::uint64_t bytes_ = 0;
};

}  // namespace tensorpool::command::trace
