#pragma once

#include <algorithm>
#include <vector>

#include <tensorpool/mapped_file.hpp>

#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/memory/numa_policy.hpp"
#include "platform/platform.hpp"

namespace tensorpool::files {

inline void check_kind(const std::string& path, platform::FileKind kind) {
    using platform::FileKind;
    if (kind == FileKind::regular) return;
    if (kind == FileKind::folder) {
        throw std::system_error(std::make_error_code(std::errc::is_a_directory),
                                "tensorpool: map " + path);
    }
    const char* const found = kind == FileKind::pipe     ? "a pipe"
                              : kind == FileKind::device ? "a device"
                                                         : "not a file";
    throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                            "tensorpool: map " + path + ": " + found + ", expected a regular file");
}

[[noreturn]] inline void refuse_part(const std::string& path, const char* doing, FilePart wanted,
                                     const std::string& expected) {
    const std::string bytes =
        wanted.bytes == FilePart::to_the_end
            ? "the bytes from " + std::to_string(wanted.offset) + " on"
            : std::to_string(wanted.bytes) + " bytes at offset " + std::to_string(wanted.offset);
    throw std::out_of_range("tensorpool: " + std::string(doing) + " " + path + ": " + bytes +
                            ", expected to be within " + expected);
}

inline bool is_within(FilePart inner, FilePart outer) noexcept {
    if (inner.offset < outer.offset || inner.offset - outer.offset > outer.bytes) return false;
    return inner.bytes == FilePart::to_the_end ||
           inner.bytes <= outer.bytes - (inner.offset - outer.offset);
}

/// Limits `inner` to the bytes of `outer`. REQUIRES: `inner` begins within `outer`.
inline FilePart count_out(FilePart inner, FilePart outer) noexcept {
    const std::uint64_t left = outer.bytes - (inner.offset - outer.offset);
    return {inner.offset, std::min(inner.bytes, left)};
}

inline FilePart check_part(const std::string& path, FilePart wanted, std::uint64_t file_bytes) {
    const FilePart whole{0, file_bytes};
    if (!is_within(wanted, whole)) {
        refuse_part(path, "map", wanted, "its " + std::to_string(file_bytes) + " bytes");
    }
    return count_out(wanted, whole);
}

inline platform::InputFile open_file(const std::string& path) {
    std::error_code error;
    platform::InputFile file = platform::InputFile::open(path.c_str(), error);
    if (error) throw std::system_error(error, "tensorpool: map " + path);
    check_kind(path, file.kind());
    return file;
}

/// A half-open range of bytes [begin, end) that begins and ends at page boundaries.
struct PageRange {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const noexcept { return end - begin; }
    bool is_empty() const noexcept { return begin >= end; }
    friend bool operator==(const PageRange&, const PageRange&) = default;
};

class PageRanges {
public:
    /// Calls `use` with each range of pages of `range` that are not in the set, in order.
    template <class Use>
    void for_each_missing(PageRange range, const Use& use) const {
        for (const PageRange& known : ranges_) {
            if (known.end <= range.begin) continue;
            if (known.begin >= range.end) break;
            if (range.begin < known.begin) use(PageRange{range.begin, known.begin});
            range.begin = known.end;
        }
        if (!range.is_empty()) use(range);
    }

    /// Makes room for `count` more calls of `add`. Throws std::bad_alloc.
    void reserve_more(std::size_t count) { ranges_.reserve(ranges_.size() + count); }
    /// Adds pages that are not in the set. REQUIRES: `reserve_more` made room.
    void add(PageRange range) noexcept {
        if (range.is_empty()) return;
        bytes_ += range.size();
        const auto next = std::ranges::lower_bound(ranges_, range.end, {}, &PageRange::begin);
        const bool joins_next = next != ranges_.end() && next->begin == range.end;
        const bool joins_last = next != ranges_.begin() && std::prev(next)->end == range.begin;
        if (joins_last) {
            std::prev(next)->end = joins_next ? next->end : range.end;
            if (joins_next) ranges_.erase(next);
        } else if (joins_next) {
            next->begin = range.begin;
        } else {
            ranges_.insert(next, range);
        }
    }

    std::size_t bytes() const noexcept { return bytes_; }

private:
    // Invariant: the ranges are in order, none is empty, and there is a gap between neighbours.
    std::vector<PageRange> ranges_;
    std::size_t bytes_ = 0;
};

/// A mapping of a file in whole pages, with a record of the pages that were unmapped.
class Mapping {
public:
    /// Maps a file as MappedFile::open does.
    Mapping(const std::string& path, const MappingOptions& options)
        : path_(path),
          file_(open_file(path)),
          part_(check_part(path, options.part, file_.bytes())) {
        if (part_.bytes == 0) return;
        const std::uint64_t skipped = part_.offset % platform::mapping_granularity();
        first_ = part_.offset - skipped;
        std::error_code error;
        if (part_.bytes > SIZE_MAX - skipped)
            error = std::make_error_code(std::errc::file_too_large);
        const auto bytes = static_cast<std::size_t>(skipped + part_.bytes);
        if (!error) pages_ = file_.map(first_, bytes, options.shared == Shared::yes, error);
        if (error) throw std::system_error(error, "tensorpool: map " + path);
        bytes_ = {begin() + skipped, static_cast<std::size_t>(part_.bytes)};
    }
    ~Mapping() {
        if (begin() != nullptr) platform::unmap_file(begin(), pages_.bytes);
    }

    const std::string& path() const noexcept { return path_; }
    const platform::InputFile& file() const noexcept { return file_; }
    FilePart part() const noexcept { return part_; }
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    std::uint64_t unmapped_bytes() const noexcept { return unmapped_.bytes(); }

    /// Returns `part` with its number of bytes computed. Throws std::out_of_range if it is not
    /// within the mapped part; `doing` is the verb of the message.
    FilePart check_within(FilePart part, const char* doing) const {
        if (!is_within(part, part_)) {
            refuse_part(path_, doing, part,
                        "the " + std::to_string(part_.bytes) + " bytes at offset " +
                            std::to_string(part_.offset) + " that are mapped");
        }
        return count_out(part, part_);
    }

    /// Return the pages that hold a byte of `part`, or only those that hold no other byte of the
    /// mapping.
    PageRange pages_touched_by(FilePart part) const noexcept {
        const PageRange bytes = range_of(part);
        if (bytes.is_empty()) return {};
        return {base::align_down(bytes.begin, platform::page_bytes()),
                base::align_up(bytes.end, platform::page_bytes())};
    }
    PageRange pages_within(FilePart part) const noexcept {
        const PageRange all = range_of({});
        const PageRange bytes = range_of(part);
        if (bytes.is_empty()) return {};
        // The other bytes of the first and the last page are not part of the mapping, so those
        // pages count.
        const bool is_first = bytes.begin == all.begin;
        const bool is_last = bytes.end == all.end;
        const std::size_t page = platform::page_bytes();
        const PageRange pages{
            is_first ? base::align_down(bytes.begin, page) : base::align_up(bytes.begin, page),
            is_last ? base::align_up(bytes.end, page) : base::align_down(bytes.end, page)};
        return pages.is_empty() ? PageRange{} : pages;
    }
    std::uint64_t offset_of(PageRange pages) const noexcept { return first_ + pages.begin; }
    /// Returns the bytes of the mapped part that lie in the pages.
    FilePart bytes_in(PageRange pages) const noexcept {
        const std::uint64_t begin = std::max(offset_of(pages), part_.offset);
        const std::uint64_t end = std::min(first_ + pages.end, part_.offset + part_.bytes);
        return {begin, end - std::min(begin, end)};
    }

    /// Calls `use(address, bytes)` for each run of `pages` that are still mapped, until one returns
    /// an outcome other than `done`.
    template <class Use>
    platform::Outcome for_each_run(PageRange pages, const Use& use) const {
        platform::Outcome outcome = platform::Outcome::done;
        unmapped_.for_each_missing(pages, [&](PageRange run) {
            if (outcome == platform::Outcome::done) outcome = use(begin() + run.begin, run.size());
        });
        return outcome;
    }

    /// Sets the nodes from which pages are taken. The policy is kept for threads that read them in.
    void set_numa_policy(platform::NumaPolicy policy, unsigned node) noexcept {
        policy_ = policy;
        node_ = node;
        // The policy matters only for files that live in memory, so a refusal is ignored.
        (void)for_each_run(pages_touched_by({}), [&](std::byte* address, std::size_t bytes) {
            platform::set_numa_policy(address, bytes, policy, node);
            return platform::Outcome::done;
        });
    }
    platform::ThreadNumaPolicy policy_of_readers() const noexcept { return {policy_, node_}; }

    /// Unmaps pages as MappedFile::unmap does. Returns the bytes unmapped.
    std::uint64_t unmap(PageRange pages) {
        std::vector<PageRange> runs;
        unmapped_.for_each_missing(pages, [&](PageRange run) { runs.push_back(run); });
        unmapped_.reserve_more(runs.size());
        const std::size_t before = unmapped_.bytes();
        for (const PageRange& run : runs) {
            if (platform::bar_file_pages(begin() + run.begin, run.size())) unmapped_.add(run);
        }
        return unmapped_.bytes() - before;
    }

private:
    /// Returns the range of `part` relative to the first page, as far as it is mapped. The range
    /// need not begin or end with a page.
    PageRange range_of(FilePart part) const noexcept {
        const std::uint64_t end = part_.offset + part_.bytes;
        const std::uint64_t wanted_end =
            part.bytes < end && part.offset < end - part.bytes ? part.offset + part.bytes : end;
        const std::uint64_t begin = std::max(part.offset, part_.offset);
        if (begin >= wanted_end) return {};
        return {static_cast<std::size_t>(begin - first_),
                static_cast<std::size_t>(wanted_end - first_)};
    }
    std::byte* begin() const noexcept { return static_cast<std::byte*>(pages_.address); }

    std::string path_;
    platform::InputFile file_;
    FilePart part_;            // its number of bytes is computed
    std::uint64_t first_ = 0;  // offset of the first page in the file
    platform::FileMapping pages_;
    std::span<const std::byte> bytes_;  // in those pages
    PageRanges unmapped_;
    platform::NumaPolicy policy_ = platform::NumaPolicy::none;
    unsigned node_ = 0;
};

}  // namespace tensorpool::files
