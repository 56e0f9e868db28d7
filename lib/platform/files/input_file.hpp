#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace tensorpool::platform {

enum class FileKind : std::uint8_t { none, regular, folder, pipe, device, other };

/// A mapping of a file; `address` is nullptr where it could not be had.
struct FileMapping {
    void* address = nullptr;
    std::size_t bytes = 0;
};

/// A file open for reading; closed by exec. Functions that can fail put the system's reason into
/// `error`, and leave it alone when they do not.
class InputFile {
public:
    /// The system's number for it, or its handle.
    using Handle = std::intptr_t;
    static constexpr Handle none = -1;

    InputFile() noexcept = default;
    InputFile(InputFile&& other) noexcept : handle_(std::exchange(other.handle_, none)) {}
    InputFile& operator=(InputFile&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~InputFile();

    /// Opens whatever has this name, waiting for nobody. Throws std::bad_alloc.
    static InputFile open(const std::string& path, std::error_code& error);

    explicit operator bool() const noexcept { return handle_ != none; }
    FileKind kind() const noexcept;
    /// 0 where that cannot be told.
    std::uint64_t bytes() const noexcept;
    /// How much it read: less than asked for at the end of the file, and on failure.
    std::size_t read(std::uint64_t offset, void* to, std::size_t bytes,
                     std::error_code& error) const noexcept;
    /// Maps [offset, offset + bytes) read-only; offset is a multiple of `mapping_granularity()`.
    /// Lies so that huge pages of the file can be huge pages of memory, where it is that large.
    FileMapping map(std::uint64_t offset, std::size_t bytes, bool shared,
                    std::error_code& error) const noexcept;
    /// The system's cache lets go of these whole pages. False where it cannot be asked.
    bool drop_from_cache(std::uint64_t offset, std::uint64_t bytes) const noexcept;

private:
    explicit InputFile(Handle handle) noexcept : handle_(handle) {}
    Handle handle_ = none;
};

/// What offsets of mappings are multiples of: a power of two, a page at least.
std::size_t mapping_granularity() noexcept;

}  // namespace tensorpool::platform
