#pragma once

#include <tensorpool/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "models/page_ranges.hpp"
#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/memory/numa_policy.hpp"

namespace tensorpool::files {

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
