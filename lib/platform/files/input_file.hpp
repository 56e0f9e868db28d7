#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

namespace tensorpool::platform {

enum class FileKind : std::uint8_t { none, regular, folder, pipe, device, other };

/// A mapping of a file; `address` is nullptr if mapping failed.
struct FileMapping {
    void* address = nullptr;
    std::size_t bytes = 0;
};

/// A file that is open for reading and closed by exec. Functions that can fail store the system's
/// reason in `error`; on success they leave it unchanged.
class InputFile {
public:
    /// The system's descriptor or handle of the file.
    using Handle = std::intptr_t;
    static constexpr Handle none = -1;

    InputFile() noexcept = default;
    InputFile(InputFile&& other) noexcept : handle_(std::exchange(other.handle_, none)) {}
    InputFile& operator=(InputFile&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~InputFile();

    /// Takes ownership of a handle, or of none.
    explicit InputFile(Handle handle) noexcept : handle_(handle) {}
    /// Opens the file, folder, pipe or device of this name without blocking. Allocates nothing on
    /// POSIX systems; on others, throws std::bad_alloc.
    static InputFile open(const char* path, std::error_code& error);

    explicit operator bool() const noexcept { return handle_ != none; }
    Handle handle() const noexcept { return handle_; }
    FileKind kind() const noexcept;
    /// Returns the size of the file in bytes; 0 if it is unknown.
    std::uint64_t bytes() const noexcept;
    /// Reads up to `bytes` bytes at `offset` and returns the number read. It is less than requested
    /// at the end of the file and on failure.
    std::size_t read(std::uint64_t offset, void* to, std::size_t bytes,
                     std::error_code& error) const noexcept;
    /// Maps [offset, offset + bytes) read-only; offset is a multiple of `mapping_granularity()`. A
    /// mapping of at least one huge page is placed so that huge pages of the file can be huge pages
    /// of memory.
    FileMapping map(std::uint64_t offset, std::size_t bytes, bool shared,
                    std::error_code& error) const noexcept;
    /// Drops these whole pages from the system's page cache. Returns false if the system does not
    /// support this.
    bool drop_from_cache(std::uint64_t offset, std::uint64_t bytes) const noexcept;

private:
    Handle handle_ = none;
};

/// Offsets of mappings are multiples of this number of bytes: a power of two, at least a page.
std::size_t mapping_granularity() noexcept;

}  // namespace tensorpool::platform
