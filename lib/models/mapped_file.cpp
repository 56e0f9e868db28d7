#include <tensorpool/mapped_file.hpp>

#include "models/mapping.hpp"

namespace tensorpool {

FileCutShortError::FileCutShortError(const std::string& path, FilePart asked, std::uint64_t found)
    : std::runtime_error("tensorpool: read " + std::to_string(asked.bytes) + " bytes at offset " +
                         std::to_string(asked.offset) + " of " + path + ": the file has " +
                         std::to_string(found) + " bytes, expected at least " +
                         std::to_string(asked.offset + asked.bytes) +
                         ": it was cut short while it was mapped"),
      path_(path),
      asked_(asked),
      found_(found) {}

MappedFile::MappedFile(std::unique_ptr<files::Mapping> mapping) noexcept
    : mapping_(std::move(mapping)) {}
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;

MappedFile MappedFile::open(const std::string& path, const MappingOptions& options) {
    return MappedFile(std::make_unique<files::Mapping>(path, options));
}

const std::string& MappedFile::path() const noexcept {
    return mapping_->path();
}

FilePart MappedFile::part() const noexcept {
    return mapping_->part();
}

std::span<const std::byte> MappedFile::bytes() const noexcept {
    return mapping_->bytes();
}

std::span<const std::byte> MappedFile::bytes(FilePart part) const {
    const FilePart within = mapping_->check_within(part, "bytes of");
    return bytes().subspan(static_cast<std::size_t>(within.offset - this->part().offset),
                           static_cast<std::size_t>(within.bytes));
}

std::uint64_t MappedFile::file_bytes() const noexcept {
    return mapping_->file().bytes();
}

void MappedFile::copy_to(std::uint64_t offset, std::span<std::byte> to) const {
    const FilePart asked = mapping_->check_within({offset, to.size()}, "read");
    std::error_code error;
    const std::size_t got = mapping_->file().read(offset, to.data(), to.size(), error);
    if (error) throw std::system_error(error, "tensorpool: read " + path());
    if (got < to.size()) {
        throw FileCutShortError(path(), asked, std::min(file_bytes(), offset + got));
    }
}

std::uint64_t MappedFile::unmapped_bytes() const noexcept {
    return mapping_->unmapped_bytes();
}

std::uint64_t MappedFile::unmap(FilePart part) {
    return mapping_->unmap(mapping_->pages_within(part));
}

namespace {

using files::PageRange;
using platform::Outcome;

Advised to_advised(Outcome outcome) noexcept {
    if (outcome == Outcome::done) return Advised::done;
    return outcome == Outcome::unsupported ? Advised::unsupported : Advised::refused;
}

platform::ReadAhead read_ahead_for(AccessPattern pattern) noexcept {
    if (pattern == AccessPattern::sequential) return platform::ReadAhead::much;
    return pattern == AccessPattern::random ? platform::ReadAhead::none
                                            : platform::ReadAhead::normal;
}

platform::NumaPolicy policy_for(NumaPlacement placement) noexcept {
    if (placement == NumaPlacement::interleave) return platform::NumaPolicy::interleave;
    return placement == NumaPlacement::bind ? platform::NumaPolicy::prefer
                                            : platform::NumaPolicy::none;
}

/// For systems that cannot enter pages into the page table: reading brings them into memory, and
/// raises no signal if the file was cut short.
Outcome read_through(const platform::InputFile& file, FilePart part) noexcept {
    std::byte scratch[std::size_t{64} << 10];
    for (std::uint64_t at = 0; at < part.bytes; at += sizeof scratch) {
        std::error_code error;
        const std::size_t some = std::min<std::uint64_t>(sizeof scratch, part.bytes - at);
        if (file.read(part.offset + at, scratch, some, error) < some) return Outcome::refused;
    }
    return Outcome::done;
}

}  // namespace

const char* to_string(Advised advised) noexcept {
    return base::text_of({"done", "one node", "unsupported", "refused"}, advised, "unknown");
}

Advised MappedFile::prefetch(Prefetch when, FilePart part) const noexcept {
    const PageRange pages = mapping_->pages_touched_by(part);
    const platform::ThreadNumaPolicy policy = mapping_->policy_of_readers();
    // Also for Prefetch::now: page by page, the system would read data behind the part as well, and
    // would be slower (perf/load.cpp).
    const Outcome begun = mapping_->for_each_run(pages, platform::begin_to_read);
    if (when == Prefetch::ahead) return to_advised(begun);
    const Outcome outcome = mapping_->for_each_run(pages, platform::populate_for_reading);
    if (outcome != Outcome::unsupported) return to_advised(outcome);
    return to_advised(read_through(mapping_->file(), mapping_->bytes_in(pages)));
}

Advised MappedFile::advise(AccessPattern pattern, FilePart part) const noexcept {
    const auto use = [how_much = read_ahead_for(pattern)](void* address, std::size_t bytes) {
        return platform::set_read_ahead(address, bytes, how_much);
    };
    return to_advised(mapping_->for_each_run(mapping_->pages_touched_by(part), use));
}

Advised MappedFile::prefer_huge_pages(FilePart part) const noexcept {
    const auto use = [](void* address, std::size_t bytes) {
        return platform::prefer_huge_pages(address, bytes) ? Outcome::done : Outcome::unsupported;
    };
    return to_advised(mapping_->for_each_run(mapping_->pages_within(part), use));
}

Advised MappedFile::place(NumaPlacement placement, unsigned node) noexcept {
    const unsigned nodes = platform::numa_node_count();
    if (placement == NumaPlacement::bind && node >= nodes) return Advised::refused;
    if (nodes == 1) return Advised::one_node;
    mapping_->set_numa_policy(policy_for(placement), node);
    return Advised::done;
}

std::uint64_t MappedFile::resident_bytes(FilePart part) const noexcept {
    std::uint64_t resident = 0;
    const auto use = [&](const void* address, std::size_t bytes) {
        resident += platform::resident_file_bytes(address, bytes);
        return Outcome::done;
    };
    (void)mapping_->for_each_run(mapping_->pages_touched_by(part), use);
    return resident;
}

Advised MappedFile::drop_pages(FilePart part) const noexcept {
    return to_advised(
        mapping_->for_each_run(mapping_->pages_within(part), platform::drop_file_pages));
}

Advised MappedFile::drop_from_cache(FilePart part) const noexcept {
    const PageRange pages = mapping_->pages_within(part);
    if (pages.is_empty()) return Advised::done;
    return mapping_->file().drop_from_cache(mapping_->offset_of(pages), pages.size())
               ? Advised::done
               : Advised::unsupported;
}

}  // namespace tensorpool
