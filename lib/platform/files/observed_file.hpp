#pragma once

#include <string>
#include <vector>

#include "platform/files/input_file.hpp"

namespace tensorpool::platform {

/// A regular file of another process, open for reading and closed by exec. Reading it raises no
/// signal, whatever it contains and even if its owner truncates it.
class ObservedFile {
public:
    ObservedFile() noexcept = default;
    /// Takes ownership of a descriptor.
    explicit ObservedFile(int descriptor) noexcept;

    /// False if the file could not be opened or is not a regular file.
    explicit operator bool() const noexcept { return static_cast<bool>(file_); }
    std::uint64_t bytes() const noexcept { return file_.bytes(); }
    /// Returns whether the size of the file is sealed against change. Only such a file may be
    /// mapped.
    bool is_sealed() const noexcept;
    /// Reads up to `bytes` bytes at `offset` and returns the number read, which is less at the end
    /// of the file.
    std::size_t read(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
        std::error_code ignored;
        return file_.read(offset, to, bytes, ignored);
    }
    /// Maps the first `bytes` bytes read-only, shared with the process that writes them. Returns
    /// nullptr on failure. `unmap` of platform.hpp ends the mapping.
    const void* map(std::size_t bytes) const noexcept;

    /// Opens the same file for reading and writing. Returns an empty object if the system refuses.
    ObservedFile reopen_for_writing() const;
    /// Maps the first `bytes` bytes for reading and writing. Returns nullptr on failure.
    void* map_for_writing(std::size_t bytes) const noexcept;
    /// Acquires the exclusive lock (flock) and holds it for as long as the descriptor is open.
    /// Returns false if another process holds it.
    [[nodiscard]] bool hold_lock() const noexcept;

    /// Whether a process holds the lock (flock) of the file, as the process that created it does.
    enum class Lock { held, free, unknown };
    Lock lock() const noexcept;

    std::uint64_t device() const noexcept { return device_; }
    std::uint64_t inode() const noexcept { return inode_; }

private:
    int descriptor() const noexcept { return static_cast<int>(file_.handle()); }

    InputFile file_;
    std::uint64_t device_ = 0;
    std::uint64_t inode_ = 0;
};

// Folders that contain one file a process, named after the process's number.
// ---------------------------------------

/// Returns the numbers that name files in `folder`, in ascending order. Returns none if the folder
/// cannot be read. Throws std::bad_alloc.
std::vector<std::uint64_t> numbers_in(const std::string& folder);
/// Opens the file of this number. Follows no symbolic link and does not block.
ObservedFile open_in(const std::string& folder, std::uint64_t number);
/// Removes the file if it is still the same one. Returns false if it is another file or may not be
/// removed.
bool remove_in(const std::string& folder, std::uint64_t number, const ObservedFile& file);

}  // namespace tensorpool::platform
