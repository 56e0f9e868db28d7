#include "models/mapping.hpp"

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::files {
namespace {

/// Throws if `kind` is not a regular file.
void check_kind(const std::string& path, platform::FileKind kind) {
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

[[noreturn]] void refuse_part(const std::string& path, const char* doing, FilePart wanted,
                              const std::string& expected) {
    const std::string bytes =
        wanted.bytes == FilePart::to_the_end
            ? "the bytes from " + std::to_string(wanted.offset) + " on"
            : std::to_string(wanted.bytes) + " bytes at offset " + std::to_string(wanted.offset);
    throw std::out_of_range("tensorpool: " + std::string(doing) + " " + path + ": " + bytes +
                            ", expected to be within " + expected);
}

bool is_within(FilePart inner, FilePart outer) noexcept {
    if (inner.offset < outer.offset || inner.offset - outer.offset > outer.bytes) return false;
    return inner.bytes == FilePart::to_the_end ||
           inner.bytes <= outer.bytes - (inner.offset - outer.offset);
}

/// Limits `inner` to the bytes of `outer`. REQUIRES: `inner` begins within `outer`.
FilePart count_out(FilePart inner, FilePart outer) noexcept {
    const std::uint64_t left = outer.bytes - (inner.offset - outer.offset);
    return {inner.offset, std::min(inner.bytes, left)};
}

FilePart check_part(const std::string& path, FilePart wanted, std::uint64_t file_bytes) {
    const FilePart whole{0, file_bytes};
    if (!is_within(wanted, whole)) {
        refuse_part(path, "map", wanted, "its " + std::to_string(file_bytes) + " bytes");
    }
    return count_out(wanted, whole);
}

platform::InputFile open_file(const std::string& path) {
    std::error_code error;
    platform::InputFile file = platform::InputFile::open(path, error);
    if (error) throw std::system_error(error, "tensorpool: map " + path);
    check_kind(path, file.kind());
    return file;
}

}  // namespace

Mapping::Mapping(const std::string& path, const MappingOptions& options)
    : path_(path), file_(open_file(path)), part_(check_part(path, options.part, file_.bytes())) {
    if (part_.bytes == 0) return;
    const std::uint64_t skipped = part_.offset % platform::mapping_granularity();
    first_ = part_.offset - skipped;
    std::error_code error;
    if (part_.bytes > SIZE_MAX - skipped) error = std::make_error_code(std::errc::file_too_large);
    const auto bytes = static_cast<std::size_t>(skipped + part_.bytes);
    if (!error) pages_ = file_.map(first_, bytes, options.shared == Shared::yes, error);
    if (error) throw std::system_error(error, "tensorpool: map " + path);
    bytes_ = {begin() + skipped, static_cast<std::size_t>(part_.bytes)};
}

Mapping::~Mapping() {
    if (begin() != nullptr) platform::unmap_file(begin(), pages_.bytes);
}

FilePart Mapping::check_within(FilePart part, const char* doing) const {
    if (!is_within(part, part_)) {
        refuse_part(path_, doing, part,
                    "the " + std::to_string(part_.bytes) + " bytes at offset " +
                        std::to_string(part_.offset) + " that are mapped");
    }
    return count_out(part, part_);
}

PageRange Mapping::pages_touched_by(FilePart part) const noexcept {
    const PageRange bytes = range_of(part);
    if (bytes.is_empty()) return {};
    return {base::align_down(bytes.begin, platform::page_bytes()),
            base::align_up(bytes.end, platform::page_bytes())};
}

PageRange Mapping::pages_within(FilePart part) const noexcept {
    const PageRange all = range_of({});
    const PageRange bytes = range_of(part);
    if (bytes.is_empty()) return {};
    // The other bytes of the first and the last page are not part of the mapping, so those pages
    // count.
    const bool is_first = bytes.begin == all.begin;
    const bool is_last = bytes.end == all.end;
    const std::size_t page = platform::page_bytes();
    const PageRange pages{
        is_first ? base::align_down(bytes.begin, page) : base::align_up(bytes.begin, page),
        is_last ? base::align_up(bytes.end, page) : base::align_down(bytes.end, page)};
    return pages.is_empty() ? PageRange{} : pages;
}

FilePart Mapping::bytes_in(PageRange pages) const noexcept {
    const std::uint64_t begin = std::max(offset_of(pages), part_.offset);
    const std::uint64_t end = std::min(first_ + pages.end, part_.offset + part_.bytes);
    return {begin, end - std::min(begin, end)};
}

PageRange Mapping::range_of(FilePart part) const noexcept {
    const std::uint64_t end = part_.offset + part_.bytes;
    const std::uint64_t wanted_end =
        part.bytes < end && part.offset < end - part.bytes ? part.offset + part.bytes : end;
    const std::uint64_t begin = std::max(part.offset, part_.offset);
    if (begin >= wanted_end) return {};
    return {static_cast<std::size_t>(begin - first_),
            static_cast<std::size_t>(wanted_end - first_)};
}

void Mapping::set_numa_policy(platform::NumaPolicy policy, unsigned node) noexcept {
    policy_ = policy;
    node_ = node;
    // The policy matters only for files that live in memory, so a refusal is ignored.
    (void)for_each_run(pages_touched_by({}), [&](std::byte* address, std::size_t bytes) {
        platform::set_numa_policy(address, bytes, policy, node);
        return platform::Outcome::done;
    });
}

std::uint64_t Mapping::unmap(PageRange pages) {
    std::vector<PageRange> runs;
    unmapped_.for_each_missing(pages, [&](PageRange run) { runs.push_back(run); });
    unmapped_.reserve_more(runs.size());
    const std::size_t before = unmapped_.bytes();
    for (const PageRange& run : runs) {
        if (platform::bar_file_pages(begin() + run.begin, run.size())) unmapped_.add(run);
    }
    return unmapped_.bytes() - before;
}

void PageRanges::add(PageRange range) noexcept {
    if (range.is_empty()) return;
    bytes_ += range.size();
    const auto next = std::find_if(ranges_.begin(), ranges_.end(), [&](const PageRange& known) {
        return known.begin >= range.end;
    });
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

}  // namespace tensorpool::files
