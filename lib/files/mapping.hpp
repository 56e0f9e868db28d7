#pragma once

#include <tensorpool/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "files/page_ranges.hpp"
#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/memory/numa_policy.hpp"

namespace tensorpool::files {

/// A mapping of a file in whole pages, and which of them it still has.
class Mapping {
public:
    /// As MappedFile::open.
    Mapping(const std::string& path, const MappingOptions& options);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    const std::string& path() const noexcept { return path_; }
    const platform::InputFile& file() const noexcept { return file_; }
    FilePart part() const noexcept { return part_; }
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    std::uint64_t unmapped_bytes() const noexcept { return unmapped_.bytes(); }

    /// `part` with its bytes counted out. Throws std::out_of_range where it is not within the
    /// mapped part; `doing` is the verb of the text.
    FilePart check_within(FilePart part, const char* doing) const;

    /// The pages that hold a byte of `part`, or those that hold no other byte of the mapping.
    PageRange pages_touched_by(FilePart part) const noexcept;
    PageRange pages_within(FilePart part) const noexcept;
    /// Where in the file they begin.
    std::uint64_t offset_of(PageRange pages) const noexcept { return first_ + pages.begin; }
    /// What of the mapped part lies in them.
    FilePart bytes_in(PageRange pages) const noexcept;

    /// Calls `use(address, bytes)` with each run of `pages` that were not unmapped, until one is
    /// not done.
    template <class Use>
    platform::Outcome for_each_run(PageRange pages, const Use& use) const {
        platform::Outcome outcome = platform::Outcome::done;
        unmapped_.for_each_missing(pages, [&](PageRange run) {
            if (outcome == platform::Outcome::done) outcome = use(begin() + run.begin, run.size());
        });
        return outcome;
    }

    /// From which nodes pages shall come; kept for who reads them in.
    void set_numa_policy(platform::NumaPolicy policy, unsigned node) noexcept;
    platform::ThreadNumaPolicy policy_of_readers() const noexcept { return {policy_, node_}; }

    /// As MappedFile::unmap.
    std::uint64_t unmap(PageRange pages);

private:
    /// Where the bytes of `part` lie in the pages, as far as they are mapped. Need not begin or end
    /// with a page.
    PageRange places_of(FilePart part) const noexcept;
    std::byte* begin() const noexcept { return static_cast<std::byte*>(pages_.address); }

    std::string path_;
    platform::InputFile file_;
    FilePart part_;            // its bytes counted out
    std::uint64_t first_ = 0;  // where in the file the pages begin
    platform::FileMapping pages_;
    std::span<const std::byte> bytes_;  // in those pages
    PageRanges unmapped_;
    platform::NumaPolicy policy_ = platform::NumaPolicy::none;
    unsigned node_ = 0;
};

}  // namespace tensorpool::files
