#pragma once

#include <cstddef>

#include "pages/address_space.hpp"
#include "pages/heap/heap_options.hpp"
#include "pages/heap/page_request.hpp"
#include "pages/span.hpp"

namespace tensorpool::pages {

/// Requests larger pages for memory of one page heap that was not touched yet, and measures what
/// first touches cost. Thread-safe.
class FreshMemory {
public:
    /// Keeps a reference to the options.
    FreshMemory(AddressSpace& space, const HeapOptions& options) noexcept
        : space_(space), options_(options) {}

    /// Requests huge pages for an extent, once. The caller holds the shard's lock.
    void request_huge_pages(Span& extent) const noexcept;
    /// Requests larger pages for a run that is about to be cut out of an extent and will be touched
    /// whole, and for the granule that begins in it. The caller holds the shard's lock.
    void request_for_run(Span& extent, PageRun run, SlowPath& path) const noexcept;
    /// Touches the first page of a granule that requested a huge page, and records the cost. The
    /// heap keeps the addresses during that.
    void try_huge_page(PageRun granule) const noexcept;
    /// Touches pages in use that were committed recently and will all be written, with larger pages
    /// if those are the cheapest. If the system refuses, the first access touches them.
    void prefault(PageRun run) const noexcept;

private:
    bool measures() const noexcept {
        return options_.folios != nullptr && options_.huge_pages == HugePages::buckets;
    }
    void touch(Folio folio, PageNumber first, std::size_t bytes) const noexcept;

    AddressSpace& space_;
    const HeapOptions& options_;
};

}  // namespace tensorpool::pages
