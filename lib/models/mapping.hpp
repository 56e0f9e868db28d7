#pragma once

#include <algorithm>
#include <vector>

#include <tensorpool/mapped_file.hpp>

#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/memory/numa_policy.hpp"

namespace tensorpool::files {

/// A half-open range of bytes [begin, end) that begins and ends at page boundaries.
struct PageRange {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const noexcept { return end - begin; }
    bool is_empty() const noexcept { return begin >= end; }
    friend bool operator==(const PageRange&, const PageRange&) = default;
};

/// A set of pages.
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
    void add(PageRange range) noexcept;

    /// Returns the bytes of all pages in the set.
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
    Mapping(const std::string& path, const MappingOptions& options);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    const std::string& path() const noexcept { return path_; }
    const platform::InputFile& file() const noexcept { return file_; }
    FilePart part() const noexcept { return part_; }
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    std::uint64_t unmapped_bytes() const noexcept { return unmapped_.bytes(); }

    /// Returns `part` with its number of bytes computed. Throws std::out_of_range if it is not
    /// within the mapped part; `doing` is the verb of the message.
    FilePart check_within(FilePart part, const char* doing) const;

    /// Return the pages that hold a byte of `part`, or only those that hold no other byte of the
    /// mapping.
    PageRange pages_touched_by(FilePart part) const noexcept;
    PageRange pages_within(FilePart part) const noexcept;
    /// Returns the offset of the pages in the file.
    std::uint64_t offset_of(PageRange pages) const noexcept { return first_ + pages.begin; }
    /// Returns the bytes of the mapped part that lie in the pages.
    FilePart bytes_in(PageRange pages) const noexcept;

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
    void set_numa_policy(platform::NumaPolicy policy, unsigned node) noexcept;
    platform::ThreadNumaPolicy policy_of_readers() const noexcept { return {policy_, node_}; }

    /// Unmaps pages as MappedFile::unmap does. Returns the bytes unmapped.
    std::uint64_t unmap(PageRange pages);

private:
    /// Returns the range of `part` relative to the first page, as far as it is mapped. The range
    /// need not begin or end with a page.
    PageRange range_of(FilePart part) const noexcept;
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
