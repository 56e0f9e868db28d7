#pragma once

/// @file
/// Files mapped into memory instead of read. All sizes and offsets are bytes. Offsets count from
/// the beginning of the file, even if only a part of it is mapped.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

namespace files {
class Mapping;
}

/// A part of a file, which need not begin or end at a page.
struct FilePart {
    /// A value of `bytes` that means everything up to the end of the file.
    static constexpr std::uint64_t to_the_end = UINT64_MAX;
    /// The offset of the first byte.
    std::uint64_t offset = 0;
    /// The size of the part.
    std::uint64_t bytes = to_the_end;
    /// Returns whether two parts are equal.
    friend bool operator==(const FilePart&, const FilePart&) = default;
};

/// Whether a mapping shows what other processes write to the file.
///
/// With `no` that is unspecified: a page may be the file's or a private one. Some file systems
/// refuse shared mappings.
enum class Shared : bool {
    no,   ///< unspecified
    yes,  ///< it shows them
};

/// The options of a mapping.
struct MappingOptions {
    /// The part of the file to map.
    FilePart part = {};
    /// Whether the mapping shows what other processes write to the file.
    Shared shared = Shared::yes;
};

/// The result of advice to the system.
enum class Advised : std::uint8_t {
    /// The system followed it.
    done,
    /// Nothing was done: this machine has one memory node.
    one_node,
    /// Nothing was done: this system, or the file's, has no such function.
    unsupported,
    /// The system did not follow it, or only in part, as for a file that was truncated.
    refused,
};
/// Returns the name of the result, such as "done".
TENSORPOOL_API const char* to_string(Advised advised) noexcept;

/// When prefetched pages are in memory.
enum class Prefetch : std::uint8_t {
    /// The system begins to read them, and the call returns.
    ahead,
    /// They are in memory when the call returns, and touching them costs no page fault.
    now,
};
/// The order in which pages will be touched.
enum class AccessPattern : std::uint8_t {
    normal,      ///< no particular order
    sequential,  ///< from the first to the last
    random,      ///< in random order
};

/// On which memory node pages of a file are placed that are not in memory yet.
enum class NumaPlacement : std::uint8_t {
    /// On the node of the thread that touches a page first, the default of systems.
    first_touch,
    /// On all nodes in turn.
    interleave,
    /// On one node, or on others if that is full.
    bind,
};

/// The exception for a file that was truncated after it was mapped.
class TENSORPOOL_API FileCutShortError : public std::runtime_error {
public:
    /// Makes the error: of the part `asked` of the file at `path`, only `found` bytes of the file
    /// exist.
    FileCutShortError(const std::string& path, FilePart asked, std::uint64_t found);
    /// Returns the file's path.
    const std::string& path() const noexcept { return path_; }
    /// Returns the part that was to be copied.
    FilePart asked() const noexcept { return asked_; }
    /// Returns the file's size.
    std::uint64_t found() const noexcept { return found_; }

private:
    std::string path_;
    FilePart asked_;
    std::uint64_t found_;
};

/// A file, or a part of it, that is mapped read-only.
///
/// It can be moved, not copied. The bytes keep their addresses when the object is moved; a
/// moved-from object may only be assigned to or destroyed. Any number of threads may call const
/// functions at once.
///
/// If another process truncates the file, touching a mapped byte beyond its new end raises SIGBUS.
/// That ends a process without a handler, and this class installs none. Where truncation is
/// possible, copy with `copy_to`, which is safe. Programs that replace a file by renaming another
/// over it do no harm: the mapping keeps the old file.
class TENSORPOOL_API MappedFile {
public:
    /// Maps a regular file without reading it. An empty part needs no mapping and gets none.
    ///
    /// Throws std::system_error if the file cannot be opened or mapped; it never waits for another
    /// process, as opening a pipe would. Throws std::out_of_range for a part beyond the end of the
    /// file. The texts name the file. A file that reports no size, as those in /proc, counts as
    /// empty.
    static MappedFile open(const std::string& path, const MappingOptions& options = {});

    /// Takes over the mapping of another object, which then may only be assigned to or destroyed.
    MappedFile(MappedFile&&) noexcept;
    /// Gives up its own and takes over the mapping of another object, which then may only be
    /// assigned to or destroyed.
    MappedFile& operator=(MappedFile&&) noexcept;
    /// Ends the mapping and closes the file.
    ~MappedFile();

    /// Returns the file's path.
    const std::string& path() const noexcept;
    /// Returns which part of the file is mapped.
    FilePart part() const noexcept;
    /// Returns the mapped bytes. Parts that were unmapped must not be touched.
    std::span<const std::byte> bytes() const noexcept;
    /// Returns the mapped bytes of a part. Parts that were unmapped must not be touched. Throws
    /// std::out_of_range if the part does not lie within `part()`.
    std::span<const std::byte> bytes(FilePart part) const;

    /// Returns the present size of the file, which is less than the end of `part()` if the file was
    /// truncated. Returns 0 if the size is unknown.
    std::uint64_t file_bytes() const noexcept;
    /// Copies bytes from the file through the kernel, starting at `offset`: the same bytes that the
    /// mapping shows, and those of unmapped parts.
    ///
    /// Throws FileCutShortError if the file is shorter now; `to` then holds the bytes that were
    /// there. Throws std::out_of_range if the bytes do not lie within `part()`, and
    /// std::system_error for other failures to read.
    void copy_to(std::uint64_t offset, std::span<std::byte> to) const;

    /// Reads pages from the disk into memory. `part` selects the pages of the mapping; {} means
    /// all. Throws nothing.
    Advised prefetch(Prefetch when, FilePart part = {}) const noexcept;
    /// Announces how pages will be touched: the system reads more ahead for sequential access, and
    /// nothing for random access. `part` selects the pages of the mapping; {} means all. Throws
    /// nothing.
    Advised advise(AccessPattern pattern, FilePart part = {}) const noexcept;
    /// Requests huge pages for the whole ones within the part; {} means all of the mapping. The
    /// file system decides whether a file gets them. Throws nothing.
    Advised prefer_huge_pages(FilePart part = {}) const noexcept;
    /// Sets on which memory node pages are placed that this object brings into memory from now on,
    /// by `prefetch` (on all file systems) or by touch (on those that live in memory).
    ///
    /// Pages in the system's cache stay where they are. Does nothing on a machine with one node.
    /// Returns `refused` for a node that does not exist. Throws nothing.
    Advised place(NumaPlacement placement, unsigned node = 0) noexcept;

    /// Returns the bytes of the part's pages that are in memory, for this process or any other; {}
    /// means all of the mapping. Linux reports it only to processes that may write the file, and
    /// reports all pages to others. Returns 0 if the system does not report it.
    std::uint64_t resident_bytes(FilePart part = {}) const noexcept;
    /// Removes the whole pages within the part from this process's resident memory; {} means all of
    /// the mapping. They come back when touched. The system's cache may keep them. Throws nothing.
    Advised drop_pages(FilePart part = {}) const noexcept;
    /// Removes the whole pages within the part from the system's cache, except those that are
    /// mapped or changed; {} means all of the mapping. Call it after `drop_pages` or `unmap` for
    /// pages that will not be read soon. Throws nothing.
    Advised drop_from_cache(FilePart part = {}) const noexcept;

    /// Ends the mapping of the whole pages within the part, for good; {} means all of the mapping.
    ///
    /// A page that is only partly within the part stays, so unmap adjacent parts as one part that
    /// begins at the first byte of the first. Touching unmapped bytes faults: their addresses stay
    /// reserved until this object is destroyed. Returns the bytes that were unmapped, without those
    /// unmapped before. Throws std::bad_alloc, and then nothing is unmapped.
    std::uint64_t unmap(FilePart part = {});
    /// Returns the bytes that `unmap` has unmapped so far.
    std::uint64_t unmapped_bytes() const noexcept;

private:
    explicit MappedFile(std::unique_ptr<files::Mapping> mapping) noexcept;
    std::unique_ptr<files::Mapping> mapping_;
};

}  // namespace tensorpool
