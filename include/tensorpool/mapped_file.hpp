#pragma once

/// @file
/// A file in memory without a copy: mapped, not read. All sizes and offsets are bytes; offsets
/// count from the beginning of the file, also where only a part of it is mapped.

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

/// A part of a file; need not begin or end with a page.
struct FilePart {
    static constexpr std::uint64_t to_the_end = UINT64_MAX;
    std::uint64_t offset = 0;
    std::uint64_t bytes = to_the_end;
    friend bool operator==(const FilePart&, const FilePart&) = default;
};

/// Whether a mapping shows what others write to the file. Without, that is not said: the page a
/// reader sees may be the file's or one of its own. Some file systems refuse shared mappings.
enum class Shared : bool { no, yes };

struct MappingOptions {
    FilePart part = {};
    Shared shared = Shared::yes;
};

/// What became of advice to the system.
enum class Advised : std::uint8_t {
    done,
    one_node,     ///< nothing was done: this machine has one memory node
    unsupported,  ///< nothing was done: this system, or this file's, has no such thing
    refused,      ///< the system did not, or only in part: as for a file that was cut short
};
/// "done" and so on, for people.
TENSORPOOL_API const char* to_string(Advised advised) noexcept;

enum class Prefetch : std::uint8_t {
    ahead,  ///< the system begins to read it, and the call returns
    now,    ///< it is in memory when the call returns, and touching it costs no page fault
};
enum class AccessPattern : std::uint8_t { normal, sequential, random };

/// On which memory node pages of a file shall lie that are not in memory yet.
enum class NumaPlacement : std::uint8_t {
    first_touch,  ///< on that of the thread that touches them first; what systems do unasked
    interleave,   ///< on all in turn
    bind,         ///< on one, or on others when that is full
};

/// A file has less than was mapped: it was cut short since.
class TENSORPOOL_API FileCutShortError : public std::runtime_error {
public:
    /// `found` bytes are in the file, where a copy up to `expected` was asked for.
    FileCutShortError(const std::string& path, FilePart asked, std::uint64_t found);
    const std::string& path() const noexcept { return path_; }
    FilePart asked() const noexcept { return asked_; }
    std::uint64_t found() const noexcept { return found_; }  ///< the file's bytes

private:
    std::string path_;
    FilePart asked_;
    std::uint64_t found_;
};

/// A file or a part of it, mapped read-only. Moved, not copied; the bytes stay where they are when
/// the object is moved, and the one moved from may only be assigned to or destroyed. Const
/// functions may be called from any number of threads at once.
///
/// A file that another process cuts short takes bytes away from under its mappings: touching one
/// beyond the new end raises SIGBUS, which ends a process that has no handler; nothing here
/// installs one. Where that may happen, copy with `copy_to`, which cannot be hurt. (Programs that
/// replace a file by renaming another over it do no harm: the mapping keeps the old one.)
class TENSORPOOL_API MappedFile {
public:
    /// Maps a regular file; reads nothing of it. An empty part needs no mapping and is none. Throws
    /// std::system_error for what cannot be opened or mapped, never waiting for another process as
    /// a pipe would; std::out_of_range for a part beyond the end of the file. Their texts name the
    /// file. A file that tells no size, as those in /proc, is taken as empty.
    static MappedFile open(const std::string& path, const MappingOptions& options = {});

    MappedFile(MappedFile&&) noexcept;
    MappedFile& operator=(MappedFile&&) noexcept;
    ~MappedFile();

    const std::string& path() const noexcept;
    /// Which part of the file is mapped.
    FilePart part() const noexcept;
    /// What is mapped. Parts that were unmapped must not be touched any more.
    std::span<const std::byte> bytes() const noexcept;
    /// The same of a part of it. Throws std::out_of_range for what is not within.
    std::span<const std::byte> bytes(FilePart part) const;

    /// What the file has now: less than the end of `part()` when it was cut short. 0 where that
    /// cannot be told.
    std::uint64_t file_bytes() const noexcept;
    /// Copies from the file, through the kernel: the same bytes that the mapping shows, unmapped
    /// parts too. Throws FileCutShortError where the file has not so many any more, then `to` holds
    /// what there was; std::out_of_range for what is not within `part()`; std::system_error for
    /// other failures to read.
    void copy_to(std::uint64_t offset, std::span<std::byte> to) const;

    // The rest is advice, for what of `part` is mapped; {} is all of it. Nothing is thrown.

    /// Gets pages from the disk into memory.
    Advised prefetch(Prefetch when, FilePart part = {}) const noexcept;
    /// How pages will be touched: more is read ahead of sequential access, nothing of random.
    Advised advise(AccessPattern pattern, FilePart part = {}) const noexcept;
    /// Wishes for huge pages in the whole ones within. Whether a file gets them is for its file
    /// system to say.
    Advised prefer_huge_pages(FilePart part = {}) const noexcept;
    /// Where pages shall lie that this object brings into memory from now on, by `prefetch` (all
    /// file systems) or by touch (those that live in memory). Pages that are in the system's cache
    /// already stay where they are. On one node does nothing. `refused` for a node that is not.
    Advised place(NumaPlacement placement, unsigned node = 0) noexcept;

    /// Bytes of the pages that are in memory, this process's or not. Linux tells it only to who may
    /// write the file, and all others that everything is; without telling it is 0.
    std::uint64_t resident_bytes(FilePart part = {}) const noexcept;
    /// This process lets go of the whole pages within: they are not part of its resident memory any
    /// more, and come back when touched. The system's cache keeps them as long as it likes.
    Advised drop_pages(FilePart part = {}) const noexcept;
    /// The system's cache lets go of the whole pages within, save those that somebody has mapped or
    /// changed: after `drop_pages` or `unmap`, for what nobody will read soon.
    Advised drop_from_cache(FilePart part = {}) const noexcept;

    /// Ends the mapping of the whole pages within, for good; a page that is only partly within
    /// stays (so unmap what lies one after another as one part, from the first byte of the first).
    /// Touching what was unmapped faults: its addresses are kept, and nothing else will lie there
    /// before this object goes. Returns the bytes that left; 0 for what had left before. Throws
    /// std::bad_alloc, then nothing is unmapped.
    std::uint64_t unmap(FilePart part = {});
    /// Bytes that `unmap` took so far.
    std::uint64_t unmapped_bytes() const noexcept;

private:
    explicit MappedFile(std::unique_ptr<files::Mapping> mapping) noexcept;
    std::unique_ptr<files::Mapping> mapping_;
};

}  // namespace tensorpool
