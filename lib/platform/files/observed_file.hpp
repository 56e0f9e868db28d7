#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorpool::platform {

/// A regular file of another process, open for reading; closed by exec. Whatever it holds and
/// whoever cuts it short, reading it brings no signal.
class ObservedFile {
public:
    ObservedFile() noexcept = default;
    /// Takes a descriptor over.
    explicit ObservedFile(int descriptor) noexcept;
    ObservedFile(ObservedFile&& other) noexcept;
    ObservedFile& operator=(ObservedFile&& other) noexcept;
    ~ObservedFile();

    /// False: it could not be opened, or is no regular file.
    explicit operator bool() const noexcept { return descriptor_ >= 0; }
    std::uint64_t bytes() const noexcept;
    /// Whether its size stands for ever: only then may it be mapped.
    bool is_sealed() const noexcept;
    /// How much it read: less than asked for at the end of the file.
    std::size_t read(std::uint64_t offset, void* to, std::size_t bytes) const noexcept;
    /// Its first bytes, read-only and shared with who writes them; nullptr on failure. `unmap` of
    /// platform.hpp ends it.
    const void* map(std::size_t bytes) const noexcept;

    /// The same file, open for writing too; none where that is refused.
    ObservedFile reopen_for_writing() const;
    /// As `map`, for reading and writing.
    void* map_for_writing(std::size_t bytes) const noexcept;
    /// Holds its lock from now on, as long as the descriptor is open. False where somebody does.
    [[nodiscard]] bool hold_lock() const noexcept;

    /// Whether somebody holds its lock (flock), as the process does that made it.
    enum class Lock { held, free, unknown };
    Lock lock() const noexcept;

    std::uint64_t device() const noexcept { return device_; }
    std::uint64_t inode() const noexcept { return inode_; }

private:
    int descriptor_ = -1;
    std::uint64_t device_ = 0;
    std::uint64_t inode_ = 0;
};

// Folders with one file a process, whose name is its number.
// ---------------------------------------

/// The numbers in their order; none where the folder cannot be read. Throws std::bad_alloc.
std::vector<std::uint64_t> numbers_in(const std::string& folder);
/// Follows no link, and waits for nobody.
ObservedFile open_in(const std::string& folder, std::uint64_t number);
/// Removes the file, if it is still this one. False where it is not, or may not be removed.
bool remove_in(const std::string& folder, std::uint64_t number, const ObservedFile& file);

}  // namespace tensorpool::platform
