#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tensorpool::platform {

/// Why a call on a file failed. Converts to true if it did.
struct FileProblem {
    char text[160] = {};

    explicit operator bool() const noexcept { return text[0] != '\0'; }
};

/// Where a spill file is read from: the disk, or the page cache, into which the system reads ahead.
enum class ReadFrom : std::uint8_t { disk, page_cache };

/// A file without a name, to which a process moves content of its memory. Readable by this user
/// only, closed by exec, and gone when the last process that has it ends, however it ends. Its
/// bytes are not encrypted. Reads and writes bypass the page cache (O_DIRECT of open(2)) where the
/// file system allows it and the memory begins at a multiple of `unit`: the cache would need memory
/// when there is the least, and a copy. Any thread may call it. Neither throws nor allocates.
class SpillFile {
public:
    /// Positions are multiples of this, and bytes up to the next multiple may be written as zeros.
    /// It is the largest block of common disks.
    static constexpr std::size_t unit = 4096;

    SpillFile() noexcept = default;
    /// Closes the file.
    ~SpillFile();
    SpillFile(const SpillFile&) = delete;
    SpillFile& operator=(const SpillFile&) = delete;

    /// Creates the file in a folder. Fails if the folder lies in memory (tmpfs, ramfs), and if its
    /// file system has no unnamed files or cannot free parts of a file.
    [[nodiscard]] FileProblem open(const char* folder) noexcept;

    /// Writes all of the bytes at `position`, or starts their way to the disk. Fails if the disk is
    /// full or the file would exceed a limit; a part may then have been written.
    [[nodiscard]] FileProblem write(std::uint64_t position,
                                    std::span<const std::byte> bytes) noexcept;
    /// Waits until the bytes are on the disk, and drops them from the page cache.
    [[nodiscard]] FileProblem settle(std::uint64_t position, std::uint64_t bytes) noexcept;
    /// Reads as many bytes as `bytes` has. Fails if the file ends before.
    [[nodiscard]] FileProblem read(std::uint64_t position, std::span<std::byte> bytes,
                                   ReadFrom from) const noexcept;
    /// Lets the system read bytes into the page cache. Returns at once.
    void read_ahead(std::uint64_t position, std::uint64_t bytes) const noexcept;
    /// Frees the disk space of whole pages of the file, which then read as zeros. Returns false if
    /// the system refuses.
    bool free(std::uint64_t position, std::uint64_t bytes) noexcept;

private:
    int file_ = -1;
    int direct_ = -1;  // the same file, past the page cache; -1 if that is refused
};

}  // namespace tensorpool::platform
